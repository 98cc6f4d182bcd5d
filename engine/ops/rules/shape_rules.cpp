// Shape and in-place rules and checks that op rows share.
#include "engine/ops/rules/shape_rules.h"

#include <algorithm>
#include <limits>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  require(!__builtin_add_overflow(a, b, &sum), ErrorCode::kBadInput, "size {} + {} is too large", a,
          b);
  return sum;
}

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  require(!__builtin_mul_overflow(a, b, &product), ErrorCode::kBadInput,
          "size {} * {} is too large", a, b);
  return product;
}

Shape checked_shape(std::span<const std::int64_t> dims) {
  require_supported(dims.size() <= static_cast<std::size_t>(kMaxRank),
                    "a tensor of {} dimensions; at most {} are supported", dims.size(), kMaxRank);
  // No machine has more; keeps costs and sums of sizes far from overflow.
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 48;
  // The product without the zeros, so that [0, 2^62, 2^62] is refused: views may drop the zero.
  std::int64_t bytes = 8;
  for (std::int64_t d : dims) {
    require(d >= 0, ErrorCode::kBadInput, "shape {} has a negative dimension", shape_text(dims));
    const bool overflow = d != 0 && __builtin_mul_overflow(bytes, d, &bytes);
    require(!overflow && bytes <= kMostBytes, ErrorCode::kBadInput,
            "shape {} has too many elements", shape_text(dims));
  }
  return Shape(dims);
}

void require_float(const OpArgs& args, int input) {
  require(is_float(args.type(input).dtype), ErrorCode::kBadInput,
          "input {} must be a float tensor, is {}", input, type_text(args.type(input)));
}

void require_number(const OpArgs& args, int input) {
  require(is_number(args.type(input).dtype), ErrorCode::kBadInput,
          "input {} must be a tensor of numbers, is {}", input, type_text(args.type(input)));
}

void require_dtype(const OpArgs& args, int input, DType dtype) {
  require(args.type(input).dtype == dtype, ErrorCode::kBadInput, "input {} must be {}, is {}",
          input, name_of(dtype), type_text(args.type(input)));
}

void require_index(const OpArgs& args, int input) {
  const DType dtype = args.type(input).dtype;
  require(dtype == DType::kI32 || dtype == DType::kI64, ErrorCode::kBadInput,
          "input {} must be i64 or i32, is {}", input, type_text(args.type(input)));
}

void require_same_dtypes(const OpArgs& args, int first) {
  for (int i = first + 1; i < args.input_count(); ++i) {
    if (!args.has(i)) continue;
    require(args.type(i).dtype == args.type(first).dtype, ErrorCode::kBadInput,
            "inputs {} and {} must have one element type, are {} and {}", first, i,
            type_text(args.type(first)), type_text(args.type(i)));
  }
}

void require_rank(const OpArgs& args, int input, int rank) {
  require(args.rank(input) == rank, ErrorCode::kBadInput, "input {} must have {} dimensions, is {}",
          input, rank, type_text(args.type(input)));
}

void require_shape(const OpArgs& args, int input, const Shape& expected) {
  require(args.shape(input) == expected, ErrorCode::kBadInput, "input {} must be {}, is {}", input,
          shape_text(expected), shape_text(args.shape(input)));
}

void require_same_types(const OpArgs& args, int a, int b) {
  require(args.type(a) == args.type(b), ErrorCode::kBadInput,
          "inputs {} and {} must have one type, are {} and {}", a, b, type_text(args.type(a)),
          type_text(args.type(b)));
}

std::vector<int> normalized_axes(std::span<const std::int64_t> axes, int rank) {
  std::vector<int> result;
  for (std::int64_t axis : axes) result.push_back(normalized_axis(axis, rank));
  std::sort(result.begin(), result.end());
  const auto twice = std::adjacent_find(result.begin(), result.end());
  require(twice == result.end(), ErrorCode::kBadInput, "axis {} is given twice",
          twice == result.end() ? 0 : *twice);
  return result;
}

std::int64_t onnx_number(DType dtype) { return row_of(dtype).onnx_number; }

DType dtype_of_onnx(std::int64_t number) {
  for (DType dtype : kAllDTypes) {
    if (onnx_number(dtype) == number) return dtype;
  }
  constexpr std::int64_t kNewestNumber = 26;  // int2
  require(number >= 1 && number <= kNewestNumber, ErrorCode::kBadInput,
          "{} is not the number of an element type", number);
  fail_unsupported("element type {} is not supported (8 is string, 14 and 15 are complex)", number);
}

Types same_as_first(const OpArgs& args) { return {args.type(0)}; }

Types float_same_as_first(const OpArgs& args) {
  require_float(args, 0);
  return {args.type(0)};
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape result;
  result.rank = std::max(a.rank, b.rank);
  for (int axis = 0; axis < result.rank; ++axis) {
    const int in_a = axis - (result.rank - a.rank);
    const int in_b = axis - (result.rank - b.rank);
    const std::int64_t size_a = in_a < 0 ? 1 : a[in_a];
    const std::int64_t size_b = in_b < 0 ? 1 : b[in_b];
    require(size_a == size_b || size_a == 1 || size_b == 1, ErrorCode::kBadInput,
            "shapes {} and {} cannot be broadcast together", shape_text(a), shape_text(b));
    result[axis] = size_a == 1 ? size_b : size_a;
  }
  return checked_shape(result);
}

Types broadcast_numbers(const OpArgs& args) {
  require_number(args, 0);
  require_same_dtypes(args);
  Shape shape = args.shape(0);
  for (int i = 1; i < args.input_count(); ++i) {
    if (args.has(i)) shape = broadcast_shapes(shape, args.shape(i));
  }
  return {{.dtype = args.type(0).dtype, .shape = shape}};
}

Types broadcast_given_numbers(const OpArgs& args) {
  for (int i = 0; i < args.input_count(); ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is left out", i);
  }
  return broadcast_numbers(args);
}

Types broadcast_floats(const OpArgs& args) {
  require_float(args, 0);
  return broadcast_numbers(args);
}

Shape reduced_shape(const Shape& shape, const ReduceParams& reduce, bool keep_dims) {
  Shape result;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const bool gone = reduce.reduced[static_cast<std::size_t>(axis)];
    if (!gone) result.push_back(shape[axis]);
    if (gone && keep_dims) result.push_back(1);
  }
  return result;
}

namespace {

// Larger kernels, strides, dilations and pads are refused: no product of two overflows.
constexpr std::int64_t kMaxWindowSize = std::numeric_limits<std::int32_t>::max();

// Attribute `name` as one number per spatial axis (two for pads: `count`).
Ints window_sizes(const OpArgs& args, std::string_view name, std::size_t count,
                  std::int64_t absent) {
  const Ints sizes = args.attributes.integers(name, Ints(count, absent));
  require(sizes.size() == count, ErrorCode::kBadInput, "attribute {} has {} numbers, {} expected",
          name, sizes.size(), count);
  for (std::int64_t size : sizes) {
    require(size >= absent && size <= kMaxWindowSize, ErrorCode::kBadInput,
            "attribute {} holds {}, which is outside [{}, {}]", name, size, absent, kMaxWindowSize);
  }
  return sizes;
}

std::int64_t extent(const WindowParams& window, std::size_t axis) {
  return (window.kernel[axis] - 1) * window.dilation[axis] + 1;
}

// auto_pad SAME_UPPER and SAME_LOWER: ceil(size / stride) windows, the odd element after or before.
void pad_to_same(WindowParams& window, const Shape& input, bool upper) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(window.rank); ++i) {
    const std::int64_t size = input[static_cast<int>(i) + 2];
    if (size == 0) continue;
    const std::int64_t windows = (size - 1) / window.stride[i] + 1;
    const std::int64_t total =
        std::max<std::int64_t>(0, (windows - 1) * window.stride[i] + extent(window, i) - size);
    window.pad_begin[i] = upper ? total / 2 : total - total / 2;
    window.pad_end[i] = total - window.pad_begin[i];
  }
}

}  // namespace

WindowParams window_params(const OpArgs& args, const Shape& input,
                           std::span<const std::int64_t> kernel) {
  const int rank = input.rank - 2;
  require(rank >= 1 && rank <= kMaxSpatialRank, ErrorCode::kBadInput,
          "the input must be [N,C,...] with 1 to {} spatial dimensions, is {}", kMaxSpatialRank,
          shape_text(input));
  const auto count = static_cast<std::size_t>(rank);
  require(kernel.size() == count, ErrorCode::kBadInput,
          "the kernel has {} spatial dimensions, the input {} has {}", kernel.size(),
          shape_text(input), rank);
  const Ints strides = window_sizes(args, "strides", count, 1);
  const Ints dilations = window_sizes(args, "dilations", count, 1);
  const Ints pads = window_sizes(args, "pads", 2 * count, 0);
  WindowParams window{.rank = rank};
  for (std::size_t i = 0; i < count; ++i) {
    require(kernel[i] >= 1 && kernel[i] <= kMaxWindowSize, ErrorCode::kBadInput,
            "the kernel {} must have sizes in [1, {}]", shape_text(kernel), kMaxWindowSize);
    window.kernel[i] = kernel[i];
    window.stride[i] = strides[i];
    window.dilation[i] = dilations[i];
    window.pad_begin[i] = pads[i];
    window.pad_end[i] = pads[i + count];
  }
  const std::string auto_pad = args.attributes.text("auto_pad", "NOTSET");
  if (auto_pad == "NOTSET") return window;
  window.pad_begin = window.pad_end = {};
  if (auto_pad == "VALID") return window;
  require(auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", ErrorCode::kBadInput,
          "attribute auto_pad is '{}'; NOTSET, VALID, SAME_UPPER and SAME_LOWER exist",
          printable(auto_pad));
  pad_to_same(window, input, auto_pad == "SAME_UPPER");
  return window;
}

std::int64_t window_output_size(const WindowParams& window, int axis, std::int64_t size,
                                Rounding rounding) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t padded =
      checked_add(size, checked_add(window.pad_begin[i], window.pad_end[i]));
  const std::int64_t room = padded - extent(window, i);
  // Rounded up, a first window may reach beyond the end, by less than a stride.
  const std::int64_t beyond = rounding == Rounding::kCeil && size > 0 ? window.stride[i] - 1 : 0;
  require(room + beyond >= 0, ErrorCode::kBadInput,
          "a window of {} elements does not fit spatial axis {} of {} elements with padding",
          extent(window, i), axis, padded);
  if (room < 0) return 1;
  std::int64_t last = room / window.stride[i];
  if (rounding == Rounding::kCeil && room % window.stride[i] != 0 &&
      (last + 1) * window.stride[i] < size + window.pad_begin[i]) {
    ++last;
  }
  return last + 1;
}

Shape window_output_shape(const WindowParams& window, const Shape& input, std::int64_t channels,
                          Rounding rounding) {
  Shape output{input[0], channels};
  for (int axis = 0; axis < window.rank; ++axis) {
    output.push_back(window_output_size(window, axis, input[axis + 2], rounding));
  }
  return checked_shape(output);
}

std::vector<InPlace> any_input_in_place(const OpArgs& args) {
  std::vector<InPlace> result;
  for (int i = 0; i < args.input_count(); ++i) {
    if (args.has(i) && args.type(i) == args.outputs[0]) result.push_back({.output = 0, .input = i});
  }
  return result;
}

std::vector<InPlace> first_in_place(const OpArgs& args) {
  if (!args.has(0) || !(args.type(0) == args.outputs[0])) return {};
  return {{.output = 0, .input = 0}};
}

}  // namespace trainscope
