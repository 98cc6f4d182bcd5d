// Reads sizes from words, and writes them.
#include "engine/size_words.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

void add_number(std::int64_t& size, std::string_view name, std::string_view text) {
  const std::optional<std::int64_t> number = parse_int(text);
  require(number && *number >= 1 && *number <= kMostSize, ErrorCode::kUsage,
          "--{} is '{}': expected a whole number from 1 to {}", name, printable(text), kMostSize);
  size = *number;
}

void add_shape(SizeRequest& request, std::string_view text) {
  const std::size_t equals = text.rfind('=');
  Ints dims;
  bool good = equals != std::string_view::npos && equals > 0;
  if (good) {
    for (std::string_view piece : split(text.substr(equals + 1), ',')) {
      const std::optional<std::int64_t> dim = parse_int(piece);
      good = good && dim && *dim >= 0;
      dims.push_back(dim.value_or(0));
    }
  }
  require(good, ErrorCode::kUsage, "--shape is '{}': expected NAME=2,3", printable(text));
  const std::string_view name = text.substr(0, equals);
  const bool is_new = request.shapes.emplace(name, std::move(dims)).second;
  require(is_new, ErrorCode::kUsage, "--shape gives '{}' twice", printable(name));
}

void add_batch_axis(SizeRequest& request, std::string_view text) {
  const std::size_t equals = text.rfind('=');
  std::optional<std::int64_t> axis;
  if (equals != std::string_view::npos && equals > 0) axis = parse_int(text.substr(equals + 1));
  require(axis && *axis >= 0 && *axis < kMaxRank, ErrorCode::kUsage,
          "--batch-axis is '{}': expected NAME=AXIS, the axis counted from 0", printable(text));
  const std::string_view name = text.substr(0, equals);
  const bool is_new = request.batch_axes.emplace(name, static_cast<int>(*axis)).second;
  require(is_new, ErrorCode::kUsage, "--batch-axis gives '{}' twice", printable(name));
}

struct SizeWord {
  std::string_view name;
  void (*add)(SizeRequest&, std::string_view text);
};
constexpr std::array kSizeWords = {
    SizeWord{"batch", [](SizeRequest& r, std::string_view t) { add_number(r.batch, "batch", t); }},
    SizeWord{"seq", [](SizeRequest& r, std::string_view t) { add_number(r.sequence, "seq", t); }},
    SizeWord{"shape", add_shape},
    SizeWord{"max-trips",
             [](SizeRequest& r, std::string_view t) { add_number(r.max_trips, "max-trips", t); }},
    SizeWord{"batch-axis", add_batch_axis},
};

}  // namespace

void add_size(SizeRequest& request, std::string_view name, std::string_view text) {
  std::vector<std::string> names;
  for (const SizeWord& word : kSizeWords) {
    if (word.name == name) return word.add(request, text);
    names.push_back("--" + std::string(word.name));
  }
  throw Error(ErrorCode::kUsage, fmt::format("'--{}' is no size of a model", printable(name)))
      .hint("sizes: " + join(names, ", "));
}

SizeRequest sizes_from_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  SizeRequest request;
  for (std::size_t i = 0; i < words.size(); ++i) {
    require(words[i].starts_with("--"), ErrorCode::kUsage,
            "'{}' is no flag: expected words such as --batch 8 --seq 128", printable(words[i]));
    const std::string_view flag = words[i].substr(2);
    const std::size_t equals = flag.find('=');
    if (equals != std::string_view::npos) {
      add_size(request, flag.substr(0, equals), flag.substr(equals + 1));
      continue;
    }
    require(i + 1 < words.size(), ErrorCode::kUsage, "--{} needs a value", printable(flag));
    add_size(request, flag, words[++i]);
  }
  return request;
}

std::vector<std::string> words_of(const SizeRequest& request) {
  std::vector<std::string> words;
  const auto add = [&words](std::string_view flag, std::string value) {
    words.emplace_back(flag);
    words.push_back(std::move(value));
  };
  if (request.batch > 0) add("--batch", std::to_string(request.batch));
  if (request.sequence > 0) add("--seq", std::to_string(request.sequence));
  for (const auto& [name, dims] : request.shapes) {
    add("--shape", fmt::format("{}={}", name, fmt::join(dims, ",")));
  }
  if (request.max_trips > 0) add("--max-trips", std::to_string(request.max_trips));
  for (const auto& [name, axis] : request.batch_axes) {
    add("--batch-axis", fmt::format("{}={}", name, axis));
  }
  return words;
}

}  // namespace trainscope
