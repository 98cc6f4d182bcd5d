// Under which ONNX names a program's values go into a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

struct TracedAs {
  profiler::TraceKind kind = profiler::TraceKind::kOwn;
  std::string name;
};

inline bool is_gradient(const TracedAs& as) {
  return as.kind == profiler::TraceKind::kGradient ||
         as.kind == profiler::TraceKind::kActivationGradient;
}

// The value whose bytes these are: what views look at.
ValueId viewed(const Graph& graph, ValueId id);

// What a view of a value is named as: in a program it is the value's bytes; who computes node by
// node makes a tensor of it.
enum class ViewRows : std::uint8_t { kOfTheViewed, kTheirOwn };

class TracedValues {
 public:
  // Of the values of `graph`, the one that the last of the stages has, perhaps in another order.
  // All stages are kept (KeepGraphs::kAll).
  TracedValues(const Stages& stages, const Graph& graph, ViewRows views);

  // Of a value that a call makes, or that a step starts from.
  const TracedAs& of(ValueId value) const { return as_[static_cast<std::size_t>(value)]; }
  // What became of each value of the model, and which gradients have the elements of others; where
  // rows are named otherwise.
  const std::vector<profiler::TraceName>& names() const { return names_; }

 private:
  std::vector<TracedAs> as_;  // by ValueId
  std::vector<profiler::TraceName> names_;
};

}  // namespace trainscope
