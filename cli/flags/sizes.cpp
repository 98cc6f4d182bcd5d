// What the size flags say, and what is missing for batches of examples.
#include "cli/flags/sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "datasets/open.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/size_words.h"

namespace trainscope {
namespace {

constexpr Flag kFlags[] = {
    {.name = "batch",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Examples in a batch, where the model leaves it open; default 8",
     .minimum = 1,
     .maximum = kMostSize,
     .also = "batch-size"},
    {.name = "seq",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Sequence length, where the model leaves it open",
     .minimum = 1,
     .maximum = kMostSize,
     .also = "seq-len|sequence-length"},
    {.name = "shape",
     .type = FlagType::kTexts,
     .value = "NAME=2,3",
     .help = "Shape of an input, or size of a named dimension"},
    {.name = "max-trips",
     .type = FlagType::kInteger,
     .value = "N",
     .help =
         "Trips of a loop that the plan has room for, where they are counted when the step runs; "
         "default of train: the most that a batch of tensors:FILE asks for. What more trips leave "
         "to the backward phase lies in a second arena",
     .minimum = 1,
     .maximum = kMostSize},
    {.name = "batch-axis",
     .type = FlagType::kTexts,
     .value = "NAME=AXIS",
     .help = "Which dimension of an input (or of labels) counts examples, where it is not the "
             "first and no symbol called batch says so: 1 of time-major [T,N,C]"},
};

}  // namespace

std::span<const Flag> size_flags() { return kFlags; }

SizeRequest size_request(const Settings& settings) {
  SizeRequest request;
  for (const Flag& flag : kFlags) {
    for (const std::string& text : settings.texts(flag.name)) add_size(request, flag.name, text);
  }
  return request;
}

void require_examples(const OnnxModel& model, const Sizes& sizes) {
  if (sizes.batch > 0) return;
  if (model.inputs().empty()) {
    throw Error(ErrorCode::kUsage, "the model has no inputs, so there are no examples")
        .hint("export it with its data as an input, which --data and --micro-batches need");
  }
  if (sizes.empty_input.empty()) {
    const std::string name = printable(model.inputs().front().name);
    throw Error(
        ErrorCode::kUsage,
        fmt::format("no input has a batch dimension: '{}' is a scalar or of unknown shape", name))
        .hint(fmt::format("where it is unknown: --shape {}=8,..", name));
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("a batch has 0 examples, by the first dimension of input '{}': there is "
                          "nothing to compute",
                          printable(sizes.empty_input)))
      .hint("export the model with another size there, or with an open dimension");
}

std::vector<std::string> open_symbols(const OnnxModel& model, const Sizes& sizes) {
  std::vector<std::string> open;
  for (const ModelTensor& input : model.inputs()) {
    if (sizes.shapes.contains(input.name)) continue;
    for (const ModelDim& dim : input.dims.value_or(std::vector<ModelDim>())) {
      const bool is_open = !dim.size && !dim.symbol.empty() && !sizes.dims.contains(dim.symbol);
      if (is_open && std::ranges::find(open, dim.symbol) == open.end()) open.push_back(dim.symbol);
    }
  }
  return open;
}

}  // namespace trainscope
