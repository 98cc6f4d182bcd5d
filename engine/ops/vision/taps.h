// Places between the elements of a tensor as elements and weights, in ops that have gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/builder.h"

namespace trainscope {

enum class SampleMode : std::uint8_t { kNearest, kLinear, kCubic };
enum class SamplePadding : std::uint8_t { kZeros, kBorder, kReflection };

struct SampleRule {
  SampleMode mode = SampleMode::kLinear;
  SamplePadding padding = SamplePadding::kZeros;
  bool align_corners = false;  // reflection is about the outermost elements, else their edges
};

// y [N, C, P]: x [N, C, in...], whose axes `in` are not empty, read at places counted in elements:
// for each axis of `in` one value [N, P, 1]. Of cubic sums the elements are padded, else the
// places.
ValueId sample_at(Builder& b, ValueId x, const std::vector<ValueId>& places,
                  const SampleRule& rule);

}  // namespace trainscope
