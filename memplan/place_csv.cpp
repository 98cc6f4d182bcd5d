// The `place` command without its files: parse, solve, write.
#include "memplan/place_csv.h"

#include <limits>
#include <utility>

#include "memplan/csv.h"

namespace trainscope::memplan {

PlaceOutcome place_csv(std::string_view problem_csv, const PlaceOptions& options) {
  ParsedProblem parsed = parse_problem_csv(problem_csv);
  if (!parsed.message.empty()) return {.message = std::move(parsed.message)};
  parsed.problem.capacity_bytes = options.capacity_bytes;
  Result result = solve(parsed.problem, {.seconds = options.seconds,
                                         .threads = options.threads,
                                         .method = options.method,
                                         .patience = Patience::kUnlimited,
                                         .most_visits = std::numeric_limits<std::uint64_t>::max()});
  PlaceOutcome outcome{.status = result.status,
                       .message = std::move(result.message),
                       .solution = std::move(result.solution)};
  if (outcome.status == Status::kPlaced) {
    outcome.csv = write_solution_csv(parsed.problem, outcome.solution.offsets);
  }
  return outcome;
}

}  // namespace trainscope::memplan
