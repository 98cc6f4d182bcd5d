// Cost rules that op rows share. A multiplication and an addition are one FLOP each; a division or
// root counts 4, an exponential or other transcendental function 8.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/core/saturating.h"
#include "engine/ir/op_def.h"

namespace trainscope {

inline std::int64_t bytes_of(const TensorType& type) {
  return static_cast<std::int64_t>(type.bytes());
}

// `flops`, and the bytes of all inputs and outputs.
inline Cost with_flops(const OpArgs& args, std::int64_t flops) {
  Cost cost{.flops = flops};
  for (int i = 0; i < args.input_count(); ++i) {
    if (args.has(i)) add_saturating(cost.bytes_read, bytes_of(args.type(i)));
  }
  for (const TensorType& output : args.outputs) {
    add_saturating(cost.bytes_written, bytes_of(output));
  }
  return cost;
}

// So many FLOPs for each element of the first output (pointwise) or of the first input (reduced).
template <int kFlops>
Cost per_output_element(const OpArgs& args) {
  return with_flops(args, saturating_multiply(kFlops, args.outputs[0].elements()));
}
template <int kFlops>
Cost per_input_element(const OpArgs& args) {
  return with_flops(args, saturating_multiply(kFlops, args.type(0).elements()));
}

// Ops that read as many bytes of their input as they write, no matter how large it is.
inline Cost copies_output(const OpArgs& args) {
  Cost cost;
  for (const TensorType& output : args.outputs) {
    add_saturating(cost.bytes_written, bytes_of(output));
  }
  cost.bytes_read = cost.bytes_written;
  return cost;
}

// Views and results known at compile time.
inline Cost no_cost(const OpArgs&) { return {}; }

}  // namespace trainscope
