// A function's nodes in a graph.
#pragma once

#include <span>
#include <vector>

#include "engine/functions/function_text.h"
#include "engine/ir/builder.h"

namespace trainscope {

struct FunctionCall {
  Builder& b;
  std::span<const ValueId> inputs;  // as many as the function has; kNoValue: left out
  const Attributes& attributes;     // of the node that the function stands for
  DType float_type = DType::kF32;   // of constants that are written as float
  // By result: whether it is asked for. What only other results need is not built.
  std::vector<bool> wanted;
};

// The results, kNoValue for those that are not asked for or that there are none of. Throws
// kBadInput, "NAME:LINE: ...", for what does not fit together.
std::vector<ValueId> build(const FunctionText& function, const FunctionCall& call);

}  // namespace trainscope
