// Binding of open dimensions; a dimension that the graph fixes wins.
#include "engine/model_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// What token ids and class numbers come as.
constexpr bool is_of_ids(DType dtype) { return dtype == DType::kI64 || dtype == DType::kI32; }

// Whether a symbol is called as exporters and people call the number of examples: "batch_size". One
// letter says it only beside other symbols: [1,N] may be anything.
bool is_called_batch(std::string_view symbol, bool first_is_open) {
  std::string small;
  for (char c : symbol) small += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const bool short_name = small == "n" || small == "b" || small == "bs";
  return small.find("batch") != std::string::npos || (short_name && first_is_open);
}

// The axis whose symbol says that it counts examples; 0 where none does, or the first one too.
int axis_called_batch(const ModelTensor& tensor) {
  if (!tensor.dims || tensor.dims->empty()) return 0;
  const bool first_is_open = !tensor.dims->front().size;
  for (std::size_t axis = 0; axis < tensor.dims->size(); ++axis) {
    const ModelDim& dim = (*tensor.dims)[axis];
    if (!dim.size && is_called_batch(dim.symbol, first_is_open)) return static_cast<int>(axis);
  }
  return 0;
}

int axis_of(const BatchAxes& axes, const std::string& name) {
  const auto found = axes.find(name);
  return found == axes.end() ? 0 : found->second;
}

// Those asked for, then those that symbols tell. Labels are laid out as the output that they are
// compared with, so an output counts too.
void take_batch_axes(const OnnxModel& model, const SizeRequest& request, Sizes& sizes) {
  sizes.batch_axes = request.batch_axes;
  std::vector<std::string> names;
  for (const auto* tensors : {&model.inputs(), &model.outputs()}) {
    for (const ModelTensor& tensor : *tensors) {
      names.push_back(tensor.name);
      const int axis = axis_called_batch(tensor);
      if (axis > 0) sizes.batch_axes.emplace(tensor.name, axis);
      const auto shape = sizes.shapes.find(tensor.name);
      const std::size_t rank = shape != sizes.shapes.end() ? shape->second.size()
                               : tensor.dims               ? tensor.dims->size()
                                                           : kMaxRank;
      const int asked = axis_of(request.batch_axes, tensor.name);
      require(asked == 0 || static_cast<std::size_t>(asked) < rank, ErrorCode::kUsage,
              "--batch-axis {}={}: it has {} dimensions", printable(tensor.name), asked, rank);
    }
  }
  for (const auto& [name, axis] : request.batch_axes) {
    if (name == kLabelsOfLoss || std::ranges::find(names, name) != names.end()) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("--batch-axis: the model has no input or output '{}'", printable(name)))
        .hint(nearest_hint(name, names))
        .hint(fmt::format("it has {}", printable(join(names, ", "), 400)));
  }
}

// The size of dimension `axis` of an input if anything says it.
std::optional<std::int64_t> known_size(const ModelTensor& input, std::size_t axis,
                                       const Sizes& sizes) {
  const auto shape = sizes.shapes.find(input.name);
  if (shape != sizes.shapes.end() && axis < shape->second.size()) return shape->second[axis];
  if (!input.dims || axis >= input.dims->size()) return std::nullopt;
  const ModelDim& dim = (*input.dims)[axis];
  if (dim.size) return dim.size;
  const auto bound = sizes.dims.find(dim.symbol);
  return bound == sizes.dims.end() ? std::nullopt : std::optional(bound->second);
}

void take_shapes(const OnnxModel& model, const SizeRequest& request, Sizes& sizes) {
  std::vector<std::string> names;
  std::set<std::string> symbols;
  for (const ModelTensor& input : model.inputs()) {
    names.push_back(input.name);
    for (const ModelDim& dim : input.dims.value_or(std::vector<ModelDim>())) {
      if (!dim.size && !dim.symbol.empty()) symbols.insert(dim.symbol);
    }
  }
  for (const auto& [name, dims] : request.shapes) {
    if (std::ranges::find(names, name) != names.end()) {
      sizes.shapes.emplace(name, dims);
    } else if (symbols.contains(name) && dims.size() == 1) {
      sizes.dims.emplace(name, dims.front());
    } else {
      names.insert(names.end(), symbols.begin(), symbols.end());
      throw Error(
          ErrorCode::kUsage,
          fmt::format("--shape: the model has no input or open dimension '{}'", printable(name)))
          .hint(nearest_hint(name, names))
          .hint(fmt::format("it has {}", printable(join(names, ", "), 400)));
    }
  }
}

// One number that a flag asks for, at one axis of some inputs.
struct Axis {
  std::string_view flag;
  const BatchAxes* axes = nullptr;  // by input; 0 for those that are not there
  std::int64_t asked = 0;           // 0: nobody asked
  std::int64_t fallback = 0;
};

// The size that the inputs fix, or what the flag says; then every input that has it open gets it.
std::int64_t bind_axis(const std::vector<const ModelTensor*>& inputs, const Axis& axis,
                       Sizes& sizes) {
  const auto place_in = [&axis](const ModelTensor& input) {
    return static_cast<std::size_t>(axis_of(*axis.axes, input.name));
  };
  std::int64_t size = axis.asked > 0 ? axis.asked : axis.fallback;
  for (const ModelTensor* input : inputs) {
    const std::optional<std::int64_t> fixed = known_size(*input, place_in(*input), sizes);
    if (!fixed) continue;
    if (axis.asked > 0 && *fixed != axis.asked) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--{} {} does not fit the model: input '{}' has {} there", axis.flag,
                              axis.asked, printable(input->name), *fixed))
          .hint(
              fmt::format("leave out --{}, or export the model with an open dimension", axis.flag));
    }
    size = *fixed;
    break;
  }
  if (size == 0) return 0;
  for (const ModelTensor* input : inputs) {
    const std::size_t place = place_in(*input);
    if (!input->dims || place >= input->dims->size()) continue;
    const ModelDim& dim = (*input->dims)[place];
    if (!dim.size && !dim.symbol.empty()) sizes.dims.emplace(dim.symbol, size);
  }
  return size;
}

// The first input whose batch dimension is 0. Where --shape says so, that is a mistake on the
// command line.
std::string empty_input(const std::vector<const ModelTensor*>& inputs, const SizeRequest& request,
                        const Sizes& sizes) {
  const auto place = [&sizes](const ModelTensor& input) {
    return static_cast<std::size_t>(axis_of(sizes.batch_axes, input.name));
  };
  const ModelTensor& input = **std::ranges::find_if(
      inputs, [&](const ModelTensor* each) { return known_size(*each, place(*each), sizes) == 0; });
  auto asked = request.shapes.find(input.name);
  if (asked == request.shapes.end() && input.dims) {
    asked = request.shapes.find((*input.dims)[place(input)].symbol);
  }
  if (asked != request.shapes.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--shape {}={}: a batch of 0 examples", printable(asked->first),
                            fmt::join(asked->second, ",")))
        .hint("give it a first dimension of 1 or more");
  }
  return input.name;
}

// Inputs with unnamed open dimensions need whole shapes: batch and sequence at their usual places.
void complete_shapes(const OnnxModel& model, Sizes& sizes) {
  for (const ModelTensor& input : model.inputs()) {
    if (!input.dims || sizes.shapes.contains(input.name)) continue;
    const auto unnamed = [](const ModelDim& dim) { return !dim.size && dim.symbol.empty(); };
    if (std::ranges::none_of(*input.dims, unnamed)) continue;
    Ints shape;
    for (std::size_t axis = 0; axis < input.dims->size(); ++axis) {
      std::optional<std::int64_t> size = known_size(input, axis, sizes);
      const auto place = static_cast<std::size_t>(axis_of(sizes.batch_axes, input.name));
      if (!size && axis == place) size = sizes.batch;
      if (!size && axis == 1 && place == 0 && sizes.sequence > 0) size = sizes.sequence;
      if (!size) {
        throw Error(ErrorCode::kUsage, fmt::format("dimension {} of input '{}' is left open", axis,
                                                   printable(input.name)))
            .hint(fmt::format("give its whole shape: --shape {}=...", printable(input.name)));
      }
      shape.push_back(*size);
    }
    sizes.shapes.emplace(input.name, std::move(shape));
  }
}

}  // namespace

Sizes resolve_sizes(const OnnxModel& model, const SizeRequest& request) {
  Sizes sizes;
  take_shapes(model, request, sizes);
  take_batch_axes(model, request, sizes);
  std::vector<const ModelTensor*> batched;
  std::vector<const ModelTensor*> sequences;  // the first integer input of two dimensions
  for (const ModelTensor& input : model.inputs()) {
    const auto shape = sizes.shapes.find(input.name);
    const std::size_t rank = shape != sizes.shapes.end() ? shape->second.size()
                             : input.dims                ? input.dims->size()
                                                         : 0;
    if (rank > 0) batched.push_back(&input);
    if (rank > 1 && is_of_ids(input.dtype) && sequences.empty()) sequences.push_back(&input);
  }
  if (!batched.empty()) {
    sizes.batch = bind_axis(batched,
                            {.flag = "batch",
                             .axes = &sizes.batch_axes,
                             .asked = request.batch,
                             .fallback = kDefaultBatch},
                            sizes);
    if (sizes.batch == 0) sizes.empty_input = empty_input(batched, request, sizes);
  }
  require(request.sequence == 0 || !sequences.empty(), ErrorCode::kUsage,
          "--seq {}: the model has no integer input of two dimensions", request.sequence);
  BatchAxes other_axes;  // that examples do not take: [batch, time] or [time, batch]
  for (const ModelTensor* input : sequences) {
    other_axes[input->name] = axis_of(sizes.batch_axes, input->name) == 1 ? 0 : 1;
  }
  sizes.sequence = bind_axis(
      sequences, {.flag = "seq", .axes = &other_axes, .asked = request.sequence, .fallback = 0},
      sizes);
  complete_shapes(model, sizes);
  return sizes;
}

}  // namespace trainscope
