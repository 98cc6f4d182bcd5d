// Reading tokens, numbers, lists and tensors.
#include "engine/functions/literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 16;

// ONNX's words for the types that a function needs.
std::optional<DType> dtype_named(std::string_view name) {
  if (name == "float") return DType::kF32;
  if (name == "double") return DType::kF64;
  if (name == "int64") return DType::kI64;
  if (name == "int32") return DType::kI32;
  if (name == "bool") return DType::kBool;
  return std::nullopt;
}

double number(Cursor& cursor) {
  if (cursor.peek().kind != TokenKind::kNumber) cursor.fail_expected("a number");
  const std::optional<double> value = parse_number(cursor.peek().text);
  if (!value) cursor.fail(fmt::format("'{}' is no number", printable(cursor.peek().text)));
  cursor.take();
  return *value;
}

std::vector<double> numbers(Cursor& cursor, std::string_view close, bool& whole) {
  std::vector<double> list;
  whole = true;
  if (cursor.skip(close)) return list;
  do {
    whole = whole && parse_int(cursor.peek().text).has_value();
    list.push_back(number(cursor));
    if (list.size() > kMostElements) {
      cursor.fail(fmt::format("a list of more than {} numbers", kMostElements));
    }
  } while (cursor.skip(","));
  cursor.sign(close);
  return list;
}

Attribute list(Cursor& cursor, std::string_view type) {
  cursor.sign("[");
  bool whole = true;
  Floats values = numbers(cursor, "]", whole);
  if (!whole || type == "floats") return values;
  Ints integers;
  for (const double value : values) integers.push_back(static_cast<std::int64_t>(value));
  return integers;
}

// float {0.5}, int64[2] {3, 4}.
Attribute tensor(Cursor& cursor) {
  const std::string word = cursor.name("a type of elements");
  const std::optional<DType> dtype = dtype_named(word);
  if (!dtype) {
    cursor.fail(fmt::format("there is no type '{}' here: float, double, int64, int32 or bool",
                            printable(word)));
  }
  Shape shape;
  if (cursor.skip("[")) {
    if (!cursor.skip("]")) {
      do {
        if (shape.rank == kMaxRank) cursor.fail(fmt::format("more than {} dimensions", kMaxRank));
        shape.push_back(cursor.integer("a dimension", 0, kMostElements));
      } while (cursor.skip(","));
      cursor.sign("]");
    }
  }
  cursor.sign("{");
  bool whole = true;
  const std::vector<double> values = numbers(cursor, "}", whole);
  double elements = 1.0;  // the product may be beyond 64 bits
  for (const std::int64_t dim : shape.span()) elements *= static_cast<double>(dim);
  if (static_cast<double>(values.size()) != elements) {
    cursor.fail(fmt::format("a tensor {} has {} elements", shape_text(shape), values.size()));
  }
  return std::make_shared<const Tensor>(
      convert(Tensor::of<double>(shape, std::span<const double>(values)), *dtype));
}

}  // namespace

Token Cursor::take() {
  Token token = peek();
  if (!at_end()) ++at_;
  return token;
}

bool Cursor::skip(std::string_view sign) {
  if (!peek().is(sign)) return false;
  take();
  return true;
}

Token Cursor::sign(std::string_view sign) {
  if (!peek().is(sign)) fail_expected(fmt::format("'{}'", sign));
  return take();
}

std::string Cursor::name(std::string_view what) {
  if (peek().kind != TokenKind::kName) fail_expected(what);
  return take().text;
}

std::string Cursor::text(std::string_view what) {
  if (peek().kind != TokenKind::kText) fail_expected(fmt::format("{} in quotes", what));
  return take().text;
}

std::int64_t Cursor::integer(std::string_view what, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> value =
      peek().kind == TokenKind::kNumber ? parse_int(peek().text) : std::nullopt;
  if (!value || *value < least || *value > most) {
    fail_expected(fmt::format("{}, a whole number from {} to {}", what, least, most));
  }
  take();
  return *value;
}

void Cursor::fail(std::string_view message) const {
  trainscope::fail(ErrorCode::kBadInput, "{}:{}: {}", name_, line(), message);
}

void Cursor::fail_expected(std::string_view what) const {
  fail(at_end() ? fmt::format("the text ends where {} was expected", what)
                : fmt::format("expected {}, not '{}'", what, printable(peek().text)));
}

Attribute literal(Cursor& cursor, std::string_view type) {
  static constexpr std::array<std::string_view, 7> kTypes = {"",     "int",    "float", "string",
                                                             "ints", "floats", "tensor"};
  if (std::ranges::find(kTypes, type) == kTypes.end()) {
    cursor.fail(fmt::format("there is no type '{}': int, float, string, ints, floats or tensor",
                            printable(type)));
  }
  const TokenKind kind = cursor.peek().kind;
  const bool is_list = cursor.peek().is("[");
  const bool fits = type.empty() || (type == "tensor" && kind == TokenKind::kName) ||
                    (type == "string" && kind == TokenKind::kText) ||
                    ((type == "int" || type == "float") && kind == TokenKind::kNumber) ||
                    ((type == "ints" || type == "floats") && is_list);
  if (!fits) cursor.fail_expected(fmt::format("a value of type {}", type));
  if (is_list) return list(cursor, type);
  if (kind == TokenKind::kText) return cursor.take().text;
  if (kind == TokenKind::kName) return tensor(cursor);
  const std::optional<std::int64_t> integer = parse_int(cursor.peek().text);
  if (integer && type != "float") {
    cursor.take();
    return *integer;
  }
  if (type == "int") cursor.fail_expected("a whole number");
  return number(cursor);
}

}  // namespace trainscope
