// What the ops that drop elements out have in common: ratio, seed and stream.
#pragma once

#include "engine/core/error.h"
#include "engine/ir/op_def.h"

namespace trainscope {

inline constexpr AttributeSpec kDropoutSeed{"seed", "of the run"};
inline constexpr AttributeSpec kDropoutStream{"stream", "one number for each dropout of the model"};

inline DropoutParams dropout_params(const OpArgs& args, double default_ratio) {
  const double ratio = args.attributes.number("ratio", default_ratio);
  require(ratio >= 0.0 && ratio < 1.0, ErrorCode::kBadInput,
          "attribute 'ratio' is {}, expected a number in [0, 1)", ratio);
  return {.ratio = ratio,
          .seed = static_cast<std::uint64_t>(args.attributes.integer("seed", 0)),
          .stream = static_cast<std::uint64_t>(args.attributes.integer("stream", 0))};
}

}  // namespace trainscope
