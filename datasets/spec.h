// The text form of a data source: KIND:FILE[,key=value...].
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace trainscope {

enum class DataKind : std::uint8_t { kText, kTensors, kSynthetic };

// "text", "tensors", "synthetic".
std::string_view name_of(DataKind kind);

struct DataSpec {
  DataKind kind = DataKind::kSynthetic;
  std::string text;  // as given, for messages
  std::string file;  // empty for kSynthetic
  std::map<std::string, std::string, std::less<>> options;

  // The option, or `fallback` when it was not given. Throws kUsage when it is no number of the
  // range.
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t minimum) const;
  double fraction(std::string_view key, double fallback) const;  // 0 to 1
};

// Throws kUsage: unknown kind or option (with the nearest name), missing file, an option twice.
// A file name ends at the first comma.
DataSpec parse_data_spec(std::string_view text);

}  // namespace trainscope
