// How fast the machine was by itself while runs were profiled, and whether that is the same for two
// of them.
#pragma once

#include <span>

#include "profiler/store/event_file.h"

namespace trainscope::profiler {

// Of the speeds that a run measured of its machine (MachineSpeed); 0: it measured none.
struct RunMachine {
  // The best, but for low_share() of the measurements: rows are compared as they are undisturbed.
  double clock = 0.0;
  double exchange = 0.0;
  double usual_exchange = 0.0;  // the median
};
RunMachine machine_of(const EventView& events);

// How much longer the machine of B takes for the same: 1.2 is a fifth longer. 1 where either side
// measured nothing.
struct MachineDifference {
  double clock = 1.0;
  double exchange = 1.0;
  double usual_exchange = 1.0;
  bool is_measured = false;  // of both

  // All three are within kAlikeMachines. Where they are not, a call may take any multiple of what
  // it did: on two cores that no longer shared a cache, an update of weights took six times as
  // long, while the exchange took twice and the clock was the same.
  bool is_alike() const;
  // What the machine alone explains of a longer step: the largest factor, 1 of machines alike.
  double most() const;
};
// Of several runs a side the geometric means.
MachineDifference machine_difference(std::span<const RunMachine> a, std::span<const RunMachine> b);

// What measurements of one machine differ by anyway.
inline constexpr double kAlikeMachines = 1.08;

}  // namespace trainscope::profiler
