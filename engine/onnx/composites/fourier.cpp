// The discrete Fourier transform, a matmul with cosines and sines.
#include <cmath>
#include <numbers>

#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of the matrix

enum class Direction : std::uint8_t { kForward, kInverse };

// Of one axis, as the node gives it and as the result has it.
struct Transform {
  Direction direction = Direction::kForward;
  bool one_sided = false;     // the half of the frequencies that real numbers have
  std::int64_t length = 0;    // numbers that are transformed: zeros follow those that there are
  std::int64_t given = 0;     // along the axis of the input
  std::int64_t parts = 0;     // 1: real, 2: real and imaginary
  std::int64_t made = 0;      // along the axis of the result
  std::int64_t to_parts = 0;  // its parts
  bool to_real() const { return one_sided && direction == Direction::kInverse; }
};

// e^(2 pi i turns / length), exact at the quarters of a turn.
struct Rotation {
  double cosine = 1.0;
  double sine = 0.0;
};
Rotation rotation(std::int64_t turns, std::int64_t length) {
  turns %= length;
  constexpr Rotation kQuarters[] = {{1.0, 0.0}, {0.0, 1.0}, {-1.0, 0.0}, {0.0, -1.0}};
  if (4 * turns % length == 0) return kQuarters[4 * turns / length];
  const double angle =
      2.0 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(length);
  return {std::cos(angle), std::sin(angle)};
}

// How often an element of the input counts: a frequency that stands for its mirror image too,
// twice.
double weight_of(const Transform& t, std::int64_t from) {
  const std::int64_t end = t.to_real() ? t.length / 2 + 1 : t.length;
  if (from >= end) return 0.0;
  const double share =
      t.direction == Direction::kInverse ? 1.0 / static_cast<double>(t.length) : 1.0;
  const bool mirrored = t.to_real() && from != 0 && 2 * from != t.length;
  return mirrored ? 2.0 * share : share;
}

// [given * parts, made * to_parts]: what each number of the input adds to each of the result.
Tensor matrix_of(const Transform& t, DType dtype) {
  Tensor matrix(
      TensorType{.dtype = DType::kF64, .shape = {t.given * t.parts, t.made * t.to_parts}});
  const std::span<double> all = matrix.values<double>();
  const double sign = t.direction == Direction::kInverse ? 1.0 : -1.0;
  const auto columns = static_cast<std::size_t>(t.made * t.to_parts);
  for (std::int64_t from = 0; from < t.given; ++from) {
    const double weight = weight_of(t, from);
    for (std::int64_t to = 0; to < t.made && weight != 0.0; ++to) {
      const Rotation r = rotation(from * to, t.length);
      const double cosine = weight * r.cosine;
      const double sine = weight * sign * r.sine;
      double* real = &all[static_cast<std::size_t>(from * t.parts) * columns +
                          static_cast<std::size_t>(to * t.to_parts)];
      real[0] = cosine;
      if (t.to_parts == 2) real[1] = sine;
      if (t.parts == 1) continue;
      double* imaginary = real + columns;
      imaginary[0] = -sine;
      if (t.to_parts == 2) imaginary[1] = cosine;
    }
  }
  return convert(matrix, dtype);
}

int axis_of(Composition& c, int rank) {
  std::int64_t axis = c.attributes().integer("axis", 1);
  if (c.node().opset >= 20) {
    axis = -2;
    if (c.has(2)) {
      const Ints given = c.known_ints(2);
      c.require(given.size() == 1, "one axis is expected, there are {}", given.size());
      axis = given[0];
    }
  }
  const int found = normalized_axis(axis, rank);
  c.require(found < rank - 1, "axis {} holds the real and the imaginary part", axis);
  return found;
}

Transform transform_of(Composition& c, const Shape& x, int axis) {
  Transform t;
  const Attributes& attributes = c.attributes();
  if (attributes.integer("inverse", 0) != 0) t.direction = Direction::kInverse;
  t.one_sided = attributes.integer("onesided", 0) != 0;
  t.given = x[axis];
  t.parts = x[x.rank - 1];
  c.require(t.parts == 1 || t.parts == 2, "the last axis of {} must have 1 element or 2",
            shape_text(x));
  t.length = t.to_real() ? 2 * (t.given - 1) : t.given;
  if (c.has(1)) {
    const Ints length = c.known_ints(1);
    c.require(length.size() == 1, "one dft_length is expected, there are {}", length.size());
    t.length = length[0];
  }
  c.require(t.length >= 1, "{} numbers cannot be transformed", t.length);
  t.made = t.one_sided && !t.to_real() ? t.length / 2 + 1 : t.length;
  t.to_parts = t.to_real() ? 1 : 2;
  c.require_supported(t.length <= kMostElements && t.given * t.parts <= kMostElements / t.made / 2,
                      "{} numbers are too many for a matrix of them", t.length);
  return t;
}

void compose_dft(Composition& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  c.require(shape.rank >= 2, "input 0 must have an axis of parts after the others, is {}",
            shape_text(shape));
  const int axis = axis_of(c, shape.rank);
  const Transform t = transform_of(c, shape, axis);
  Ints order;  // the transformed axis before the parts; undone by itself
  for (int a = 0; a < shape.rank; ++a) order.push_back(a);
  std::swap(order[static_cast<std::size_t>(axis)], order[static_cast<std::size_t>(shape.rank - 2)]);
  const DType within = DType::kF64;  // sums in which large numbers may cancel out
  const ValueId moved = c.transpose(c.cast(x, within), order);
  Shape rows = c.shape(moved);
  Ints flat(rows.span().begin(), rows.span().end() - 2);
  Ints whole = flat;
  flat.push_back(t.given * t.parts);
  whole.insert(whole.end(), {t.made, t.to_parts});
  const ValueId y = c("MatMul", {c.reshape(moved, flat), c.constant(matrix_of(t, within))});
  c.result(0, c.cast(c.transpose(c.reshape(y, whole), order), c.dtype(x)));
}

constexpr CompositeOp kRows[] = {
    {"DFT", 17, 2, 1, "axis inverse onesided", compose_dft},
    {"DFT", 20, 3, 1, "inverse onesided", compose_dft},
};

}  // namespace

std::span<const CompositeOp> fourier_composites() { return kRows; }

}  // namespace trainscope
