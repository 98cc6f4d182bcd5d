// Parsing of --loss.
#include "cli/loss_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::array kKinds = {LossKind::kCrossEntropy, LossKind::kNll, LossKind::kMse,
                               LossKind::kBceWithLogits};
constexpr std::string_view kClassKeys[] = {"output", "labels", "ignore_index", "class_axis"};
constexpr std::string_view kUsualOutput = "logits";

bool is_by_class(LossKind kind) {
  return kind == LossKind::kCrossEntropy || kind == LossKind::kNll;
}

// The other losses know no classes.
std::span<const std::string_view> keys_of(LossKind kind) {
  return is_by_class(kind) ? std::span(kClassKeys) : std::span(kClassKeys).first(2);
}

LossKind parse_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (LossKind kind : kKinds) {
    if (name == name_of(kind)) return kind;
    names.push_back(name_of(kind));
  }
  throw Error(ErrorCode::kUsage, fmt::format("--loss: there is no loss '{}'", printable(name)))
      .hint(nearest_hint(name, names))
      .hint(fmt::format("the losses are {}", join(names, ", ")));
}

std::int64_t parse_number_of(std::string_view key, std::string_view value) {
  const std::optional<std::int64_t> number = parse_int(value);
  require(number.has_value(), ErrorCode::kUsage, "--loss: {} is '{}': expected a whole number", key,
          printable(value));
  return *number;
}

void set_key(std::string_view key, std::string_view value, LossOptions& loss) {
  if (key == "output") loss.output = value;
  if (key == "labels") loss.labels = value;
  if (key == "ignore_index") loss.ignore_index = parse_number_of(key, value);
  if (key == "class_axis") loss.class_axis = parse_number_of(key, value);
}

void add_part(std::string_view part, LossOptions& loss) {
  const std::size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  const std::span<const std::string_view> keys = keys_of(loss.kind);
  if (std::ranges::find(keys, key) == keys.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--loss: {} has no key '{}'", name_of(loss.kind), printable(key)))
        .hint(nearest_hint(key, keys))
        .hint(fmt::format("its keys are {}",
                          join(std::vector<std::string_view>(keys.begin(), keys.end()), ", ")));
  }
  const bool has_value = equals != std::string_view::npos && equals + 1 < part.size();
  require(has_value, ErrorCode::kUsage, "--loss: {} has no value", key);
  set_key(key, part.substr(equals + 1), loss);
}

}  // namespace

LossOptions parse_loss(std::string_view text) {
  const std::size_t colon = text.find(':');
  LossOptions loss;
  loss.kind = parse_kind(text.substr(0, colon));
  if (colon == std::string_view::npos) return loss;
  for (std::string_view part : split(text.substr(colon + 1), ',')) add_part(part, loss);
  return loss;
}

void resolve_loss_output(const OnnxModel& model, LossOptions& loss) {
  if (!loss.output.empty()) return;
  std::vector<std::string> names;
  for (const ModelTensor& output : model.outputs()) names.push_back(output.name);
  if (std::ranges::find(names, kUsualOutput) != names.end()) {
    loss.output = kUsualOutput;
  } else if (names.size() == 1) {
    loss.output = names.front();
  } else {
    throw Error(ErrorCode::kUsage, "which output does the loss read? The model has no 'logits'")
        .hint(fmt::format("--loss {}:output=NAME with one of {}", name_of(loss.kind),
                          printable(join(names, ", "), 400)));
  }
}

std::string loss_text(const LossOptions& loss) {
  std::string text =
      fmt::format("{}:output={},labels={}", name_of(loss.kind), loss.output, loss.labels);
  if (is_by_class(loss.kind)) {
    text += fmt::format(",ignore_index={},class_axis={}", loss.ignore_index, loss.class_axis);
  }
  return text;
}

}  // namespace trainscope
