// The `place` command without its files: CSV text in, CSV text out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "memplan/solution.h"
#include "memplan/streams/csv.h"

namespace trainscope::memplan {

struct PlaceOptions {
  std::optional<std::int64_t> capacity_bytes = {};  // stop at the first placement within it
  double seconds = 1;  // the only limit: the exact search goes on until then
  int threads = 1;
  std::string_view method = "all";  // see Options::method
};

// kPlaced: `csv` holds the problem's rows with their offsets. kOverCapacity: no placement within
// the capacity was found; `solution` is the best one, `csv` is empty. kBadProblem: neither. Except
// when placed, `message` says why.
struct PlaceOutcome {
  Status status = Status::kBadProblem;
  std::string csv = {};
  std::string message = {};
  Solution solution = {};
};

[[nodiscard]] PlaceOutcome place_csv(std::string_view problem_csv, const PlaceOptions& options);

// The same for several streams; there is only the method "all".
[[nodiscard]] PlaceOutcome place_streams_csv(const StreamTexts& texts, const PlaceOptions& options);

}  // namespace trainscope::memplan
