// How reductions see their input: kept axes times reduced axes times columns.
#pragma once

#include <cstdint>

#include "kernels/api/params.h"
#include "kernels/api/strided_loop.h"

namespace trainscope {

// Of each kept place, the reduced places are joined into one result. Where the last axis is kept,
// it is left out of `kept`: `columns` results lie side by side.
struct ReduceLayout {
  StridedLoop kept{.operands = 2};     // output, input
  StridedLoop reduced{.operands = 1};  // input
  std::int64_t columns = 1;

  std::int64_t outputs() const { return kept.elements * columns; }
};

ReduceLayout reduce_layout(const Shape& input, const ReduceParams& params);

}  // namespace trainscope
