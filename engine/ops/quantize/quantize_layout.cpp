// Where scales and zero points belong.
#include "engine/ops/quantize/quantize_layout.h"

#include <algorithm>
#include <cmath>

#include "engine/core/text.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {
namespace {

void require_blocks(const OpArgs& args, int scale, const QuantizeParams& layout) {
  const Shape& x = args.shape(0);
  Shape expected = x;
  expected[layout.axis] = (x[layout.axis] + layout.block_size - 1) / layout.block_size;
  require(args.shape(scale) == expected, ErrorCode::kBadInput,
          "input {} must be {} for blocks of {} along axis {} of {}, is {}", scale,
          shape_text(expected), layout.block_size, layout.axis, shape_text(x),
          shape_text(args.shape(scale)));
}

}  // namespace

QuantizeParams quantize_layout(const OpArgs& args, int scale) {
  QuantizeParams layout;
  const Shape& x = args.shape(0);
  if (args.type(scale).elements() == 1 && args.rank(scale) <= 1) return layout;
  layout.axis = args.axis("axis", 1, x.rank);
  layout.block_size = args.attributes.integer("block_size", 0);
  require(layout.block_size >= 0, ErrorCode::kBadInput, "attribute block_size is {}",
          layout.block_size);
  if (layout.block_size > 0) {
    // A block that is longer than the axis covers it.
    layout.block_size = std::min(layout.block_size, std::max<std::int64_t>(1, x[layout.axis]));
    require_blocks(args, scale, layout);
    return layout;
  }
  require(args.rank(scale) == 1 && args.shape(scale)[0] == x[layout.axis], ErrorCode::kBadInput,
          "input {} must hold one element or one for each of the {} indices of axis {}, is {}",
          scale, x[layout.axis], layout.axis, type_text(args.type(scale)));
  return layout;
}

ValueId spread_scale(Builder& b, ValueId v, const Shape& shape, const QuantizeParams& layout) {
  const Shape given = b.shape(v);
  if (given.elements() == 1 && given.rank <= 1) return b.reshape(v, {});
  Shape along;
  for (int a = 0; a < shape.rank; ++a) along.push_back(a == layout.axis ? shape[a] : 1);
  if (layout.block_size == 0) return b.reshape(v, along);
  // [.., blocks, ..] -> [.., blocks, 1, ..] -> [.., blocks, size, ..] -> [.., blocks * size, ..]
  Shape split;
  Shape expanded;
  Shape joined = given;
  for (int a = 0; a < given.rank; ++a) {
    split.push_back(given[a]);
    expanded.push_back(given[a]);
    if (a != layout.axis) continue;
    split.push_back(1);
    expanded.push_back(layout.block_size);
    joined[a] = given[a] * layout.block_size;
  }
  const ValueId copies = b("Expand", {b.reshape(v, split), b.ints(ints_of(expanded))});
  const ValueId whole = b.reshape(copies, joined);
  if (joined[layout.axis] == shape[layout.axis]) return whole;
  return b("Slice", {whole, b.ints({0}), b.ints({shape[layout.axis]}), b.ints({layout.axis})});
}

bool is_quantized_integer(DType dtype) {
  const bool small =
      dtype == DType::kI4 || dtype == DType::kU4 || dtype == DType::kI2 || dtype == DType::kU2;
  return small || (is_integer_type(dtype) && size_of(dtype) <= 2);
}

IntegerRange integer_range(DType dtype) {
  const bool with_sign =
      dtype == DType::kI4 || dtype == DType::kI2 || dtype == DType::kI8 || dtype == DType::kI16;
  const int bits = row_of(dtype).file_bits;
  if (with_sign) return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1.0};
  return {0.0, std::ldexp(1.0, bits) - 1.0};
}

}  // namespace trainscope
