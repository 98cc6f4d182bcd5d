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

// Calls f(chunk) for the chunks of all tensors, divided over the threads by elements.
template <typename F>
void for_each_chunk(int threads, const Offsets& offsets, F f) {
  parallel_for(threads, offsets.back(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    auto next = std::upper_bound(offsets.begin(), offsets.end(), begin);
    for (; begin < end; ++next) {
      const auto index = static_cast<std::size_t>(next - offsets.begin() - 1);
      const std::int64_t chunk_end = std::min(end, *next);
      if (chunk_end > begin) {
        f(Chunk{
            .index = index, .begin = begin - offsets[index], .end = chunk_end - offsets[index]});
      }
      begin = chunk_end;
    }
  });
}

// Where a part of the tensors lies.
template <typename T>
UpdatedElements<T> elements_of(const StepInputs& in, const Chunk& chunk) {
  UpdatedElements<T> elements{.count = chunk.end - chunk.begin, .gradient = in.input<T>(1, chunk)};
  for (std::size_t group = 0; group < in.kept_groups(); ++group) {
    elements.old[group] = in.input<T>(group == 0 ? 0 : group + 1, chunk);
    elements.next[group] = in.output<T>(group, chunk);
  }
  return elements;
}

}  // namespace trainscope::cpu
