// Reading of TOML files of one level of tables, with the place of every key and value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"

namespace trainscope {

// "x.toml:3:8" for messages; lines and columns count from 1.
struct TomlPlace {
  std::size_t line = 0;
  std::size_t column = 0;
};

// What stands where a value may stand.
enum class TomlKind : std::uint8_t { kString, kInteger, kNumber, kBool, kTime, kArray, kTable };

// "a string", "a whole number", "a table": for messages.
std::string_view name_of(TomlKind kind);

struct TomlEntry {
  std::string table;  // "" at the top level
  std::string key;
  TomlKind kind = TomlKind::kTable;
  // Of kString to kBool the value, of kArray an array of what is a string, number or bool in it;
  // null of others.
  Json value;
  bool plain_items = true;  // of kArray: nothing else is in it
  TomlPlace key_place;
  TomlPlace value_place;
};

// Every key of the top level and of its tables, in the order of lines. Throws kUsage with line and
// column for text that is not TOML (syntax, duplicate keys, not UTF-8), nested beyond a few levels,
// or larger than any configuration; kIo when the file cannot be read.
std::vector<TomlEntry> read_toml(const std::filesystem::path& file);
// The same for text; `shown_file` is for messages.
std::vector<TomlEntry> parse_toml(std::string_view text, std::string_view shown_file);

// A string, number, bool or array of these as TOML writes it.
std::string toml_value(const Json& value);

}  // namespace trainscope
