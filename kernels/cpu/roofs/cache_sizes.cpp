// Reads sysfs: a folder index0, index1 ... for each cache.
#include "kernels/cpu/roofs/cache_sizes.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <string>

namespace trainscope::cpu {
namespace {

constexpr int kMostCaches = 16;
constexpr int kMostLevel = 8;

std::string word_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

// "48K" or "32M" in bytes; none for anything else.
std::optional<std::int64_t> bytes_of(const std::string& text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  if (end == 0 || end > 9) return std::nullopt;
  const std::int64_t number = std::stoll(text.substr(0, end));
  const std::string unit = text.substr(end);
  if (number == 0) return std::nullopt;
  if (unit == "K") return number << 10;
  if (unit == "M") return number << 20;
  return unit.empty() ? std::optional(number) : std::nullopt;
}

std::optional<CacheLevel> cache_in(const std::filesystem::path& folder) {
  const std::string type = word_of(folder / "type");
  if (type != "Data" && type != "Unified") return std::nullopt;
  const std::string level = word_of(folder / "level");
  const std::optional<std::int64_t> bytes = bytes_of(word_of(folder / "size"));
  if (level.size() != 1 || level[0] < '1' || level[0] - '0' > kMostLevel || !bytes) {
    return std::nullopt;
  }
  return CacheLevel{.level = level[0] - '0', .bytes = *bytes};
}

}  // namespace

std::vector<CacheLevel> cache_sizes(const std::filesystem::path& folder) {
  std::map<int, std::int64_t> sizes;
  for (int index = 0; index < kMostCaches; ++index) {
    const auto cache = cache_in(folder / ("index" + std::to_string(index)));
    if (cache) sizes.emplace(cache->level, cache->bytes);
  }
  std::vector<CacheLevel> levels;
  for (const auto& [level, bytes] : sizes) levels.push_back({.level = level, .bytes = bytes});
  // Larger levels have larger caches, or what is told makes no sense.
  const bool sorted = std::ranges::is_sorted(levels, {}, &CacheLevel::bytes);
  if (levels.empty() || levels.front().level != 1 || !sorted) {
    return {{.level = 1, .bytes = std::int64_t{32} << 10},
            {.level = 2, .bytes = std::int64_t{1} << 20}};
  }
  return levels;
}

}  // namespace trainscope::cpu
