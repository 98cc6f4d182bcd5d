// Small text helpers: names in messages, byte counts, patterns, shapes.
#include "engine/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace trainscope {
namespace {

// Names longer than this get no hint: the table of distances would be slow, the hint useless.
constexpr std::size_t kLongestHint = 200;

// Optimal string alignment: Levenshtein with swaps of neighbours; three rows of the table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

template <typename T>
std::optional<std::string> nearest(std::string_view word, std::span<const T> candidates) {
  if (word.empty() || word.size() > kLongestHint) return std::nullopt;
  // A third of the letters wrong, at least one: more is another word.
  std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  for (const T& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) > limit) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > limit) continue;
    best = std::string(candidate);
    if (distance == 0) break;
    limit = distance - 1;  // only a nearer one replaces it
  }
  return best;
}

template <typename T>
std::string hint_of(std::string_view word, std::span<const T> candidates) {
  const auto name = nearest(word, candidates);
  return name ? fmt::format("did you mean '{}'?", printable(*name)) : "";
}

template <typename T>
std::string join_parts(std::span<const T> parts, std::string_view separator) {
  std::string text;
  for (const T& part : parts) {
    if (&part != parts.data()) text += separator;
    text += part;
  }
  return text;
}

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: not valid UTF-8
};

// The code point at the beginning of a text that is not empty (RFC 3629: shortest form, no
// surrogates, at most U+10FFFF).
CodePoint decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return {};
  std::uint32_t value = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[size] || value > 0x10FFFF || surrogate) return {};
  return {value, size};
}

// Characters that a terminal obeys, does not show, or reorders the line by.
bool is_unprintable(std::uint32_t c) {
  struct Range {
    std::uint32_t first, last;
  };
  constexpr Range kRanges[] = {
      {0x00, 0x1F},      {0x7F, 0x9F},      // control characters C0, DEL, C1
      {0xAD, 0xAD},      {0x61C, 0x61C},    // soft hyphen, Arabic letter mark
      {0x180E, 0x180E},  {0x200B, 0x200F},  // zero width, direction marks
      {0x2028, 0x202E},  {0x2060, 0x206F},  // line separators, embedding and isolates
      {0xFEFF, 0xFEFF},  {0xFFF9, 0xFFFB},  // byte order mark, annotations
      {0xE0000, 0xE007F}                    // tags
  };
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const Range& r) { return c >= r.first && c <= r.last; });
}

std::string escape(std::uint32_t c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return c < 0x100 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{{{:x}}}", c);
  }
}

std::string escape_unprintable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    // Most texts are plain ASCII.
    const auto plain = std::ranges::find_if(text, [](char c) { return c < 0x20 || c > 0x7E; });
    result.append(text.begin(), plain);
    text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
    if (text.empty()) break;
    const CodePoint c = decode_utf8(text);
    const std::size_t bytes = std::max<std::size_t>(c.bytes, 1);
    if (c.bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (is_unprintable(c.value)) {
      result += escape(c.value);
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return result;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  return nearest(word, candidates);
}

std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string> candidates) {
  return nearest(word, candidates);
}

std::string nearest_hint(std::string_view word, std::span<const std::string_view> candidates) {
  return hint_of(word, candidates);
}

std::string nearest_hint(std::string_view word, std::span<const std::string> candidates) {
  return hint_of(word, candidates);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return join_parts(parts, separator);
}

std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  return join_parts(parts, separator);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would be shown as 1024.0: the next unit's.
  while (value >= 1023.95) {
    value /= 1024;
    ++unit;
  }
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}", number, kUnits[unit]);
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    if (c.bytes == 0) return false;
    text.remove_prefix(c.bytes);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return escape_unprintable(text);
  std::size_t head = max_bytes * 2 / 3;
  std::size_t tail = text.size() - max_bytes / 3;
  // Not in the middle of a character; of bytes that are no characters at most three are skipped.
  for (int i = 0; i < 3 && head > 0 && is_continuation(text[head]); ++i) --head;
  for (int i = 0; i < 3 && tail < text.size() && is_continuation(text[tail]); ++i) ++tail;
  return fmt::format("{}...{} ({} bytes)", escape_unprintable(text.substr(0, head)),
                     escape_unprintable(text.substr(tail)), text.size());
}

std::string shape_text(const Shape& shape) { return shape_text(shape.span()); }

std::string shape_text(std::span<const std::int64_t> dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

std::string type_text(const TensorType& type) {
  return fmt::format("{}{}", name_of(type.dtype), shape_text(type.shape));
}

// Greedy with one point of return, the last star: any match of an earlier star that the rest fits
// behind can be had with its shortest match too.
bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::size_t n = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_end = 0;  // where the text that the last star stands for ends
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_end = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace trainscope
