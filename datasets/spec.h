// The text form of a data source: FORMAT:FILE[,FILE..][,key=value...], or without FORMAT: where the
// name of the file says what it is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

struct DataSpec {
  std::string_view format = {};  // the name of a DataFormat (datasets/format.h)
  std::string text;              // as given, for messages
  // As many as the format has, in its order. Of a catalog the name of the set.
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

// Throws kUsage: unknown format or option (with the nearest name), missing file, an option twice.
// File names end at commas.
DataSpec parse_data_spec(std::string_view text);

}  // namespace trainscope
