// What a call would take at the roofs of a machine (Williams, Waterman, Patterson 2009).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "engine/machine/machine.h"

namespace trainscope::profiler {

// FLOPs that the call's kernel executes: Winograd's own, those of whole registers; of a kernel that
// says nothing those of the op's definition.
std::int64_t executed_flops(const PlanCall& call);

// By as many cores as the plan has threads: of a batch tile its share of it.
struct RoofTerms {
  double arithmetic = 0.0;  // seconds of the executed FLOPs at the rate of its dtype
  double traffic = 0.0;     // seconds of the operands' bytes at the rates of `level`
  double read_rate = 0.0;   // bytes a second
  double write_rate = 0.0;
  double update_rate = 0.0;  // of bytes in place, which count as they are read and as written
  double in_place = 0.0;     // bytes of results that lie where an input lies
  bool like_a_copy = false;  // the machine has no rate for them: they have that of a copy
  std::string level = {};    // the name of the first that its operands fit in

  double seconds() const { return std::max(arithmetic, traffic); }
  // Of so many bytes, those in place among them.
  double traffic_of(double bytes_read, double bytes_written) const;
};
// Of a call that left masked rows out, `rows` is the share that it computed (CallTime::rows): of
// its FLOPs and of its first input's bytes; its result has the others, too.
RoofTerms roof_terms(const Machine& machine, const PlanView& plan, const PlanCall& call,
                     double rows = 1.0);

// Bytes of the call's results that lie where one of its inputs lies, as the plan placed them: at
// most those that it reads. A store to them finds its line in the cache; one elsewhere fetches it
// first.
std::int64_t bytes_in_place(const PlanView& plan, const PlanCall& call);

// The longer of the two, in nanoseconds.
double roof_ns(const Machine& machine, const PlanView& plan, const PlanCall& call,
               double rows = 1.0);

// A roof: bandwidth of a level of memory, or of arithmetic.
struct Roof {
  std::string name = {};
  double gbs = 0.0;     // 10^9 bytes a second; 0: of arithmetic
  double gflops = 0.0;  // where it ends, or its height

  bool operator==(const Roof&) const = default;
};
// Of so many threads: of arithmetic by dtype, then of reading from each level.
std::vector<Roof> roofs_of(const Machine& machine, std::uint32_t threads);

// That level: bytes in place are there once; caches named L1 and L2 are each core's own, others are
// there once.
const MemoryLevel& level_of(const Machine& machine, const PlanView& plan, const PlanCall& call);

}  // namespace trainscope::profiler
