// The text form of a data source: KIND:FILE[,FILE..][,key=value...].
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

enum class DataKind : std::uint8_t {
  kText,
  kBpe,
  kTokens,
  kIdx,
  kCsv,
  kTensors,
  kSynthetic,
  kCatalog,
};

// "text", "bpe", "tokens", "idx", "csv", "tensors", "synthetic", "catalog".
std::string_view name_of(DataKind kind);

struct DataSpec {
  DataKind kind = DataKind::kSynthetic;
  std::string text;  // as given, for messages
  // As many as the kind has, in its order; none for kSynthetic. Of kCatalog the name of the set.
  std::vector<std::string> files;
  std::map<std::string, std::string, std::less<>> options;

  // The first one.
  const std::string& file() const { return files.front(); }
  // The option, or `fallback` when it was not given. Throws kUsage when it is no number of the
  // range.
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t minimum) const;
  double fraction(std::string_view key, double fallback) const;  // 0 to 1
  std::string option(std::string_view key, std::string_view fallback) const;
};

// Throws kUsage: unknown kind or option (with the nearest name), missing file, an option twice.
// File names end at commas.
DataSpec parse_data_spec(std::string_view text);

}  // namespace trainscope
