// Functions with values for their attributes, as text again.
#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "engine/core/error.h"
#include "engine/functions/function_text.h"

namespace trainscope {
namespace {

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// A number that is read as one with a fraction.
std::string number_text(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// With its type before it; empty for a tensor, which no attribute of a function is.
std::string value_text(const Attribute& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return fmt::format("int = {}", *integer);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return fmt::format("float = {}", number_text(*number));
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return fmt::format("string = {}", in_quotes(*text));
  }
  if (const auto* integers = std::get_if<Ints>(&value)) {
    return fmt::format("ints = [{}]", fmt::join(*integers, ", "));
  }
  if (const auto* numbers = std::get_if<Floats>(&value)) {
    std::string list;
    for (const double number : *numbers) {
      list += (list.empty() ? "" : ", ") + number_text(number);
    }
    return fmt::format("floats = [{}]", list);
  }
  return {};
}

}  // namespace

std::string text_with(const FunctionText& function, const Attributes& attributes) {
  std::string declared;
  for (const FunctionText::Declared& each : function.attributes) {
    const auto given = attributes.map().find(each.name);
    std::string value;
    if (given != attributes.map().end()) {
      value = value_text(given->second);
      require(!value.empty(), ErrorCode::kBadInput,
              "{}: attribute '{}' is a tensor, which a function cannot take", function.where,
              each.name);
    } else if (each.absent) {
      value = value_text(*each.absent);
    }
    declared += declared.empty() ? "" : ", ";
    declared += value.empty() ? each.name : fmt::format("{}: {}", each.name, value);
  }
  const std::string head = declared.empty() ? "" : fmt::format("<{}> ", declared);
  return fmt::format("{} {}{}", function.name, head, function.text.substr(function.inputs_at));
}

}  // namespace trainscope
