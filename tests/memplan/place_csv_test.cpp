// Tests of the `place` command's core, on its own texts and on MiniMalloc's instances.
#include "memplan/place_csv.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "memplan/csv.h"
#include "memplan/validate.h"
#include "tests/support/shared.h"

namespace trainscope::memplan {
namespace {

constexpr const char* kSmall =
    "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

// Any 2 of the 3 mutual neighbours fit in 20, all need more than the live bytes can tell.
constexpr const char* kTight = "id,lower,upper,size\na,0,2,10\nb,1,3,10\nc,2,4,10\n";

TEST_CASE("place_csv: minimises to the bound and keeps rows and ids") {
  const PlaceOutcome outcome = place_csv(kSmall, {});
  CHECK(outcome.status == Status::kPlaced);
  CHECK(outcome.solution.height_bytes == 12);
  CHECK(outcome.solution.proven);
  CHECK(outcome.message.empty());
  CHECK(outcome.csv ==
        "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\nb4,9,21,4,4\n"
        "b5,0,21,4,0\n");
}

TEST_CASE("place_csv: a capacity that is met is enough") {
  const PlaceOutcome outcome = place_csv(kTight, {.capacity_bytes = 20});
  CHECK(outcome.status == Status::kPlaced);
  CHECK(outcome.solution.height_bytes == 20);
}

TEST_CASE("place_csv: a capacity out of reach tells the best height and the bound") {
  const PlaceOutcome outcome = place_csv(kTight, {.capacity_bytes = 19});
  CHECK(outcome.status == Status::kOverCapacity);
  CHECK(outcome.csv.empty());
  CHECK(outcome.solution.height_bytes == 20);
  CHECK(outcome.solution.lower_bound_bytes == 20);
  CHECK(outcome.message ==
        "no placement within the capacity of 19 bytes found: best height 20, lower bound 20 "
        "(so none exists)");
}

TEST_CASE("place_csv: bad text and bad options are refused") {
  CHECK(place_csv("nonsense", {}).message.starts_with("line 1: the header is 'nonsense'"));
  CHECK(place_csv("nonsense", {}).status == Status::kBadProblem);
  CHECK(place_csv(kSmall, {.capacity_bytes = -1}).message ==
        "capacity is -1 bytes, expected 0 or more");
  CHECK(place_csv(kSmall, {.seconds = -1}).status == Status::kBadProblem);
  CHECK(place_csv(kSmall, {.threads = 0}).status == Status::kBadProblem);
}

TEST_CASE("place_csv: without rows the solution is the header") {
  const PlaceOutcome outcome = place_csv("id,lower,upper,size\n", {});
  CHECK(outcome.status == Status::kPlaced);
  CHECK(outcome.csv == "id,lower,upper,size,offset\n");
}

std::string read_shared(const std::string& name) {
  std::ifstream file(test::shared_path("data/minimalloc/" + name));
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("place_csv: MiniMalloc's instances get valid placements" *
          doctest::skip(!test::has_shared("data/minimalloc/A.1048576.csv"))) {
  for (const std::string instance : {"A", "B", "C", "D", "E", "F"}) {
    const std::string text = read_shared(instance + ".1048576.csv");
    const PlaceOutcome outcome = place_csv(text, {});
    REQUIRE(outcome.status == Status::kPlaced);
    CHECK(validate(parse_problem_csv(text).problem, outcome.solution).empty());
    const double ratio = static_cast<double>(outcome.solution.height_bytes) /
                         static_cast<double>(outcome.solution.lower_bound_bytes);
    MESSAGE(instance << ": height / lower bound " << ratio << " by " << outcome.solution.method);
    CHECK(ratio < 1.40);  // these are built to defeat first fit
  }
  CHECK(place_csv(read_shared("input.12.csv"), {.capacity_bytes = 12}).status == Status::kPlaced);
}

}  // namespace
}  // namespace trainscope::memplan
