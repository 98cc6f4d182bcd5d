// Finds a builder by name, completes and checks what it is asked for.
#include "engine/models/models.h"

#include <algorithm>
#include <array>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

#define MODEL(name) ModelBuilder name##_builder();
#include "engine/models/models.def"
#undef MODEL

namespace {

template <typename Range>
std::vector<std::string_view> names_of(const Range& items) {
  std::vector<std::string_view> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

template <typename Item>
const Item& find_by_name(std::span<const Item> items, std::string_view name,
                         std::string_view what) {
  auto found = std::ranges::find(items, name, &Item::name);
  if (found == items.end()) {
    const std::vector<std::string_view> names = names_of(items);
    std::string hint = nearest_hint(name, names);
    if (hint.empty()) hint = "one of " + join(names, ", ");
    throw Error(ErrorCode::kUsage, fmt::format("there is no {} '{}'", what, printable(name)))
        .hint(std::move(hint));
  }
  return *found;
}

void check_integer(const ModelOption& option, std::int64_t number) {
  require(number >= 1 && number <= option.maximum, ErrorCode::kUsage,
          "--{} is {}, expected 1 to {}", option.name, number, option.maximum);
}

void check_choice(const ModelOption& option, const std::string& text) {
  if (std::ranges::find(option.choices, text) != option.choices.end()) return;
  throw Error(ErrorCode::kUsage, fmt::format("--{} is '{}', expected {}", option.name,
                                             printable(text), join(option.choices, ", ")))
      .hint(nearest_hint(text, option.choices));
}

void check_value(const ModelOption& option, const OptionValue& value) {
  CHECK_INVARIANT(value.index() == option.value.index());
  if (const auto* number = std::get_if<std::int64_t>(&value)) check_integer(option, *number);
  if (const auto* numbers = std::get_if<Ints>(&value)) {
    for (std::int64_t number : *numbers) check_integer(option, number);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    check_choice(option, *text);
  }
}

void apply_size(const ModelBuilder& builder, std::string_view name, ModelArguments& arguments) {
  require(!builder.sizes.empty(), ErrorCode::kUsage, "{} has no --size: its options say it all",
          builder.name);
  const std::span<const ModelSize> sizes = builder.sizes;
  for (const auto& [key, value] : find_by_name(sizes, name, "size of this model:").arguments) {
    CHECK_INVARIANT(value.index() == arguments.at(key).index());
    arguments.at(key) = value;
  }
}

}  // namespace

std::span<const ModelBuilder> model_builders() {
#define MODEL(name) name##_builder(),
  static const std::array kBuilders{
#include "engine/models/models.def"
  };
#undef MODEL
  return kBuilders;
}

PlainModel build_model(std::string_view name, const ModelArguments& given, std::uint64_t seed) {
  const ModelBuilder& builder = find_by_name(model_builders(), name, "model builder");
  const std::span<const ModelOption> options = builder.options;
  ModelArguments arguments;
  for (const ModelOption& option : options) arguments.emplace(option.name, option.value);
  if (const auto size = given.find(kSizeOption); size != given.end()) {
    apply_size(builder, std::get<std::string>(size->second), arguments);
  }
  for (const auto& [key, value] : given) {
    if (key == kSizeOption) continue;
    check_value(find_by_name(options, key, "option of this model:"), value);
    arguments.insert_or_assign(key, value);
  }
  return builder.build(arguments, seed);
}

}  // namespace trainscope
