// The discrete Fourier transform: matmuls with cosines and sines, one for each factor of the length
// (Cooley and Tukey, 1965).
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

std::int64_t smallest_factor(std::int64_t n) {
  for (std::int64_t factor = 2; factor * factor <= n; ++factor) {
    if (n % factor == 0) return factor;
  }
  return n;
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
  c.require_supported(t.length <= kMostElements, "{} numbers are too many", t.length);
  std::int64_t largest = t.length;  // of the factors that have a matrix each
  while (!t.to_real() && smallest_factor(largest) < largest) largest /= smallest_factor(largest);
  c.require_supported(largest <= kMostElements / largest / 4,
                      "{} numbers would take a matrix of {} rows", t.length, largest);
  return t;
}

// --- By factors ----------------------------------------------------------------------------------
// x [rows, length, 2] times e^(+-2 pi i j k / length) of places j and k, which lie side by side:
// [rows, columns, places, 2] with length = columns * places.
ValueId times_twiddles(Composition& c, ValueId x, double sign) {
  const Shape s = c.shape(x);
  Tensor cosines(TensorType{.dtype = DType::kF64, .shape = {s[1], s[2], 1}});
  Tensor sines(cosines.type());
  for (std::int64_t j = 0; j < s[1]; ++j) {
    for (std::int64_t k = 0; k < s[2]; ++k) {
      const Rotation r = rotation(j * k, s[1] * s[2]);
      cosines.values<double>()[static_cast<std::size_t>(j * s[2] + k)] = r.cosine;
      sines.values<double>()[static_cast<std::size_t>(j * s[2] + k)] = sign * r.sine;
    }
  }
  const ValueId cosine = c.constant(convert(cosines, c.dtype(x)));
  const ValueId sine = c.constant(convert(sines, c.dtype(x)));
  const std::vector<ValueId> parts = c.multi("Split", {x}, 2, {{"axis", std::int64_t{3}}});
  const ValueId real = c("Sub", {c.multiply(parts[0], cosine), c.multiply(parts[1], sine)});
  const ValueId imaginary = c.add(c.multiply(parts[0], sine), c.multiply(parts[1], cosine));
  return c.concat({real, imaginary}, 3);
}

// x [rows, length, 2], each row transformed by a matrix.
ValueId by_matrix(Composition& c, ValueId x, Direction direction) {
  const Shape s = c.shape(x);
  const Transform t{.direction = direction,
                    .length = s[1],
                    .given = s[1],
                    .parts = 2,
                    .made = s[1],
                    .to_parts = 2};
  // The share of an inverse is taken of the whole.
  Tensor matrix = matrix_of(t, DType::kF64);
  const double share = direction == Direction::kInverse ? static_cast<double>(s[1]) : 1.0;
  for (double& element : matrix.values<double>()) element *= share;
  const ValueId flat = c.reshape(x, {s[0], 2 * s[1]});
  const ValueId y = c("MatMul", {flat, c.constant(convert(matrix, c.dtype(x)))});
  return c.reshape(y, {s[0], s[1], 2});
}

// x [rows, length, 2] transformed along the length, which is factors[0] * factors[1] * ...: first
// the elements that lie length / factors[0] apart, then what is left.
ValueId by_factors(Composition& c, ValueId x, Direction direction) {
  std::vector<std::int64_t> factors;
  const Shape whole = c.shape(x);
  for (std::int64_t left = whole[1]; left > 1; left /= factors.back()) {
    factors.push_back(smallest_factor(left));
  }
  if (factors.size() < 2) return by_matrix(c, x, direction);
  const double sign = direction == Direction::kInverse ? 1.0 : -1.0;
  std::int64_t rows = whole[0];
  std::int64_t length = whole[1];
  for (std::size_t i = 0; i + 1 < factors.size(); ++i) {
    const std::int64_t a = factors[i];
    length /= a;
    const ValueId strided = c.transpose(c.reshape(x, {rows, a, length, 2}), {0, 2, 1, 3});
    const ValueId y = by_matrix(c, c.reshape(strided, {rows * length, a, 2}), direction);
    const ValueId moved = times_twiddles(c, c.reshape(y, {rows, length, a, 2}), sign);
    rows *= a;
    x = c.reshape(c.transpose(moved, {0, 2, 1, 3}), {rows, length, 2});
  }
  x = by_matrix(c, x, direction);
  // [rows, factors[0], factors[1], ..., 2]: the first factor's place is the lowest digit.
  for (std::size_t i = factors.size() - 1; i-- > 0;) {
    rows /= factors[i];
    const std::int64_t done = c.shape(x)[1];
    const ValueId apart = c.reshape(x, {rows, factors[i], done, 2});
    x = c.reshape(c.transpose(apart, {0, 2, 1, 3}), {rows, done * factors[i], 2});
  }
  return x;
}

// v [rows, given, parts] as [rows, length, 2]: cut off or with zeros behind.
ValueId fitted(Composition& c, ValueId v, const Transform& t) {
  const std::int64_t rows = c.shape(v)[0];
  const auto zeros = [&](std::int64_t elements, std::int64_t parts) {
    return c.constant(Tensor(TensorType{.dtype = c.dtype(v), .shape = {rows, elements, parts}}));
  };
  if (t.given > t.length) v = c.slice(v, 1, 0, t.length);
  if (t.given < t.length) v = c.concat({v, zeros(t.length - t.given, t.parts)}, 1);
  return t.parts == 2 ? v : c.concat({v, zeros(t.length, 1)}, 2);
}

// rows [rows, given, parts] as [rows, made, to_parts].
ValueId transformed(Composition& c, ValueId rows, const Transform& t) {
  if (t.to_real()) {
    const ValueId flat = c.reshape(rows, {c.shape(rows)[0], t.given * t.parts});
    const ValueId y = c("MatMul", {flat, c.constant(matrix_of(t, c.dtype(rows)))});
    return c.reshape(y, {c.shape(rows)[0], t.made, 1});
  }
  const ValueId y = c.slice(by_factors(c, fitted(c, rows, t), t.direction), 1, 0, t.made);
  const bool inverse = t.direction == Direction::kInverse;
  return inverse ? c.scaled(y, 1.0 / static_cast<double>(t.length)) : y;
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
  // Where numbers cancel out the type of the sums shows. ONNX's own results are those of doubles
  // for real signals, and for complex ones in opset 17; since then those of the input's type.
  const bool doubles = t.parts == 1 || c.node().opset < 18;
  const DType within = doubles ? DType::kF64 : computed(c.dtype(x));
  const ValueId moved = c.transpose(c.cast(x, within), order);
  const Shape s = c.shape(moved);
  Ints whole(s.span().begin(), s.span().end() - 2);
  std::int64_t rows = 1;
  for (std::int64_t size : whole) rows *= size;
  whole.insert(whole.end(), {t.made, t.to_parts});
  const ValueId y = transformed(c, c.reshape(moved, {rows, t.given, t.parts}), t);
  c.result(0, c.cast(c.transpose(c.reshape(y, whole), order), c.dtype(x)));
}

constexpr CompositeOp kRows[] = {
    {"DFT", 17, 2, 1, "axis inverse onesided", compose_dft},
    {"DFT", 20, 3, 1, "inverse onesided", compose_dft},
};

}  // namespace

std::span<const CompositeOp> fourier_composites() { return kRows; }

}  // namespace trainscope
