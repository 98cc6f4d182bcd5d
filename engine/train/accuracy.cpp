// Counting of correct labels.
#include "engine/train/accuracy.h"

#include "engine/core/error.h"

namespace trainscope {
namespace {

// Scores are [outer, classes, inner], labels [outer, inner].
struct Layout {
  std::int64_t outer = 1;
  std::int64_t classes = 1;
  std::int64_t inner = 1;
};

Layout layout_of(const Shape& shape, std::int64_t axis) {
  Layout layout;
  for (int a = 0; a < shape.rank; ++a) {
    std::int64_t& extent = a < axis ? layout.outer : a == axis ? layout.classes : layout.inner;
    extent *= shape[a];
  }
  return layout;
}

std::int64_t label_at(const TensorView& labels, std::int64_t i) {
  return labels.type.dtype == DType::kI32 ? std::int64_t{labels.as<const std::int32_t>()[i]}
                                          : labels.as<const std::int64_t>()[i];
}

// The class of the highest score; neighbouring classes are `inner` elements apart.
template <typename T>
std::int64_t best_class(const T* scores, const Layout& layout) {
  std::int64_t best = 0;
  for (std::int64_t c = 1; c < layout.classes; ++c) {
    if (scores[c * layout.inner] > scores[best * layout.inner]) best = c;
  }
  return best;
}

template <typename T>
LabelCount count(const TensorView& scores, const TensorView& labels, const Layout& layout,
                 std::int64_t ignore_index) {
  LabelCount counted;
  const T* data = scores.as<const T>();
  for (std::int64_t row = 0; row < layout.outer * layout.inner; ++row) {
    const std::int64_t label = label_at(labels, row);
    if (label == ignore_index) continue;
    const std::int64_t outer = row / layout.inner;
    const T* first = data + outer * layout.classes * layout.inner + row % layout.inner;
    ++counted.labels;
    if (best_class(first, layout) == label) ++counted.correct;
  }
  return counted;
}

}  // namespace

LabelCount count_correct(const TensorView& scores, const TensorView& labels,
                         const ScoredClasses& classes) {
  const std::int64_t rank = scores.shape().rank;
  const std::int64_t axis = classes.class_axis < 0 ? classes.class_axis + rank : classes.class_axis;
  CHECK_INVARIANT(axis >= 0 && axis < rank);
  const Layout layout = layout_of(scores.shape(), axis);
  CHECK_INVARIANT(labels.elements() == layout.outer * layout.inner);
  const std::int64_t ignored = classes.ignore_index;
  switch (scores.type.dtype) {
    case DType::kF64:
      return count<double>(scores, labels, layout, ignored);
    case DType::kBF16:
      return count<BFloat16>(scores, labels, layout, ignored);
    case DType::kF16:
      return count<Float16>(scores, labels, layout, ignored);
    default:
      return count<float>(scores, labels, layout, ignored);
  }
}

}  // namespace trainscope
