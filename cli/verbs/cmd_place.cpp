// place: the placement search alone, on a problem from a file.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "memplan/place_csv.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxProblemBytes = std::uint64_t{1} << 30;

// Every name of Options::method, for help and completion.
constexpr std::string_view kMethods = "all|exact"
#define PLACER(name) "|" #name
#include "memplan/placers.def"
#undef PLACER
    ;

constexpr Flag kPlaceFlags[] = {
    {.name = "capacity",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Stop at the first layout of at most N bytes",
     .minimum = 0},
    {.name = "seconds",
     .type = FlagType::kNumber,
     .value = "S",
     .fallback = "1",
     .help = "Time limit of the search",
     .minimum = 0},
    {.name = "method",
     .type = FlagType::kChoice,
     .value = kMethods,
     .fallback = "all",
     .help = "One placer alone, or the exact search alone"},
    {.name = "streams",
     .value = "OPERATIONS.csv",
     .help = "Operations of several streams (rows id,stream,after); the buffers are then rows "
             "id,size,producer,readers"},
    {.name = "out", .value = "SOLUTION.csv", .help = "Where the rows with their offsets go"},
};

Json facts_of(const memplan::Solution& solution, const std::string& asked_method) {
  return Json::object({{"height_bytes", solution.height_bytes},
                       {"lower_bound_bytes", solution.lower_bound_bytes},
                       {"gap_bytes", solution.height_bytes - solution.lower_bound_bytes},
                       {"proven", solution.proven},
                       {"method", solution.method},
                       {"asked_method", asked_method},
                       {"seconds", std::chrono::duration<double>(solution.elapsed).count()}});
}

// What decided the height, and why that is not the method asked for: another was there first.
std::string decided_by(std::string_view method, const std::string& asked_method) {
  if (asked_method == "all" || asked_method == method) return std::string(method);
  if (method == "stack") return fmt::format("stack, which leaves nothing to {}", asked_method);
  return fmt::format("{}, {} found nothing lower", method, asked_method);
}

std::string describe(const memplan::Solution& solution, const std::string& asked_method) {
  const auto bound = static_cast<double>(solution.lower_bound_bytes);
  const auto gap = static_cast<double>(solution.height_bytes - solution.lower_bound_bytes);
  return fmt::format("height {} bytes, lower bound {}, gap {:.2f} %, {}; by {} ({:.3f} s)\n",
                     solution.height_bytes, solution.lower_bound_bytes,
                     bound > 0 ? 100 * gap / bound : 0,
                     solution.proven ? "the best there is" : "not proven the best",
                     decided_by(solution.method, asked_method),
                     std::chrono::duration<double>(solution.elapsed).count());
}

memplan::PlaceOutcome place(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  require(!settings.has("streams") || settings.text("method") == "all", ErrorCode::kUsage,
          "--method is for problems without --streams: leave it out");
  const std::string problem = read_file(invocation.argument(0), kMaxProblemBytes);
  const memplan::PlaceOptions options{.capacity_bytes = settings.find_integer("capacity"),
                                      .seconds = settings.number("seconds"),
                                      .threads = invocation.threads(),
                                      .method = settings.text("method")};
  if (!settings.has("streams")) return memplan::place_csv(problem, options);
  const std::string operations = read_file(settings.text("streams"), kMaxProblemBytes);
  return memplan::place_streams_csv({.operations = operations, .buffers = problem}, options);
}

// The file of a fault: of two the one that the message begins with, and the other beside it.
std::string at_fault(const Invocation& invocation, std::string_view message) {
  const Settings& settings = invocation.settings();
  const std::string problem = printable(invocation.argument(0));
  if (!settings.has("streams")) return fmt::format("'{}'", problem);
  const std::string operations = printable(settings.text("streams"));
  return message.starts_with("operation")
             ? fmt::format("'{}' (buffers in '{}')", operations, problem)
             : fmt::format("'{}' (operations in '{}')", problem, operations);
}

Outcome run_place(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const std::string& problem = invocation.argument(0);
  require(settings.has("out"), ErrorCode::kUsage, "place needs --out SOLUTION.csv");
  const memplan::PlaceOutcome placed = place(invocation);
  if (placed.status == memplan::Status::kBadProblem) {
    fail(ErrorCode::kBadInput, "{}: {}", at_fault(invocation, placed.message),
         printable(placed.message, 400));
  }
  if (placed.status == memplan::Status::kOverCapacity) {
    const bool none_exists = placed.solution.lower_bound_bytes > settings.integer("capacity");
    throw Error(ErrorCode::kOutOfMemory, printable(placed.message, 400))
        .at(printable(problem))
        .hint(fmt::format("{}--capacity {} or more", none_exists ? "" : "more --seconds, or ",
                          placed.solution.height_bytes));
  }
  write_file_atomic(settings.text("out"), placed.csv);
  const std::string& asked_method = settings.text("method");
  Outcome outcome{.facts = facts_of(placed.solution, asked_method)};
  outcome.text = describe(placed.solution, asked_method);
  return outcome;
}

}  // namespace

Command place_command() {
  return {
      .name = "place",
      .summary = "Lay out the buffers of a placement problem.",
      .arguments = {{.name = "PROBLEM.csv",
                     .help = "rows id,lower,upper,size; upper is exclusive (with --streams: rows "
                             "id,size,producer,readers)"}},
      .flags = join_flags({kPlaceFlags}),
      .examples = {"trainscope place problem.csv --out solution.csv",
                   "trainscope place problem.csv --capacity 1048576 --seconds 10 --out "
                   "solution.csv"},
      .run = run_place};
}

}  // namespace trainscope
