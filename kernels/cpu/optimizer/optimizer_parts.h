// The elements of all parameters in one pass, however they are divided into tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "kernels/cpu/optimizer/optimizer.h"
#include "kernels/cpu/optimizer/optimizer_elements.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {

// Where each tensor begins when all are laid end to end; one more entry for the end.
using Offsets = std::vector<std::int64_t>;

inline std::shared_ptr<const Offsets> offsets_of(std::span<const TensorView> tensors) {
  auto offsets = std::make_shared<Offsets>(1, 0);
  for (const TensorView& tensor : tensors) offsets->push_back(offsets->back() + tensor.elements());
  return offsets;
}

inline Prepared prepare_step(const PrepareArgs& a) {
  const std::size_t count = std::get<OptimizerParams>(a.params).weight_decay.size();
  return {.state = offsets_of(a.inputs.first(count))};
}

// Calls f(part) for the parts of all tensors, divided over the threads by elements.
template <typename F>
void for_each_part(int threads, const Offsets& offsets, F f) {
  parallel_for(threads, offsets.back(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    auto next = std::upper_bound(offsets.begin(), offsets.end(), begin);
    for (; begin < end; ++next) {
      const auto index = static_cast<std::size_t>(next - offsets.begin() - 1);
      const std::int64_t part_end = std::min(end, *next);
      if (part_end > begin) {
        f(Part{.index = index, .begin = begin - offsets[index], .end = part_end - offsets[index]});
      }
      begin = part_end;
    }
  });
}

// Where a part of the tensors lies.
template <typename T>
UpdatedElements<T> elements_of(const StepInputs& in, const Part& part) {
  UpdatedElements<T> elements{.count = part.end - part.begin, .gradient = in.input<T>(1, part)};
  for (std::size_t group = 0; group < in.kept_groups(); ++group) {
    elements.old[group] = in.input<T>(group == 0 ? 0 : group + 1, part);
    elements.next[group] = in.output<T>(group, part);
  }
  return elements;
}

}  // namespace trainscope::cpu
