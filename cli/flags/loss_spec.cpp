// Parsing of --loss.
#include "cli/flags/loss_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::int64_t kMostClasses = 1 << 24;
constexpr std::uint64_t kMaxWeightsBytes = 16 << 20;

std::vector<std::string_view> keys_of(LossKind kind) {
  switch (kind) {
    case LossKind::kCrossEntropy:
      return {"output", "labels", "ignore_index", "class_axis", "weights", "label_smoothing"};
    case LossKind::kNll:
      return {"output", "labels", "ignore_index", "class_axis"};
    case LossKind::kHuber:
      return {"output", "labels", "delta"};
    case LossKind::kFocal:
      return {"output", "labels", "gamma", "alpha"};
    case LossKind::kCtc:
      return {"output", "labels", "blank", "time_axis", "most_labels", "zero_infinity"};
    default:
      return {"output", "labels"};
  }
}

LossKind parse_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (LossKind kind : kLossKinds) {
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

double parse_smoothing(std::string_view value) {
  const std::optional<double> number = parse_number(value);
  require(number && *number >= 0.0 && *number <= 1.0, ErrorCode::kUsage,
          "--loss: label_smoothing is '{}': expected a number from 0 to 1", printable(value));
  return *number;
}

double parse_delta(std::string_view value) {
  const std::optional<double> number = parse_number(value);
  require(number && *number > 0.0, ErrorCode::kUsage,
          "--loss: delta is '{}': expected a number above 0", printable(value));
  return *number;
}

double parse_gamma(std::string_view value) {
  const std::optional<double> number = parse_number(value);
  require(number && *number >= 0.0, ErrorCode::kUsage,
          "--loss: gamma is '{}': expected a number of 0 or more", printable(value));
  return *number;
}

// "none": labels of both kinds weigh 1.
double parse_alpha(std::string_view value) {
  if (value == "none") return -1.0;
  const std::optional<double> number = parse_number(value);
  require(number && *number >= 0.0 && *number <= 1.0, ErrorCode::kUsage,
          "--loss: alpha is '{}': expected a number from 0 to 1, or none", printable(value));
  return *number;
}

std::int64_t parse_whole(std::string_view key, std::string_view value, std::int64_t most) {
  const std::optional<std::int64_t> number = parse_int(value);
  require(number && *number >= 0 && *number <= most, ErrorCode::kUsage,
          "--loss: {} is '{}': expected a whole number from 0 to {}", key, printable(value), most);
  return *number;
}

// The numbers between separators; none when one of the pieces is no number.
std::optional<std::vector<double>> numbers_in(std::string_view text, char separator) {
  std::vector<double> numbers;
  for (std::string_view piece : split(text, separator)) {
    const std::optional<double> number = parse_number(trim(piece));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// "1:0.5:2", or else a file with a number a line.
std::vector<double> parse_weights(std::string_view value) {
  std::optional<std::vector<double>> weights = numbers_in(value, ':');
  ErrorCode wrong = ErrorCode::kUsage;
  if (!weights) {
    wrong = ErrorCode::kBadInput;
    weights = numbers_in(trim(read_file(std::string(value), kMaxWeightsBytes)), '\n');
    require(weights.has_value(), wrong, "the class weights in '{}' must be one number a line",
            printable(value));
  }
  const bool usable = std::ranges::all_of(*weights, [](double weight) { return weight >= 0.0; }) &&
                      std::ranges::any_of(*weights, [](double weight) { return weight > 0.0; });
  require(usable, wrong, "--loss: weights '{}' must be numbers of 0 or more, not all 0",
          printable(value));
  return *weights;
}

void set_key(std::string_view key, std::string_view value, LossOptions& loss) {
  if (key == "output") loss.output = value;
  if (key == "labels") loss.labels = value;
  if (key == "ignore_index") loss.ignore_index = parse_number_of(key, value);
  if (key == "class_axis") loss.class_axis = parse_number_of(key, value);
  if (key == "weights") loss.class_weights = parse_weights(value);
  if (key == "label_smoothing") loss.label_smoothing = parse_smoothing(value);
  if (key == "delta") loss.delta = parse_delta(value);
  if (key == "gamma") loss.gamma = parse_gamma(value);
  if (key == "alpha") loss.alpha = parse_alpha(value);
  if (key == "blank") loss.blank = parse_whole(key, value, kMostClasses);
  if (key == "time_axis") loss.time_axis = static_cast<int>(parse_whole(key, value, 1));
  if (key == "most_labels") loss.most_labels = parse_whole(key, value, kMostClasses);
  if (key == "zero_infinity") loss.zero_infinity = parse_whole(key, value, 1) == 1;
}

void add_setting(std::string_view piece, LossOptions& loss) {
  const std::size_t equals = piece.find('=');
  const std::string_view key = piece.substr(0, equals);
  const std::vector<std::string_view> keys = keys_of(loss.kind);
  if (std::ranges::find(keys, key) == keys.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--loss: {} has no key '{}'", name_of(loss.kind), printable(key)))
        .hint(nearest_hint(key, keys))
        .hint(fmt::format("its keys are {}", join(keys, ", ")));
  }
  const bool has_value = equals != std::string_view::npos && equals + 1 < piece.size();
  require(has_value, ErrorCode::kUsage, "--loss: {} has no value", key);
  set_key(key, piece.substr(equals + 1), loss);
}

// "0.5*" before a term, and the term after it.
double take_weight(std::string_view& text) {
  const std::size_t star = text.find('*');
  if (star == std::string_view::npos) return 1.0;
  const std::string_view number = trim(text.substr(0, star));
  const std::optional<double> weight = parse_number(number);
  if (!weight && number.find(':') != std::string_view::npos) return 1.0;  // a star of a name
  require(weight && *weight != 0.0, ErrorCode::kUsage,
          "--loss: '{}*' is no weight: expected a number other than 0, as in "
          "0.5*mse:output=y",
          printable(number));
  text = trim(text.substr(star + 1));
  return *weight;
}

LossOptions parse_term(std::string_view text) {
  LossOptions loss;
  loss.weight = take_weight(text);
  const std::size_t colon = text.find(':');
  loss.kind = parse_kind(text.substr(0, colon));
  if (loss.kind == LossKind::kOutput) {
    const bool has_name = colon != std::string_view::npos && colon + 1 < text.size();
    require(has_name, ErrorCode::kUsage, "--loss output needs a name: output:NAME");
    loss.output = text.substr(colon + 1);
    return loss;
  }
  if (colon == std::string_view::npos) return loss;
  for (std::string_view piece : split(text.substr(colon + 1), ',')) add_setting(piece, loss);
  return loss;
}

std::vector<std::string_view> terms_in(std::string_view text) {
  std::vector<std::string_view> terms;
  for (std::size_t end = text.find(kBetweenLosses); end != std::string_view::npos;
       end = text.find(kBetweenLosses)) {
    terms.push_back(trim(text.substr(0, end)));
    text.remove_prefix(end + kBetweenLosses.size());
  }
  terms.push_back(trim(text));
  return terms;
}

}  // namespace

LossOptions parse_loss(std::string_view text) {
  const std::vector<std::string_view> terms = terms_in(text);
  LossOptions loss = parse_term(terms.front());
  for (std::size_t i = 1; i < terms.size(); ++i) loss.further.push_back(parse_term(terms[i]));
  return loss;
}

}  // namespace trainscope
