// What kind of work an op is: a few classes that have a colour each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainscope::gui {

enum class OpClass : std::uint8_t {
  kMatmul,     // and convolutions: what does most FLOPs
  kAttention,  // and softmax
  kNorm,
  kActivation,  // a function of each element
  kPointwise,   // sums, products, comparisons of elements
  kReduction,   // and pools
  kMovement,    // copies, views, lookups
  kLoss,
  kOptimizer,
  kOther,
};
inline constexpr std::size_t kOpClasses = 10;

// Of an op or its gradient: "MatMul", "GeluGrad".
OpClass class_of(std::string_view op);
// "matmul", "attention", ..., "other".
std::string_view name_of(OpClass op_class);

}  // namespace trainscope::gui
