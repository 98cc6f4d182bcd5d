// Normalisations that are written with others.
#include <vector>

#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

Tensor filled_row(std::int64_t size, double number, DType dtype) {
  const std::vector<double> row(static_cast<std::size_t>(size), number);
  return convert(Tensor::of<double>(Shape{size}, row), dtype);
}

struct Groups {
  std::int64_t count = 0;
  std::int64_t channels = 0;
  std::int64_t axes = 0;  // of x
};

// x [N, C, ...] with the mean and deviation of each group of channels taken out. To the instance
// norm a group is a channel.
ValueId normalized(Composition& c, ValueId x, const Groups& groups) {
  const Shape shape = c.shape(x);
  const DType dtype = c.dtype(x);
  const std::int64_t rest = shape.elements() == 0 ? 0 : shape.elements() / shape[0] / groups.count;
  const ValueId grouped = c.reshape(x, {shape[0], groups.count, rest});
  const ValueId ones = c.constant(filled_row(groups.count, 1.0, dtype));
  const ValueId zeros = c.constant(filled_row(groups.count, 0.0, dtype));
  const double epsilon = c.attributes().number("epsilon", 1e-5);
  const ValueId y = c("InstanceNormalization", {grouped, ones, zeros}, {{"epsilon", epsilon}});
  return c.reshape(y, {shape.span().begin(), shape.span().end()});
}

// A row with a number for each channel, or for each group (opsets 18 to 20): [C, 1, ...].
ValueId by_channel(Composition& c, ValueId row, const Groups& groups) {
  const bool by_group = c.node().opset < 21;
  const std::int64_t expected = by_group ? groups.count : groups.channels;
  c.require(c.shape(row) == Shape{expected}, "scale and bias must have the shape [{}], one is {}",
            expected, shape_text(c.shape(row)));
  if (by_group && groups.count != groups.channels) {
    const std::int64_t times = groups.channels / groups.count;
    row = c("Expand", {c.reshape(row, {groups.count, 1}), c.ints({groups.count, times})});
  }
  Ints dims(static_cast<std::size_t>(groups.axes - 1), 1);
  dims[0] = groups.channels;
  return c.reshape(row, dims);
}

void compose_group_norm(Composition& c) {
  const ValueId given = c.input(0);
  const DType dtype = c.dtype(given);
  const Shape shape = c.shape(given);
  c.require(shape.rank >= 2, "input 0 must have a batch and a channel axis, is {}",
            shape_text(shape));
  const Groups groups{
      .count = c.attributes().integer("num_groups", 0), .channels = shape[1], .axes = shape.rank};
  c.require(groups.count > 0 && groups.channels % groups.count == 0,
            "{} channels cannot be cut into num_groups={}", groups.channels, groups.count);
  const ValueId x = c.cast(normalized(c, c.cast(given, computed(dtype)), groups), dtype);
  const ValueId scaled = c.multiply(x, by_channel(c, c.input(1), groups));
  c.result(0, c.add(scaled, by_channel(c, c.input(2), groups)));
}

// What RMSNormalization was called before ONNX had it: opset 1 of ONNX's domain, in practice.
void compose_simplified_norm(Composition& c) {
  const Attributes attributes{{"axis", c.attributes().integer("axis", -1)},
                              {"epsilon", c.attributes().number("epsilon", 1e-5)}};
  c.result(0, c("RMSNormalization", {c.input(0), c.input(1)}, attributes));
}

constexpr CompositeOp kRows[] = {
    {"SimplifiedLayerNormalization", 1, 2, 2, "axis epsilon stash_type", compose_simplified_norm},
    {"GroupNormalization", 18, 3, 1, "epsilon num_groups stash_type", compose_group_norm},
};

}  // namespace

std::span<const CompositeOp> norm_composites() { return kRows; }

}  // namespace trainscope
