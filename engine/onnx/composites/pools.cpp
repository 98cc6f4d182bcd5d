// Pools that are written with others.
#include <vector>

#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

bool counts_columns_first(const Composition& c) {
  return c.wants(1) && c.attributes().integer("storage_order", 0) != 0;
}

// The place in [batch, channels, a, b, ...] that counts a fastest, for one that counts it slowest;
// -1 stays. A plane's places begin where they did.
ValueId columns_first(Composition& c, ValueId place, const Shape& x) {
  const auto number = [&c](std::int64_t n) { return c.constant(Tensor::scalar(n)); };
  std::int64_t plane = 1;
  for (int a = 2; a < x.rank; ++a) plane *= x[a];
  const ValueId zero = number(0);
  const ValueId inside = c("Where", {c("Less", {place, zero}), zero, place});
  ValueId rest = c("Mod", {inside, number(plane)});
  ValueId sum = c("Sub", {inside, rest});
  std::int64_t slow = plane;  // elements of a step along the axis, as the places count
  std::int64_t fast = 1;      // the same, as they are to count
  for (int a = 2; a < x.rank; ++a) {
    slow /= x[a];
    const ValueId step = number(slow);
    const ValueId at = c("Div", {rest, step});
    sum = c.add(sum, c.multiply(at, number(fast)));
    rest = c("Mod", {rest, step});
    fast *= x[a];
  }
  return c("Where", {c("Less", {place, zero}), place, sum});
}

void compose_max_pool(Composition& c) {
  Attributes attributes = c.attributes();
  attributes.erase("storage_order");
  const std::vector<ValueId> made = c.multi("MaxPool", {c.input(0)}, 2, std::move(attributes));
  c.result(0, made[0]);
  const Shape x = c.shape(c.input(0));
  c.result(1, x.elements() == 0 ? made[1] : columns_first(c, made[1], x));
}

constexpr CompositeOp kRows[] = {
    {"MaxPool", 8, 1, 2, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
     compose_max_pool, counts_columns_first},
};

}  // namespace

std::span<const CompositeOp> pool_composites() { return kRows; }

}  // namespace trainscope
