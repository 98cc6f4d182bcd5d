// ConvTranspose: the gradient of a convolution by its input, applied forward.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// x [N, C, in...], w [C, M / group, kernel...], y [N, M, out...]. The convolution that this is the
// gradient of takes [N, M, convolved...] to x's shape with pads (begin, end); `zeros` elements that
// none of its windows reaches follow.
struct Transposition {
  WindowParams window;  // with the convolution's pads
  std::int64_t group = 1;
  Shape convolved;
  Ints zeros;  // per spatial axis
};

// One spatial axis. Without padding the input reaches `reach` elements of the output.
struct SpatialAxis {
  std::int64_t in = 0;
  std::int64_t stride = 1;
  std::int64_t reach = 0;
  std::int64_t begin = 0;  // cut off in front
  std::int64_t end = 0;    // cut off behind; negative: so many elements are added
};

enum class AutoPad : std::uint8_t { kNotSet, kValid, kSameUpper, kSameLower };

AutoPad auto_pad_of(const OpArgs& args) {
  const std::string name = args.attributes.text("auto_pad", "NOTSET");
  if (name == "NOTSET") return AutoPad::kNotSet;
  if (name == "VALID") return AutoPad::kValid;
  require(name == "SAME_UPPER" || name == "SAME_LOWER", ErrorCode::kBadInput,
          "attribute auto_pad is '{}'; NOTSET, VALID, SAME_UPPER and SAME_LOWER exist",
          printable(name));
  return name == "SAME_UPPER" ? AutoPad::kSameUpper : AutoPad::kSameLower;
}

// Strides, dilations and explicit pads; what auto_pad means differs from a convolution.
WindowParams window_of(const OpArgs& args, AutoPad auto_pad) {
  Attributes attributes = args.attributes;
  attributes.erase("auto_pad");
  if (auto_pad != AutoPad::kNotSet) attributes.erase("pads");
  const OpArgs plain{.attributes = attributes,
                     .inputs = args.inputs,
                     .constants = args.constants,
                     .present = args.present,
                     .outputs = args.outputs};
  return window_params(plain, args.shape(0), args.shape(1).span().subspan(2));
}

// One number for each spatial axis; `absent` when the attribute is.
Ints spatial_numbers(const OpArgs& args, std::string_view name, const Ints& absent) {
  Ints numbers = args.attributes.integers(name, absent);
  const std::size_t count = static_cast<std::size_t>(args.rank(0)) - 2;
  // An output_shape may be the whole one.
  if (name == "output_shape" && numbers.size() == count + 2) {
    numbers.erase(numbers.begin(), numbers.begin() + 2);
  }
  require(numbers.size() == count || numbers.empty(), ErrorCode::kBadInput,
          "attribute {} has {} numbers, {} expected", name, numbers.size(), count);
  for (std::int64_t number : numbers) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    require(number >= 0 && number <= kMost, ErrorCode::kBadInput,
            "attribute {} holds {}, which is outside [0, {}]", name, number, kMost);
  }
  return numbers;
}

// Pads so that the output gets `wanted` elements, as ONNX defines them: the odd one behind for
// SAME_UPPER, else in front. What cutting off cannot reach is added behind.
void fit(SpatialAxis& axis, std::int64_t output_padding, std::int64_t wanted, AutoPad auto_pad) {
  const std::int64_t natural = axis.reach + output_padding;
  const std::int64_t total = std::max<std::int64_t>(0, natural - wanted);
  axis.begin = auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
  axis.end = axis.reach - axis.begin - wanted;
}

SpatialAxis spatial_axis(const OpArgs& args, const WindowParams& window, int axis) {
  const auto i = static_cast<std::size_t>(axis);
  SpatialAxis result{.in = args.shape(0)[axis + 2], .stride = window.stride[i]};
  require(result.in >= 1, ErrorCode::kBadInput, "spatial axis {} of input {} has no elements", axis,
          type_text(args.type(0)));
  const std::int64_t extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
  result.reach = checked_add(checked_multiply(result.in - 1, result.stride), extent);
  constexpr std::int64_t kMostReach = std::int64_t{1} << 61;  // sums with pads stay in range
  require(result.reach <= kMostReach, ErrorCode::kBadInput,
          "spatial axis {} of the result would have {} elements", axis, result.reach);
  result.begin = window.pad_begin[i];
  result.end = window.pad_end[i];
  return result;
}

// The axis of the convolution's input; `zeros` as in Transposition.
std::int64_t convolved_size(SpatialAxis& axis, std::int64_t& zeros) {
  // Fewer than `stride` elements more make no further window.
  const std::int64_t added = std::max<std::int64_t>(0, -axis.end);
  const std::int64_t absorbed = std::min(added, axis.stride - 1);
  zeros = added - absorbed;
  axis.end = std::max<std::int64_t>(0, axis.end);
  const std::int64_t size = axis.reach - axis.begin - axis.end + absorbed;
  require(size >= 1, ErrorCode::kBadInput,
          "pads of {} and {} leave nothing of an axis of {} elements", axis.begin, axis.end,
          axis.reach);
  return size;
}

Transposition transposition_of(const OpArgs& args) {
  const AutoPad auto_pad = auto_pad_of(args);
  Transposition result{.window = window_of(args, auto_pad),
                       .group = args.attributes.integer("group", 1),
                       .convolved = {args.shape(0)[0]},
                       .zeros = {}};
  result.convolved.push_back(checked_multiply(args.shape(1)[1], result.group));
  const auto count = static_cast<std::size_t>(result.window.rank);
  const Ints output_padding = spatial_numbers(args, "output_padding", Ints(count, 0));
  const Ints output_shape = spatial_numbers(args, "output_shape", {});
  const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
  for (std::size_t i = 0; i < count; ++i) {
    SpatialAxis axis = spatial_axis(args, result.window, static_cast<int>(i));
    const std::int64_t padding = output_padding.empty() ? 0 : output_padding[i];
    if (!output_shape.empty() || same) {
      const std::int64_t wanted =
          output_shape.empty() ? checked_multiply(axis.in, axis.stride) : output_shape[i];
      fit(axis, padding, wanted, auto_pad);
    } else {
      axis.end -= padding;
    }
    std::int64_t zeros = 0;
    result.convolved.push_back(convolved_size(axis, zeros));
    result.zeros.push_back(zeros);
    result.window.pad_begin[i] = axis.begin;
    result.window.pad_end[i] = axis.end;
  }
  result.convolved = checked_shape(result.convolved);
  return result;
}

void require_channels(const OpArgs& args) {
  const Shape& x = args.shape(0);
  const Shape& w = args.shape(1);
  require(x.rank >= 3 && w.rank == x.rank, ErrorCode::kBadInput,
          "input and weight must be [N,C,...] and [C,M/group,...] with equally many spatial "
          "dimensions, are {} and {}",
          shape_text(x), shape_text(w));
  const std::int64_t group = args.attributes.integer("group", 1);
  require(group >= 1 && x[1] % group == 0 && w[0] == x[1], ErrorCode::kBadInput,
          "an input {} in {} groups does not fit a weight {}", shape_text(x), group, shape_text(w));
  const Ints kernel = args.attributes.integers("kernel_shape");
  const auto stated = w.span().subspan(2);
  require(kernel.empty() || std::equal(kernel.begin(), kernel.end(), stated.begin(), stated.end()),
          ErrorCode::kBadInput, "attribute kernel_shape is {}, the weight is {}",
          shape_text(kernel), shape_text(w));
  if (args.has(2)) require_shape(args, 2, Shape{checked_multiply(w[1], group)});
}

Types transposed_shape(const OpArgs& args) {
  require_float(args, 0);
  require_same_dtypes(args);
  require_channels(args);
  const Transposition t = transposition_of(args);
  Shape y = t.convolved;
  for (int axis = 0; axis < t.window.rank; ++axis) {
    y[axis + 2] = checked_add(y[axis + 2], t.zeros[static_cast<std::size_t>(axis)]);
  }
  return {{args.type(0).dtype, checked_shape(y)}};
}

Attributes convolution_attributes(const Transposition& t) {
  const auto first = [&t](const Spatial& values) {
    return Ints(values.begin(), values.begin() + t.window.rank);
  };
  Ints pads = first(t.window.pad_begin);
  const Ints pad_end = first(t.window.pad_end);
  pads.insert(pads.end(), pad_end.begin(), pad_end.end());
  return {{"strides", first(t.window.stride)},
          {"dilations", first(t.window.dilation)},
          {"pads", std::move(pads)},
          {"group", t.group},
          {"input_shape", ints_of(t.convolved)}};
}

Values transposed_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Transposition t = transposition_of(*args);
  ValueId y = b("ConvGradInput", {node.inputs[0], node.inputs[1]}, convolution_attributes(t));
  if (std::any_of(t.zeros.begin(), t.zeros.end(), [](std::int64_t n) { return n > 0; })) {
    Ints pads(static_cast<std::size_t>(t.convolved.rank) + 2,
              0);  // in front of all, behind N and C
    pads.insert(pads.end(), t.zeros.begin(), t.zeros.end());
    y = b("Pad", {y, b.ints(pads)});
  }
  const ValueId bias = input_of(node, 2);
  if (bias == kNoValue) return {y};
  Shape channels{t.convolved[1]};
  while (channels.rank < t.convolved.rank - 1) channels.push_back(1);
  return {b("Add", {y, b.reshape(bias, channels)})};
}

}  // namespace

std::vector<OpDef> conv_transpose_ops() {
  return {
      {.name = "ConvTranspose",
       .doc = "Transposed convolution of [N,C,...] with a weight [C,M/group,...] and an optional "
              "bias [M].",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {{"strides", "step of the window per spatial axis, 1"},
                      {"dilations", "step between kernel elements, 1"},
                      {"pads", "elements cut off before each spatial axis, then after each"},
                      {"group", "channels are convolved in so many groups, 1"},
                      {"kernel_shape", "spatial sizes of the weight"},
                      {"output_padding", "elements added behind each spatial axis, 0"},
                      {"output_shape", "spatial sizes of the result, from which the pads follow"},
                      {"auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER"}},
       .shape = transposed_shape,
       .decompose = transposed_decomposition,
       .op_class = OpClass::kMatmul,
       .traits = kComposite,
       .examples = {"[1,2,3,4], [2,3,3,2]",
                    "[2,2,3,3], [2,3,3,3], [3]; strides={2,2} pads={1,1,1,1}",
                    "[1,2,4], [2,3,3], [3]; strides={2} output_padding={1}",
                    "[1,2,2,3,2], [2,2,2,2,3]; strides={1,2,1}",
                    "[1,4,3,3], [4,2,2,2], [4]; group=2",
                    "[1,1,3,3], [1,2,2,2]; dilations={2,3} pads={1,0,2,1}",
                    "[1,1,3,3], [1,2,3,3]; strides={3,2} output_shape={10,8}",
                    "[1,1,3,3], [1,2,3,3]; strides={3,2} output_shape={8,6} kernel_shape={3,3}",
                    "[1,1,3,3], [1,2,3,3]; strides={2,2} auto_pad='SAME_UPPER'",
                    "[1,1,3,3], [1,2,4,3]; strides={3,2} auto_pad='SAME_LOWER'",
                    "[1,2,3], [2,1,2], [1]; dilations={3} output_padding={2}",
                    "[1,1,3], [1,1,2], [1]; strides={2} pads={1,0} output_shape={9}",
                    "[0,2,3,3], [2,3,2,2], [3]",
                    "[2,16,10,12], [16,8,3,3], [8]; strides={2,2} pads={1,1,1,1}"}},
  };
}

}  // namespace trainscope
