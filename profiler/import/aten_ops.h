// The ONNX op of what PyTorch's profiler calls an op: the tables are aten_ops.def
// and autograd_ops.def.
#pragma once

#include <string>
#include <string_view>

namespace trainscope::profiler {

// "Gemm" of "aten::linear", "GemmGrad" of "AddmmBackward0" and of the autograd engine's span around
// it, "Accumulate" of AccumulateGrad, "AdamWStep" of "Optimizer.step#AdamW.step", X of "onnx::X";
// empty: not in the table.
std::string onnx_op_of(std::string_view name);

// Without the autograd engine's words around it: "AddmmBackward0".
std::string_view without_engine(std::string_view name);

}  // namespace trainscope::profiler
