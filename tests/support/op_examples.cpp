// Parses example texts and makes their tensors.
#include "tests/support/op_examples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "kernels/api/random.h"

namespace trainscope::test {
namespace {

// --- Text ----------------------------------------------------------------------------------------
// Pieces between separators that stand outside of all brackets and quotes.
std::vector<std::string_view> split_outside(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') quoted = !quoted;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c != separator || depth > 0 || quoted) continue;
    pieces.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  pieces.push_back(trim(text.substr(begin)));
  return pieces;
}

std::int64_t integer(std::string_view text) {
  const auto value = parse_int(text);
  require(value.has_value(), ErrorCode::kBadInput, "'{}' is not an integer", text);
  return *value;
}

double number(std::string_view text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  const auto value = parse_number(text);
  require(value.has_value(), ErrorCode::kBadInput, "'{}' is not a number", text);
  return *value;
}

// The text between a leading `open` and its `close`; `rest` becomes what follows.
std::string_view enclosed(std::string_view text, char open, char close, std::string_view& rest) {
  const std::size_t end = text.find(close);
  require(!text.empty() && text[0] == open && end != std::string_view::npos, ErrorCode::kBadInput,
          "'{}' is not enclosed in {}{}", text, open, close);
  rest = text.substr(end + 1);
  return text.substr(1, end - 1);
}

// --- Inputs --------------------------------------------------------------------------------------
void parse_constraint(std::string_view text, ExampleInput& input) {
  if (text.empty()) return;
  if (text == ">0") {
    input.fill = Fill::kPositive;
  } else if (text == ">1") {
    input.fill = Fill::kAboveOne;
  } else if (text == "~") {
    input.fill = Fill::kSeparated;
  } else if (text[0] == '<') {
    input.fill = Fill::kBelow;
    input.bound = integer(text.substr(1));
  } else {
    require(text[0] == '=', ErrorCode::kBadInput, "'{}' is no constraint", text);
    std::string_view rest;
    const std::string_view list = enclosed(text.substr(1), '{', '}', rest);
    input.fill = Fill::kGiven;
    if (list.empty()) return;
    for (std::string_view item : split(list, ',')) input.given.emplace_back(trim(item));
  }
}

ExampleInput parse_input(std::string_view text) {
  ExampleInput input;
  if (text == "-") {
    input.present = false;
    return input;
  }
  const std::size_t bracket = text.find('[');
  require(bracket != std::string_view::npos, ErrorCode::kBadInput, "'{}' has no shape", text);
  const std::string_view dtype = text.substr(0, bracket);
  for (DType candidate : kAllDTypes) {
    if (name_of(candidate) != dtype) continue;
    input.type.dtype = candidate;
    input.any_float = false;
  }
  require(dtype.empty() || !input.any_float, ErrorCode::kBadInput, "'{}' is no dtype", dtype);
  std::string_view rest;
  const std::string_view dims = enclosed(text.substr(bracket), '[', ']', rest);
  if (!dims.empty()) {
    for (std::string_view dim : split(dims, ',')) input.type.shape.push_back(integer(trim(dim)));
  }
  parse_constraint(rest, input);
  if (input.fill == Fill::kGiven) {
    require(static_cast<std::int64_t>(input.given.size()) == input.type.elements(),
            ErrorCode::kBadInput, "'{}' has {} elements", text, input.given.size());
  }
  return input;
}

// --- Attributes ----------------------------------------------------------------------------------
bool looks_integer(std::string_view text) {
  return text.find_first_of(".einf") == std::string_view::npos;
}

Attribute parse_list(std::string_view text) {
  std::string_view rest;
  const std::string_view list = enclosed(text, '{', '}', rest);
  Ints ints;
  Floats floats;
  bool all_integers = true;
  if (list.empty()) return ints;
  for (std::string_view item : split(list, ',')) {
    item = trim(item);
    all_integers = all_integers && looks_integer(item);
    floats.push_back(number(item));
    if (all_integers) ints.push_back(integer(item));
  }
  if (all_integers) return ints;
  return floats;
}

Attribute parse_attribute(std::string_view text) {
  require(!text.empty(), ErrorCode::kBadInput, "an attribute has no value");
  if (text[0] == '{') return parse_list(text);
  if (text[0] == '\'') return std::string(text.substr(1, text.size() - 2));
  if (looks_integer(text)) return integer(text);
  return number(text);
}

// --- Elements ------------------------------------------------------------------------------------
constexpr double kGap = 0.03;      // between the numbers of a separated tensor
constexpr double kOffset = 0.004;  // between the numbers of two of them

// Multiples of 2^-20 below 16 in magnitude need 24 bits: exact in both float types.
double both_types(double value) { return std::round(value * 0x1p20) * 0x1p-20; }

std::vector<double> separated(std::int64_t count, std::size_t input, std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(count);
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<double>(
        static_cast<float>((static_cast<double>(i) - static_cast<double>(n / 2) + 0.5) * kGap +
                           static_cast<double>(input) * kOffset));
  }
  for (std::size_t i = n; i > 1; --i) {
    std::swap(values[i - 1], values[random_below(seed, input, i, i)]);
  }
  return values;
}

// An element that is no normal number.
double draw(const ExampleInput& input, DType dtype, std::uint64_t seed, std::uint64_t stream,
            std::uint64_t index) {
  const auto below = [&](std::int64_t bound) {
    return static_cast<double>(
        random_below(seed, stream, index, static_cast<std::uint64_t>(bound)));
  };
  if (dtype == DType::kBool) return below(2);
  if (input.fill == Fill::kBelow) return below(input.bound);
  const bool above_one = input.fill == Fill::kAboveOne;
  const bool positive = above_one || input.fill == Fill::kPositive;
  if (!is_float(dtype)) return positive ? (above_one ? 2.0 : 1.0) + below(9) : below(19) - 9.0;
  return both_types((above_one ? 1.25 : 0.5) + 1.5 * random_uniform_f64(seed, stream, index));
}

// Normal numbers: tensors of one stream begin alike, so each number is drawn once.
void fill_normal(std::span<double> values, std::uint64_t seed, std::uint64_t stream) {
  static std::mutex lock;
  static std::map<std::array<std::uint64_t, 2>, std::vector<double>> drawn;
  const std::lock_guard guard(lock);
  std::vector<double>& numbers = drawn[{seed, stream}];
  while (numbers.size() < values.size()) {
    for (const double number : random_normal_pair(seed, stream, numbers.size() / 2)) {
      numbers.push_back(both_types(number));
    }
  }
  std::copy_n(numbers.begin(), values.size(), values.begin());
}

}  // namespace

Example parse_example(std::string_view text) {
  Example example;
  const std::vector<std::string_view> halves = split_outside(text, ';');
  require(halves.size() <= 2, ErrorCode::kBadInput, "'{}' has more than one ';'", text);
  if (!halves[0].empty()) {
    for (std::string_view input : split_outside(halves[0], ',')) {
      example.inputs.push_back(parse_input(input));
    }
  }
  if (halves.size() == 1) return example;
  for (std::string_view item : split_outside(halves[1], ' ')) {
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    require(equals != std::string_view::npos, ErrorCode::kBadInput, "'{}' is no attribute", item);
    const std::string name(item.substr(0, equals));
    if (name == "outputs") {
      example.output_count = static_cast<int>(integer(item.substr(equals + 1)));
    } else {
      example.attributes.set(name, parse_attribute(item.substr(equals + 1)));
    }
  }
  return example;
}

Tensor make_input(const Example& example, std::size_t input, DType float_type, std::uint64_t seed) {
  const ExampleInput& spec = example.inputs[input];
  const DType dtype = spec.any_float ? float_type : spec.type.dtype;
  Tensor numbers({.dtype = DType::kF64, .shape = spec.type.shape});
  const std::span<double> values = numbers.values<double>();
  if (spec.fill == Fill::kGiven && !is_float(dtype)) {
    Tensor integers({.dtype = DType::kI64, .shape = spec.type.shape});
    for (std::size_t i = 0; i < values.size(); ++i) {
      integers.values<std::int64_t>()[i] = integer(spec.given[i]);
    }
    return convert(integers, dtype);
  }
  if (spec.fill == Fill::kSeparated) {
    const std::vector<double> list = separated(numbers.elements(), input, seed);
    std::copy(list.begin(), list.end(), values.begin());
    return convert(numbers, dtype);
  }
  if (spec.fill == Fill::kFree && is_float(dtype)) {
    fill_normal(values, seed, input);
    return convert(numbers, dtype);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = spec.fill == Fill::kGiven
                    ? static_cast<double>(static_cast<float>(number(spec.given[i])))
                    : draw(spec, dtype, seed, input, i);
  }
  return convert(numbers, dtype);
}

Tensor random_tensor(const TensorType& type, std::uint64_t seed, std::uint64_t stream) {
  Tensor numbers({.dtype = DType::kF64, .shape = type.shape});
  const std::span<double> values = numbers.values<double>();
  if (is_float(type.dtype)) {
    fill_normal(values, seed, stream);
    return convert(numbers, type.dtype);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = draw(ExampleInput{}, type.dtype, seed, stream, i);
  }
  return convert(numbers, type.dtype);
}

}  // namespace trainscope::test
