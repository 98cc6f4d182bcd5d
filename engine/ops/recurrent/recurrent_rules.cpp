// Checks of the inputs and attributes of recurrent ops.
#include "engine/ops/recurrent/recurrent_rules.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// A function of cells: its name in ONNX, and its alpha and beta where the node gives none.
struct FunctionRow {
  std::string_view name;
  CellFunction function;
  int numbers = 0;  // 1: it has an alpha, 2: a beta too
  double alpha = 0.0;
  double beta = 0.0;
};

constexpr FunctionRow kFunctions[] = {
    {"Sigmoid", CellFunction::kSigmoid},
    {"Tanh", CellFunction::kTanh},
    {"Relu", CellFunction::kRelu},
    {"HardSigmoid", CellFunction::kHardSigmoid, 2, 0.2, 0.5},
    {"Affine", CellFunction::kAffine, 2, 1.0, 0.0},
    {"LeakyRelu", CellFunction::kLeakyRelu, 1, 0.01},
    {"ThresholdedRelu", CellFunction::kThresholdedRelu, 1, 1.0},
    {"ScaledTanh", CellFunction::kScaledTanh, 2, 1.0, 1.0},
    {"Elu", CellFunction::kElu, 1, 1.0},
    {"Softsign", CellFunction::kSoftsign},
    {"Softplus", CellFunction::kSoftplus},
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Numbers that functions take one after the other, those that have one.
class Numbers {
 public:
  Numbers(const OpArgs& args, std::string_view name)
      : name_(name), numbers_(args.attributes.numbers(name)) {}

  double next(double absent) { return used_ < numbers_.size() ? numbers_[used_++] : absent; }
  void require_all_used() const {
    require(used_ == numbers_.size(), ErrorCode::kBadInput,
            "{} has {} numbers, the functions of the cell take {}", name_, numbers_.size(), used_);
  }

 private:
  std::string_view name_;
  Floats numbers_;
  std::size_t used_ = 0;
};

CellActivation activation_of(std::string_view name, Numbers& alphas, Numbers& betas) {
  const auto* row = std::ranges::find(kFunctions, name, &FunctionRow::name);
  require(row != std::end(kFunctions), ErrorCode::kBadInput,
          "activations: there is no function '{}'; those that there are: Sigmoid, Tanh, Relu, "
          "HardSigmoid, Affine, LeakyRelu, ThresholdedRelu, ScaledTanh, Elu, Softsign, Softplus",
          printable(name));
  CellActivation activation{.function = row->function, .alpha = row->alpha, .beta = row->beta};
  if (row->numbers > 0) activation.alpha = alphas.next(row->alpha);
  if (row->numbers > 1) activation.beta = betas.next(row->beta);
  // Its derivative is found by its result.
  const bool one_way =
      row->function != CellFunction::kLeakyRelu && row->function != CellFunction::kElu;
  require_supported(one_way || activation.alpha >= 0.0, "{} with alpha={}, which is below 0", name,
                    activation.alpha);
  return activation;
}

// The direction of a node: how many there are, and whether a single one goes back.
struct Directions {
  std::int64_t count = 1;
  bool reverse = false;
};

Directions directions_of(const OpArgs& args) {
  const std::string text = args.attributes.text("direction", "forward");
  require(text == "forward" || text == "reverse" || text == "bidirectional", ErrorCode::kBadInput,
          "direction is '{}', expected forward, reverse or bidirectional", printable(text));
  return {.count = text == "bidirectional" ? 2 : 1, .reverse = text == "reverse"};
}

void require_optional_shape(const OpArgs& args, int first, int input, const Shape& expected) {
  const int at = first + input;
  if (!args.has(at)) return;
  require_dtype(args, at, args.type(first).dtype);
  require_shape(args, at, expected);
}

}  // namespace

CellSizes checked_cell_sizes(const OpArgs& args, const CellForm& form, int first) {
  for (int i = first; i <= first + CellInput::kRecurrence; ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is missing", i);
    require_dtype(args, i, args.type(first).dtype);
    require_rank(args, i, 3);
  }
  require_float(args, first);
  const Shape& x = args.shape(first);
  const Shape& r = args.shape(first + CellInput::kRecurrence);
  const CellSizes sizes{.directions = directions_of(args).count,
                        .time = x[0],
                        .batch = x[1],
                        .width = x[2],
                        .hidden = r[2]};
  const std::int64_t columns = checked_multiply(form.gates, sizes.hidden);
  require_shape(args, first + CellInput::kInputWeights, {sizes.directions, columns, sizes.width});
  require_shape(args, first + CellInput::kRecurrence, {sizes.directions, columns, sizes.hidden});
  require_optional_shape(args, first, CellInput::kBias,
                         {sizes.directions, checked_multiply(2, columns)});
  if (args.has(first + CellInput::kLengths)) {
    require_dtype(args, first + CellInput::kLengths, DType::kI64);
    require_shape(args, first + CellInput::kLengths, {sizes.batch});
  }
  for (int input : {CellInput::kFirstHidden, CellInput::kFirstCell}) {
    require_optional_shape(args, first, input, sizes.state(DType::kF32).shape);
  }
  require_optional_shape(args, first, CellInput::kPeepholes,
                         {sizes.directions, checked_multiply(3, sizes.hidden)});
  return sizes;
}

RecurrentParams recurrent_params(const OpArgs& args, const CellForm& form) {
  const Directions directions = directions_of(args);
  RecurrentParams params{
      .reverse = directions.reverse,
      .activations = {},
      .clip = args.attributes.number("clip", 0.0),
      .coupled = args.attributes.integer("input_forget", 0) != 0,
      .linear_before_reset = args.attributes.integer("linear_before_reset", 0) != 0};
  require(params.clip >= 0.0, ErrorCode::kBadInput, "clip is {}, expected 0 or more", params.clip);
  const std::vector<std::string_view> defaults = words_of(form.functions);
  const std::string text = args.attributes.text("activations", "");
  std::vector<std::string_view> names = words_of(text);
  const auto count = defaults.size() * static_cast<std::size_t>(directions.count);
  for (std::size_t i = 0; text.empty() && i < count; ++i) {
    names.push_back(defaults[i % defaults.size()]);
  }
  require(names.size() == count, ErrorCode::kBadInput,
          "activations names {} functions, {} are expected", names.size(), count);
  Numbers alphas(args, "activation_alpha");
  Numbers betas(args, "activation_beta");
  for (std::size_t i = 0; i < count; ++i) {
    params.activations[i / defaults.size()][i % defaults.size()] =
        activation_of(names[i], alphas, betas);
  }
  alphas.require_all_used();
  betas.require_all_used();
  return params;
}

std::int64_t saved_blocks(const OpArgs& args, const CellForm& form) {
  if (form.states == 2) return form.gates + 1;  // the cell
  // The product that the reset gate scales.
  return form.gates + (args.attributes.integer("linear_before_reset", 0) != 0 ? 1 : 0);
}

}  // namespace trainscope
