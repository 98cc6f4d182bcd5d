// The ONNX op of what PyTorch's profiler calls an op: the tables are aten_ops.def
// and autograd_ops.def.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope::profiler {

// "Gemm" of "aten::linear", "GemmGrad" of "AddmmBackward0" and of the autograd engine's span around
// it, "Accumulate" of AccumulateGrad, "AdamWStep" of "Optimizer.step#AdamW.step", X of "onnx::X";
// empty: not in the table.
std::string onnx_op_of(std::string_view name);

// Without the autograd engine's words around it: "AddmmBackward0".
std::string_view without_engine(std::string_view name);

// 2MNK of mm, addmm, bmm and baddbmm by the shapes of their inputs: PyTorch's traces have no FLOPs.
// 0: another op, or shapes that are none of a matmul's.
std::int64_t matmul_flops(std::string_view name,
                          const std::vector<std::vector<std::int64_t>>& shapes);

}  // namespace trainscope::profiler
