// Words that name a model of any size.
#include "cli/flags/model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/flags/settings.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

const ModelBuilder* find_builder(std::string_view word) {
  const std::span<const ModelBuilder> builders = model_builders();
  const auto found =
      std::ranges::find(builders, word.substr(0, word.find(':')), &ModelBuilder::name);
  return found == builders.end() ? nullptr : &*found;
}

[[noreturn]] void bad_value(std::string_view name, std::string_view text,
                            std::string_view expected) {
  fail(ErrorCode::kUsage, "the option {} is '{}': expected {}", name, printable(text), expected);
}

OptionValue value_like(const ModelOption& option, std::string_view text) {
  if (std::holds_alternative<bool>(option.value)) {
    const std::optional<std::string_view> word = switch_word(text);
    if (!word) bad_value(option.name, text, "on or off");
    return *word == "on";
  }
  if (std::holds_alternative<std::int64_t>(option.value)) {
    const std::optional<std::int64_t> number = parse_int(text);
    if (!number) bad_value(option.name, text, "a whole number");
    return *number;
  }
  if (std::holds_alternative<double>(option.value)) {
    const std::optional<double> number = parse_number(text);
    if (!number) bad_value(option.name, text, "a number");
    return *number;
  }
  if (std::holds_alternative<std::string>(option.value)) return std::string(text);
  Ints numbers;
  for (std::string_view piece : split(text, '+')) {
    const std::optional<std::int64_t> number = parse_int(piece);
    if (!number) bad_value(option.name, text, "whole numbers with + between them");
    numbers.push_back(*number);
  }
  return numbers;
}

void add_option(const ModelBuilder& builder, std::string_view text, ModelArguments& arguments) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto option = std::ranges::find(builder.options, name, &ModelOption::name);
  if (option == builder.options.end() || equals == std::string_view::npos) {
    std::vector<std::string_view> names;
    for (const ModelOption& each : builder.options) names.push_back(each.name);
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' is no option of {}", printable(text), builder.name))
        .hint(fmt::format("NAME=VALUE with one of {}", join(names, ", ")));
  }
  const bool fresh = arguments.emplace(name, value_like(*option, text.substr(equals + 1))).second;
  require(fresh, ErrorCode::kUsage, "the option {} is given twice", name);
}

}  // namespace

bool is_model_name(std::string_view word) { return find_builder(word) != nullptr; }

PlainModel named_model(std::string_view word) {
  const ModelBuilder* builder = find_builder(word);
  CHECK_INVARIANT(builder != nullptr);
  ModelArguments arguments;
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return build_model(builder->name, arguments, 0);
  bool first = true;
  for (std::string_view piece : split(word.substr(colon + 1), ',')) {
    if (first && piece.find('=') == std::string_view::npos) {
      arguments.emplace(kSizeOption, std::string(piece));
    } else {
      add_option(*builder, piece, arguments);
    }
    first = false;
  }
  return build_model(builder->name, arguments, 0);
}

}  // namespace trainscope
