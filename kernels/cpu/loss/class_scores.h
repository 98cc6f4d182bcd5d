// Scores of classes and the labels that name one of them: what the losses over classes share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/vector_math.h"

namespace trainscope::cpu {

inline constexpr std::int64_t kScoreLanes = 16;  // running sums that one vector loop keeps apart
inline constexpr std::int64_t kScoreRows = 16;   // rows whose losses are added up in one go

// Blocks of kScoreRows rows.
inline std::int64_t score_blocks(std::int64_t rows) { return (rows + kScoreRows - 1) / kScoreRows; }

// Scores are [outer, classes, inner], labels [outer, inner]; row r is label r's scores.
struct ScoreLayout {
  std::int64_t outer = 1;
  std::int64_t classes = 1;
  std::int64_t inner = 1;

  std::int64_t rows() const { return outer * inner; }
  // Of row r's class 0; its classes are `inner` elements apart.
  std::int64_t offset(std::int64_t row) const {
    return (row / inner) * classes * inner + row % inner;
  }
};

inline ScoreLayout score_layout(const Shape& scores, int class_axis) {
  ScoreLayout layout;
  for (int a = 0; a < scores.rank; ++a) {
    std::int64_t& extent = a < class_axis    ? layout.outer
                           : a == class_axis ? layout.classes
                                             : layout.inner;
    extent *= scores[a];
  }
  return layout;
}

// One value in every class of a row that begins at dx.
template <typename T>
void fill_row(T* dx, const ScoreLayout& layout, T value) {
  for (std::int64_t c = 0; c < layout.classes; ++c) dx[c * layout.inner] = value;
}

enum class LabelKind : std::uint8_t { kCounted, kIgnored, kOutside };

struct Labels {
  const TensorView& view;
  std::int64_t classes;
  std::int64_t ignore_index;

  std::int64_t operator[](std::int64_t row) const {
    return view.type.dtype == DType::kI32 ? std::int64_t{view.as<const std::int32_t>()[row]}
                                          : view.as<const std::int64_t>()[row];
  }
  LabelKind kind(std::int64_t label) const {
    if (label == ignore_index) return LabelKind::kIgnored;
    return label >= 0 && label < classes ? LabelKind::kCounted : LabelKind::kOutside;
  }
};

template <typename T>
Computed<T> largest(const T* x, std::int64_t n) {
  using C = Computed<T>;
  C lane[kScoreLanes];
  std::fill(lane, lane + kScoreLanes, -std::numeric_limits<C>::infinity());
  std::int64_t i = 0;
  for (; i + kScoreLanes <= n; i += kScoreLanes) {
#pragma omp simd
    for (std::int64_t l = 0; l < kScoreLanes; ++l) {
      const C score = x[i + l];
      lane[l] = score > lane[l] ? score : lane[l];
    }
  }
  for (; i < n; ++i) lane[0] = computed(x[i]) > lane[0] ? computed(x[i]) : lane[0];
  return *std::max_element(lane, lane + kScoreLanes);
}

// log(sum(exp(x))), stable. Sums of at most kChunk elements a lane are added up in double.
template <typename T>
double log_sum_exp(const T* x, std::int64_t n) {
  constexpr std::int64_t kChunk = 64 * kScoreLanes;
  using C = Computed<T>;
  const C shift = largest(x, n);
  double sum = 0.0;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const std::int64_t end = std::min(n, begin + kChunk);
    C lane[kScoreLanes] = {};
    std::int64_t i = begin;
    for (; i + kScoreLanes <= end; i += kScoreLanes) {
#pragma omp simd
      for (std::int64_t l = 0; l < kScoreLanes; ++l)
        lane[l] += vector_exp(computed(x[i + l]) - shift);
    }
    for (; i < end; ++i) lane[0] += vector_exp(computed(x[i]) - shift);
    for (C value : lane) sum += static_cast<double>(value);
  }
  return static_cast<double>(shift) + std::log(sum);
}

// The same for `width` <= kScoreLanes rows at once, whose classes are `stride` elements apart.
template <typename T>
void log_sum_exp_columns(const T* x, std::int64_t classes, std::int64_t stride, std::int64_t width,
                         double* result) {
  using C = Computed<T>;
  C shift[kScoreLanes];
  double sum[kScoreLanes] = {};
  std::fill(shift, shift + kScoreLanes, -std::numeric_limits<C>::infinity());
  for (std::int64_t c = 0; c < classes; ++c) {
    const T* row = x + c * stride;
    for (std::int64_t l = 0; l < width; ++l) {
      const C score = row[l];
      shift[l] = score > shift[l] ? score : shift[l];
    }
  }
  for (std::int64_t c = 0; c < classes; ++c) {
    const T* row = x + c * stride;
    for (std::int64_t l = 0; l < width; ++l) {
      sum[l] += static_cast<double>(vector_exp(computed(row[l]) - shift[l]));
    }
  }
  for (std::int64_t l = 0; l < width; ++l) {
    result[l] = static_cast<double>(shift[l]) + std::log(sum[l]);
  }
}

// log_sum_exp of rows [begin, end) of one block; 0 of rows whose label does not count.
template <typename T>
void block_log_sum_exp(const T* x, const ScoreLayout& layout, const Labels& labels,
                       std::int64_t begin, std::int64_t end, double* result) {
  std::int64_t row = begin;
  const auto is_ignored = [&labels](std::int64_t r) {
    return labels.kind(labels[r]) == LabelKind::kIgnored;
  };
  while (row < end) {
    const T* first = x + layout.offset(row);
    if (layout.inner == 1) {
      result[row - begin] = is_ignored(row) ? 0.0 : log_sum_exp(first, layout.classes);
      ++row;
      continue;
    }
    const std::int64_t width = std::min(end - row, layout.inner - row % layout.inner);
    double* results = result + (row - begin);
    log_sum_exp_columns(first, layout.classes, layout.inner, width, results);
    for (std::int64_t l = 0; l < width; ++l) {
      if (is_ignored(row + l)) results[l] = 0.0;
    }
    row += width;
  }
}

}  // namespace trainscope::cpu
