// SgdRowsStep, AdamWRowsStep: the rows of one parameter that a sparse gradient names, in place.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/optimizer/optimizer.h"
#include "kernels/cpu/optimizer/optimizer_elements.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

// Inputs: the parameter [size, ...], rows [most, ...], states like the parameter, ids [most],
// count [], scalars. Rows from `count` on, and those whose id is outside, are left alone.
template <typename T>
class GradientRows {
 public:
  GradientRows(const StepInputs& in, const RunArgs& args)
      : in_(in),
        ids_(args.inputs[1 + in.kept_groups()].as<const std::int64_t>()),
        size_(args.inputs[0].shape()[0]) {
    const std::int64_t most = args.inputs[1].shape()[0];
    const std::int64_t count = *args.inputs[2 + in.kept_groups()].as<const std::int64_t>();
    count_ = std::clamp<std::int64_t>(count, 0, most);
    width_ = size_ == 0 ? 0 : args.inputs[0].elements() / size_;
  }

  std::int64_t count() const { return count_; }
  std::int64_t width() const { return width_; }

  // Of row n of the gradient. The other rows of the outputs are there already: what is read is what
  // is written.
  UpdatedElements<T> elements(std::int64_t n) const {
    const std::int64_t id = ids_[n];
    if (id < 0 || id >= size_) return {};
    const Chunk there{.begin = id * width_, .end = (id + 1) * width_};
    UpdatedElements<T> elements{.count = width_,
                                .gradient = in_.input<T>(1, {.begin = n * width_})};
    for (std::size_t group = 0; group < in_.kept_groups(); ++group) {
      elements.next[group] = in_.output<T>(group, there);
      elements.old[group] = elements.next[group];
    }
    return elements;
  }

 private:
  const StepInputs& in_;
  const std::int64_t* ids_;
  std::int64_t size_;   // rows of the parameter
  std::int64_t count_;  // rows of the gradient that count
  std::int64_t width_;  // elements of a row
};

// with_update(use) calls use(update), where update(elements) changes elements.
template <typename T, typename WithUpdate>
void rows_step(const RunArgs& args, const WithUpdate& with_update) {
  const StepInputs in(args);
  keep_states(args);
  if (in.is_left_out()) return;
  const GradientRows<T> rows(in, args);
  with_update(in, [&](auto update) {
    parallel_for(args.threads, rows.count(), row_grain(rows.width()),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t n = begin; n < end; ++n) update(rows.elements(n));
                 });
  });
}

template <typename T>
void sgd_rows_step(const RunArgs& args) {
  rows_step<T>(args, [](const StepInputs& in, auto use) { with_sgd_update<T>(in, 0, use); });
}

template <typename T>
void adam_rows_step(const RunArgs& args) {
  rows_step<T>(args, [](const StepInputs& in, auto use) { with_adam_update<T>(in, 0, use); });
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("SgdRowsStep", kDTypeOf<T>,
            {.name = "sgd_rows_step.reference",
             .supports = all_outputs_present,
             .run = sgd_rows_step<T>});
  table.add("AdamWRowsStep", kDTypeOf<T>,
            {.name = "adamw_rows_step.reference",
             .supports = all_outputs_present,
             .run = adam_rows_step<T>});
}

}  // namespace

void add_optimizer_rows(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
