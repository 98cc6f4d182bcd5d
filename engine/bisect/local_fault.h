// A place where a recorded run is not what its own inputs make: a value that its op, by definition,
// does not give of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/numerics/trace.h"

namespace trainscope {

enum class FaultKind : std::uint8_t {
  kOp,         // the op, its kernel or an attribute
  kGraph,      // a contribution to a gradient is missing, counted twice, or of another shape
  kOptimizer,  // the update
  kState,      // running statistics of the model
  kStart,      // what the run, or a step, began with
  kOverflow,   // not finite where the exact result is
};
// "op", "graph", "optimizer", "state", "start", "overflow".
std::string_view name_of(FaultKind kind);

struct LocalFault {
  FaultKind kind = FaultKind::kOp;
  std::int64_t step = 0;
  std::int64_t micro_batch = 0;
  profiler::TracePhase phase = profiler::TracePhase::kForward;
  std::string key = {};    // of the row: "dact:/h.0/Add_output_0"
  std::string op = {};     // of the model; of an update the optimizer's
  std::string node = {};   // in the model
  std::string cause = {};  // the likely one, a phrase
  // Relative to the larger norm, of what the run's own inputs make; 0 where NaN, infinities or the
  // number of elements are not the same.
  double error = 0.0;
  double limit = 0.0;                   // 0 of integers, which are equal or not
  bool by_elements = false;             // else of sketches, and of inputs that agree with ours
  std::vector<std::string> among = {};  // nodes, where several lie between two recorded values
  // In its step: how many nodes of the definition ran before, in all micro-batches.
  std::int64_t order = 0;

  // None where the error or its limit is no number to divide.
  std::optional<double> over_limit() const {
    return error > 0.0 && limit > 0.0 ? std::optional(error / limit) : std::nullopt;
  }
};

}  // namespace trainscope
