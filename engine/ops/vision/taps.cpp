// The elements that are read at a place, axis by axis, and the rows of Sample, which reads them.
#include "engine/ops/vision/taps.h"

#include <utility>

#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- Places --------------------------------------------------------------------------------------

// Values [N, P, k] of one float type along an axis of `size` elements.
class AxisPlaces {
 public:
  AxisPlaces(Builder& b, const SampleRule& rule, std::int64_t size, DType dtype)
      : b_(b), rule_(rule), size_(size), dtype_(dtype) {}

  // The places inside that stand for `at`. At and beyond the outermost elements no gradient flows.
  ValueId padded(ValueId at) const {
    if (rule_.padding == SamplePadding::kZeros) return at;
    if (rule_.padding == SamplePadding::kReflection) at = reflected(at);
    const ValueId above = b_("Greater", {at, number(0.0)});
    const ValueId below = b_("Less", {at, number(last())});
    const ValueId nearest = b_("Clip", {b_("StopGradient", {at}), number(0.0), number(last())});
    return b_("Where", {b_("And", {above, below}), at, nearest});
  }

  // Whole numbers as elements times `stride`; `outside`, a negative number, for those outside.
  ValueId elements(ValueId at, std::int64_t stride, std::int64_t outside) const {
    const ValueId near = b_("Clip", {at, number(-1.0), number(last() + 1.0)});
    const ValueId index = cast_to(b_, near, DType::kI64);
    const ValueId inside =
        b_("And", {b_("GreaterOrEqual", {index, integer(0)}), b_("Less", {index, integer(size_)})});
    return b_("Where", {inside, b_("Mul", {index, integer(stride)}), integer(outside)});
  }

  // c[0] + c[1] t + c[2] t^2 + ... for each of k columns of numbers: [N, P, k].
  ValueId polynomial(ValueId t, const std::vector<Floats>& coefficients) const {
    ValueId sum = row(coefficients.back());
    for (std::size_t i = coefficients.size() - 1; i-- > 0;) {
      sum = b_("Add", {b_("Mul", {sum, t}), row(coefficients[i])});
    }
    return sum;
  }

  // [1, 1, k]
  ValueId row(const Floats& numbers) const {
    const Tensor tensor = Tensor::of<double>({1, 1, std::ssize(numbers)}, numbers);
    return b_.constant(convert(tensor, dtype_), "taps");
  }

 private:
  double last() const { return static_cast<double>(size_ - 1); }
  ValueId number(double value) const { return b_.scalar(value, dtype_); }
  ValueId integer(std::int64_t value) const { return b_.constant(Tensor::scalar(value), "number"); }

  // Mirrored at both ends, as often as it takes.
  ValueId reflected(ValueId at) const {
    const double low = rule_.align_corners ? 0.0 : -0.5;
    const double span = static_cast<double>(rule_.align_corners ? size_ - 1 : size_);
    if (span == 0.0) return zeros(b_, b_.type(at));
    const ValueId distance = b_("Abs", {b_("Sub", {at, number(low)})});
    const ValueId flips = b_("Floor", {b_("Div", {distance, number(span)})});
    const ValueId rest = b_("Sub", {distance, b_("Mul", {flips, number(span)})});
    const ValueId halves = b_("Mul", {flips, number(0.5)});
    const ValueId even = b_("Equal", {halves, b_("Floor", {halves})});
    return b_("Where",
              {even, b_("Add", {rest, number(low)}), b_("Sub", {number(span + low), rest})});
  }

  Builder& b_;
  const SampleRule& rule_;
  std::int64_t size_;
  DType dtype_;
};

struct Taps {
  ValueId index = kNoValue;   // [N, P, k], negative: outside
  ValueId weight = kNoValue;  // [N, P, k]
};

// Weights of four elements around a place, of which the second is the last before it, by powers of
// the distance from that one: cubic convolution (Keys 1981) with a = -3/4, as images are resized.
std::vector<Floats> cubic_weights() {
  constexpr double a = -0.75;
  return {{0, 1, 0, 0}, {a, 0, -a, 0}, {-2 * a, -a - 3, 2 * a + 3, a}, {a, a + 2, -a - 2, -a}};
}

// An axis of so many elements, each `stride` apart from the next; `outside` is the index of those
// that are not there.
struct ElementAxis {
  std::int64_t size;
  std::int64_t stride;
  std::int64_t outside;
};

// The elements of one axis.
Taps axis_taps(Builder& b, ValueId at, const SampleRule& rule, const ElementAxis& axis) {
  const auto& [size, stride, outside] = axis;
  const AxisPlaces places(b, rule, size, b.type(at).dtype);
  if (rule.mode == SampleMode::kNearest) {
    const ValueId nearest = b("Round", {places.padded(at)});
    return {.index = places.elements(nearest, stride, outside),
            .weight = places.polynomial(at, {{1.0}})};
  }
  if (rule.mode == SampleMode::kLinear) {
    const ValueId place = places.padded(at);
    const ValueId floor = b("Floor", {place});
    const ValueId both = b("Add", {floor, places.row({0.0, 1.0})});
    return {.index = places.elements(both, stride, outside),
            .weight = places.polynomial(b("Sub", {place, floor}), {{1.0, 0.0}, {-1.0, 1.0}})};
  }
  const ValueId floor = b("Floor", {at});
  const ValueId four = b("Add", {floor, places.row({-1.0, 0.0, 1.0, 2.0})});
  return {.index = places.elements(b("Round", {places.padded(four)}), stride, outside),
          .weight = places.polynomial(b("Sub", {at, floor}), cubic_weights())};
}

// op(a [.., j], b [.., k]) for each pair: [.., j * k].
ValueId pairs(Builder& b, std::string_view op, ValueId left, ValueId right) {
  const Shape a = b.shape(left);
  const Shape c = b.shape(right);
  const ValueId all =
      b(op, {b.reshape(left, {a[0], a[1], a[2], 1}), b.reshape(right, {c[0], c[1], 1, c[2]})});
  return b.reshape(all, {a[0], a[1], a[2] * c[2]});
}

}  // namespace

ValueId sample_at(Builder& b, ValueId x, const std::vector<ValueId>& places,
                  const SampleRule& rule) {
  const Shape image = b.shape(x);
  const std::int64_t plane = Shape(image.span().subspan(2)).elements();
  Taps taps;
  std::int64_t stride = plane;
  for (std::size_t axis = 0; axis < places.size(); ++axis) {
    const std::int64_t size = image.dims[axis + 2];
    stride /= size;
    const Taps more = axis_taps(b, places[axis], rule, {size, stride, -plane});
    taps.index = axis == 0 ? more.index : pairs(b, "Add", taps.index, more.index);
    taps.weight = axis == 0 ? more.weight : pairs(b, "Mul", taps.weight, more.weight);
  }
  const Shape index = b.shape(taps.index);
  if (b.shape(taps.weight) != index) {
    taps.weight = b("Expand", {taps.weight, b.ints(ints_of(index))});
  }
  return b("Sample", {b.reshape(x, {image[0], image[1], plane}), taps.index, taps.weight});
}

// --- Rows ----------------------------------------------------------------------------------------

namespace {

// The result [N, C, points] for x [N, C, elements], with the taps [N, points, taps] in input
// `index`.
Shape sampled_shape(const OpArgs& args, const Shape& x, int index) {
  require(x.rank == 3, ErrorCode::kBadInput, "what is sampled must be [N, C, elements], is {}",
          shape_text(x));
  require_dtype(args, index, DType::kI64);
  require_rank(args, index, 3);
  const Shape& taps = args.shape(index);
  require(taps[0] == x[0], ErrorCode::kBadInput, "the taps {} are not of the batch of {}",
          shape_text(taps), shape_text(x));
  return checked_shape({x[0], x[1], taps[1]});
}

Types sample_shape(const OpArgs& args) {
  require_float(args, 0);
  require_dtype(args, 2, args.type(0).dtype);
  const Shape y = sampled_shape(args, args.shape(0), 1);
  require_shape(args, 2, args.shape(1));
  return {{.dtype = args.type(0).dtype, .shape = y}};
}

Types sample_grad_input_shape(const OpArgs& args) {
  require_float(args, 0);
  require_dtype(args, 2, args.type(0).dtype);
  require_shape(args, 2, args.shape(1));
  const Shape x = checked_shape(args.attributes.integers("shape"));
  require_shape(args, 0, sampled_shape(args, x, 1));
  return {{.dtype = args.type(0).dtype, .shape = x}};
}

Types sample_grad_weight_shape(const OpArgs& args) {
  require_float(args, 0);
  require_dtype(args, 1, args.type(0).dtype);
  require_shape(args, 0, sampled_shape(args, args.shape(1), 2));
  return {{.dtype = args.type(0).dtype, .shape = args.shape(2)}};
}

Values sample_gradient(const GradArgs& g) {
  Values gradients(3, kNoValue);
  if (g.wants(0)) {
    const Ints shape = ints_of(g.type(g.x[0]).shape);
    gradients[0] = g.b("SampleGradInput", {g.dy[0], g.x[1], g.x[2]}, {{"shape", shape}});
  }
  if (g.wants(2)) gradients[2] = g.b("SampleGradWeight", {g.dy[0], g.x[0], g.x[1]});
  return gradients;
}

// A multiplication and an addition for each tap and channel.
Cost taps_cost(const OpArgs& args, int index, std::int64_t channels) {
  return with_flops(
      args, saturating_multiply(2, saturating_multiply(args.type(index).elements(), channels)));
}

}  // namespace

std::vector<OpDef> taps_ops() {
  return {
      {.name = "Sample",
       .doc = "x [N,C,elements], index and weight [N,P,taps] -> y [N,C,P]: the sum of weight * "
              "x[index]; an index outside adds nothing",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = sample_shape,
       .gradient = sample_gradient,
       .cost = [](const OpArgs& args) { return taps_cost(args, 1, args.shape(0)[1]); },
       .op_class = OpClass::kMovement,
       .traits = sharded({.rule = shard_by_examples<3>, .by_examples = true}),
       .examples = {"[2,3,9], i64[2,5,4]<9, [2,5,4]", "[1,2,4], i64[1,2,2]={0,3,-1,4}, [1,2,2]",
                    "[1,1,3], i64[1,4,1]<3, [1,4,1]", "[2,3,0], i64[2,2,1]<2, [2,2,1]",
                    "[0,3,4], i64[0,2,1]<2, [0,2,1]", "[2,2,4], i64[2,0,3]<2, [2,0,3]",
                    "[2,16,600], i64[2,900,4]<600, [2,900,4]"}},
      {.name = "SampleGradInput",
       .doc = "dy, index, weight -> the gradient of Sample by x, added up point by point",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {{"shape", "of x"}},
       .shape = sample_grad_input_shape,
       .cost = [](const OpArgs& args) { return taps_cost(args, 1, args.shape(0)[1]); },
       .op_class = OpClass::kMovement,
       .traits = sharded_once(
           {.rule = shard_by_examples<3>, .by_examples = true, .shape_attribute = "shape"}),
       .examples = {"[2,3,5], i64[2,5,4]<9, [2,5,4]; shape={2,3,9}",
                    "[1,2,2], i64[1,2,2]={0,3,-1,4}, [1,2,2]; shape={1,2,4}",
                    "[2,2,0], i64[2,0,3]<2, [2,0,3]; shape={2,2,4}",
                    "[2,16,900], i64[2,900,4]<600, [2,900,4]; shape={2,16,600}"}},
      {.name = "SampleGradWeight",
       .doc = "dy, x, index -> the gradient of Sample by the weights",
       .domain = kTrainscopeDomain,
       .min_inputs = 3,
       .max_inputs = 3,
       .shape = sample_grad_weight_shape,
       .cost = [](const OpArgs& args) { return taps_cost(args, 2, args.shape(1)[1]); },
       .op_class = OpClass::kMovement,
       .traits = sharded_once({.rule = shard_by_examples<3>, .by_examples = true}),
       .examples = {"[2,3,5], [2,3,9], i64[2,5,4]<9", "[1,2,2], [1,2,4], i64[1,2,2]={0,3,-1,4}",
                    "[2,2,0], [2,2,4], i64[2,0,3]<2", "[2,16,900], [2,16,600], i64[2,900,4]<600"}},
  };
}

}  // namespace trainscope
