// The `place` command without its files: parse, solve, write.
#include "memplan/place_csv.h"

#include <limits>
#include <utility>

#include "memplan/csv.h"
#include "memplan/streams/solve.h"

namespace trainscope::memplan {
namespace {

// All that the seconds allow.
Options patient(const PlaceOptions& options) {
  return {.seconds = options.seconds,
          .threads = options.threads,
          .method = options.method,
          .patience = Patience::kUnlimited,
          .most_visits = std::numeric_limits<std::uint64_t>::max()};
}

template <typename AnyProblem>
PlaceOutcome outcome_of(const AnyProblem& problem, Result result) {
  PlaceOutcome outcome{.status = result.status,
                       .message = std::move(result.message),
                       .solution = std::move(result.solution)};
  if (outcome.status == Status::kPlaced) {
    outcome.csv = write_solution_csv(problem, outcome.solution.offsets);
  }
  return outcome;
}

}  // namespace

PlaceOutcome place_csv(std::string_view problem_csv, const PlaceOptions& options) {
  ParsedProblem parsed = parse_problem_csv(problem_csv);
  if (!parsed.message.empty()) return {.message = std::move(parsed.message)};
  parsed.problem.capacity_bytes = options.capacity_bytes;
  return outcome_of(parsed.problem, solve(parsed.problem, patient(options)));
}

PlaceOutcome place_streams_csv(const StreamTexts& texts, const PlaceOptions& options) {
  ParsedStreams parsed = parse_streams_csv(texts);
  if (!parsed.message.empty()) return {.message = std::move(parsed.message)};
  parsed.problem.capacity_bytes = options.capacity_bytes;
  return outcome_of(parsed.problem, solve_streams(parsed.problem, patient(options)));
}

}  // namespace trainscope::memplan
