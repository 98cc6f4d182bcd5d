// "R/N@FD".
#include "cli/flags/ranks_flag.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ranks/rank_memory.h"

namespace trainscope {
namespace {

// A number from `least` to `most`; `least` - 1: it is none.
int number_in(std::string_view text, int least, int most) {
  const std::optional<std::int64_t> number = parse_int(text);
  return number && *number >= least && *number <= most ? static_cast<int>(*number) : least - 1;
}

}  // namespace

std::optional<RankPlace> rank_place(const Settings& settings) {
  if (!settings.all().contains("ranks-fd") || !settings.has("ranks-fd")) return std::nullopt;
  const std::string& text = settings.text("ranks-fd");
  const std::string_view all = text;
  const std::size_t slash = std::min(all.find('/'), all.size());
  const std::size_t at = std::min(all.find('@', slash), all.size());
  RankPlace place;
  if (at < all.size()) {
    place.ranks = number_in(all.substr(slash + 1, at - slash - 1), 1, kMostRanks);
    place.rank = number_in(all.substr(0, slash), 0, place.ranks - 1);
    place.descriptor = number_in(all.substr(at + 1), 0, std::numeric_limits<int>::max());
  }
  require(at < all.size() && place.ranks >= 1 && place.rank >= 0 && place.descriptor >= 0,
          ErrorCode::kUsage, "--ranks-fd is '{}': expected R/N@FD, as `trainscope launch` gives it",
          printable(text));
  return place;
}

bool is_other_rank(const Settings& settings) {
  const std::optional<RankPlace> place = rank_place(settings);
  return place && place->rank > 0;
}

}  // namespace trainscope
