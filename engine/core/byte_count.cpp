// Numbers with a unit of bytes behind them.
#include "engine/core/byte_count.h"

#include <cstdlib>

#include "engine/core/text.h"

namespace trainscope {
namespace {

struct ByteUnit {
  std::string_view suffix;
  double bytes = 1.0;
};
constexpr double kKibi = 1024.0;
constexpr ByteUnit kByteUnits[] = {{"KiB", kKibi},
                                   {"MiB", kKibi* kKibi},
                                   {"GiB", kKibi* kKibi* kKibi},
                                   {"TiB", kKibi* kKibi* kKibi* kKibi},
                                   {"KB", 1e3},
                                   {"MB", 1e6},
                                   {"GB", 1e9},
                                   {"TB", 1e12},
                                   {"B", 1.0}};

}  // namespace

std::optional<std::int64_t> find_bytes(std::string_view text) {
  constexpr double kMost = 9e18;  // below 2^63
  double unit = 1.0;
  std::string_view number = text;
  for (const ByteUnit& each : kByteUnits) {
    if (!text.ends_with(each.suffix)) continue;
    unit = each.bytes;
    number = trim(text.substr(0, text.size() - each.suffix.size()));
    break;
  }
  const std::optional<double> value = parse_number(number);
  if (!value || !(*value * unit >= 1.0) || *value * unit > kMost) return std::nullopt;
  return static_cast<std::int64_t>(*value * unit);
}

std::string bytes_text(std::int64_t bytes) {
  const std::string size = human_bytes(static_cast<std::uint64_t>(std::abs(bytes)));
  return bytes < 0 ? "-" + size : size;
}

}  // namespace trainscope
