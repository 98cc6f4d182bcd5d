// What kind of work an op is: a few classes, which people and the window tell apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainscope {

// These numbers are in recorded plans (docs/plan-format.md): a new class comes last.
enum class OpClass : std::uint8_t {
  kUnstated,   // not known; no row of the op table says this
  kMatmul,     // and convolutions: what does most FLOPs
  kAttention,  // and softmax
  kNorm,
  kActivation,  // a nonlinear function of each element, and dropout
  kPointwise,   // sums, products, comparisons and functions of elements, random numbers
  kReduction,   // and pools, scans, orders
  kMovement,    // copies, views, lookups, scatters
  kLoss,
  kOptimizer,  // steps, and what scales gradients for them
  kOther,
};
inline constexpr std::size_t kOpClasses = 11;

// "unstated", "matmul", "attention", ..., "optimizer", "other".
std::string_view name_of(OpClass op_class);

}  // namespace trainscope
