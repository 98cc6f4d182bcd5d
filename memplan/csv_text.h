// Pieces that the readers of CSV files share: lines, fields, numbers, and text for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope::memplan {

// Input as messages show it: quoted, short, without bytes that would garble a terminal.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Cuts the next line off `text`, without its line end (LF or CRLF).
std::string_view next_line(std::string_view& text);

// What is wrong with a name in a file (quotes and control characters are not supported), or "".
[[nodiscard]] std::string find_id_error(std::string_view id);

// Every field between commas, empty ones too; the pieces look into `line`.
[[nodiscard]] std::vector<std::string_view> split_fields(std::string_view line);

// Reads a whole number of 0 or more into `value`; what is wrong with it, or "".
[[nodiscard]] std::string read_number(std::string_view field, std::int64_t& value);

}  // namespace trainscope::memplan
