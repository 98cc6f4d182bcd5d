// How fast the machine is at this moment, whatever the program: its clock, and what its threads
// exchange. On a shared or virtual machine both change in the course of seconds: a hypervisor moves
// processors apart, others load the caches between them.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/api/kernel.h"

namespace trainscope::profiler {

struct MachineSpeed {
  double clock = 0.0;     // multiply-adds that wait for each other, of one thread, in a microsecond
  double exchange = 0.0;  // GB/s that threads update of bytes which another thread wrote last
};

class MachineProbe {
 public:
  // On the device's threads (Device::fork). Of one thread the exchange is with itself.
  MachineProbe(int threads, Fork fork);

  // Some hundred microseconds on all threads; the best of kRounds, since what disturbs only ever
  // slows down.
  MachineSpeed measure();

  static constexpr std::size_t kThreadBytes = std::size_t{1} << 19;  // within a core's own cache
  static constexpr int kRounds = 6;

 private:
  struct Release {
    void operator()(float* memory) const;
  };
  static void update(void* probe, int thread);

  int threads_;
  Fork fork_;
  int round_ = 0;
  std::unique_ptr<float[], Release> bytes_;  // kThreadBytes for each thread
};

}  // namespace trainscope::profiler
