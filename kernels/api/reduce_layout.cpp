// The input's axes, by whether they are reduced.
#include "kernels/api/reduce_layout.h"

#include <cstddef>

namespace trainscope {

ReduceLayout reduce_layout(const Shape& input, const ReduceParams& params) {
  ReduceLayout layout;
  const Strides strides = dense_strides(input);
  int last = input.rank - 1;
  for (; last >= 0 && !params.reduced[static_cast<std::size_t>(last)]; --last) {
    layout.columns *= input[last];
  }
  Strides output_strides{};
  std::int64_t output_stride = layout.columns;
  for (int axis = last; axis >= 0; --axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (params.reduced[i]) continue;
    output_strides[i] = output_stride;
    output_stride *= input[axis];
  }
  for (int axis = 0; axis <= last; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (params.reduced[i]) {
      layout.reduced.add_axis(input[axis], {strides[i]});
    } else {
      layout.kept.add_axis(input[axis], {output_strides[i], strides[i]});
    }
  }
  return layout;
}

}  // namespace trainscope
