// Small text helpers: names in messages, byte counts, patterns, shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/api/tensor_view.h"

namespace trainscope {

// The candidate nearest to `word` by edit distance (insert, delete, replace, swap neighbours), for
// "did you mean" hints; nothing when none is near enough to be a likely slip of the fingers. Of
// equally near ones the first. Candidates may come from a file: pass the answer through
// printable().
std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string_view> candidates);
std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string> candidates);
// "did you mean 'NAME'?" ready for Error::hint (printable), or "" when none is near.
std::string nearest_hint(std::string_view word, std::span<const std::string> candidates);
std::string nearest_hint(std::string_view word, std::span<const std::string_view> candidates);

std::string join(std::span<const std::string> parts, std::string_view separator);
std::string join(std::span<const std::string_view> parts, std::string_view separator);
// Every piece between separators, empty ones too: "a,,b" has three; "" has one, empty.
// The pieces look into `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
// Without blanks (space, tab, line ends) at both ends.
std::string_view trim(std::string_view text);

// The whole text as a number in decimal, or nothing: no blanks, no sign '+', no trailing text.
std::optional<std::int64_t> parse_int(std::string_view text);
// Finite numbers only.
std::optional<double> parse_number(std::string_view text);

// "0 B", "512 B", "1.5 MiB": binary units, at most one decimal.
std::string human_bytes(std::uint64_t bytes);

bool is_valid_utf8(std::string_view text);

// Text from a file, made safe to print on a terminal: control characters (terminal escapes among
// them), invisible and text-reordering characters and bytes that are not UTF-8 are shown as escapes
// (\n, \x1b, \u{202e}). Text of more than `max_bytes` keeps its beginning and end: "abc...xyz (9000
// bytes)". Everything that comes from a file passes through here before it is printed.
std::string printable(std::string_view text, std::size_t max_bytes = 160);

// A word, and a command line of words, as a POSIX shell reads them: in quotes where one needs them.
std::string shell_word(std::string_view word);
std::string shell_line(std::span<const std::string> words);

// "[2,3]", "[]" for a scalar.
std::string shape_text(const Shape& shape);
// The same for dimensions that may not fit a Shape (read from a file).
std::string shape_text(std::span<const std::int64_t> dims);
// "f32[2,3]".
std::string type_text(const TensorType& type);

// Whether the whole name matches a pattern in which * stands for any text (also empty, also with
// dots and slashes) and ? for one byte. For patterns of parameter names: "*.bias".
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace trainscope
