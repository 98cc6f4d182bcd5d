// Reading tokens, numbers, lists and tensors.
#include "engine/functions/literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>

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

// Whether a number is written without a fraction or an exponent, however large it is.
bool is_written_whole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A whole number within 64 bits, every digit of it; `what` is what the message expects.
std::int64_t whole_number(Cursor& cursor, std::string_view what) {
  const std::string text = cursor.peek().kind == TokenKind::kNumber ? cursor.peek().text : "";
  const std::optional<std::int64_t> value = parse_int(text);
  if (!value && is_written_whole(text)) {
    cursor.fail(fmt::format("'{}' is no whole number of 64 bits", printable(text)));
  }
  if (!value) cursor.fail_expected(what);
  cursor.take();
  return *value;
}

// Calls `take` for each item of "1, 2}" and passes the closing sign.
template <class Take>
void for_each_item(Cursor& cursor, std::string_view close, const Take& take) {
  if (cursor.skip(close)) return;
  std::size_t count = 0;
  do {
    if (++count > kMostElements) {
      cursor.fail(fmt::format("a list of more than {} numbers", kMostElements));
    }
    take();
  } while (cursor.skip(","));
  cursor.sign(close);
}

// Whole numbers, or where one has a fraction or the type is floats, numbers.
Attribute list(Cursor& cursor, std::string_view type) {
  cursor.sign("[");
  Ints integers;
  Floats values;
  bool whole = type != "floats";
  for_each_item(cursor, "]", [&] {
    const bool has_fraction = !is_written_whole(cursor.peek().text);
    if (has_fraction && type != "ints") whole = false;
    if (whole) {
      integers.push_back(whole_number(cursor, "a whole number"));
      values.push_back(static_cast<double>(integers.back()));
    } else {
      values.push_back(number(cursor));
    }
  });
  if (whole) return integers;
  return values;
}

template <typename T>
Tensor tensor_of(Shape shape, const std::vector<T>& values) {
  return Tensor::of<T>(shape, std::span<const T>(values));
}

// An element of a tensor of integers or truth values (0 or 1).
std::int64_t whole_element(Cursor& cursor, DType dtype) {
  if (dtype == DType::kI64) return whole_number(cursor, "a whole number");
  const bool is_bool = dtype == DType::kBool;
  using Narrow = std::numeric_limits<std::int32_t>;
  return cursor.integer(fmt::format("an element of {}", name_of(dtype)),
                        is_bool ? 0 : Narrow::min(), is_bool ? 1 : Narrow::max());
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
  std::vector<std::int64_t> integers;
  std::vector<double> values;
  for_each_item(cursor, "}", [&] {
    if (is_float(*dtype)) {
      values.push_back(number(cursor));
    } else {
      integers.push_back(whole_element(cursor, *dtype));
    }
  });
  const std::size_t count = std::max(integers.size(), values.size());
  double elements = 1.0;  // the product may be beyond 64 bits
  for (const std::int64_t dim : shape.span()) elements *= static_cast<double>(dim);
  if (static_cast<double>(count) != elements) {
    cursor.fail(fmt::format("a tensor {} has {} elements", shape_text(shape), count));
  }
  const Tensor wide = is_float(*dtype) ? tensor_of(shape, values) : tensor_of(shape, integers);
  return std::make_shared<const Tensor>(convert(wide, *dtype));
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
  if (type == "int" || (type != "float" && is_written_whole(cursor.peek().text))) {
    return whole_number(cursor, "a whole number");
  }
  return number(cursor);
}

}  // namespace trainscope
