// Tests of the placement search on MiniMalloc's instances, which lie beside the repository.
#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "memplan/csv.h"
#include "memplan/solution.h"
#include "memplan/validate.h"
#include "tests/memplan/problems.h"
#include "tests/support/shared.h"

namespace trainscope::memplan {
namespace {

namespace fs = std::filesystem;

// NAME.CAPACITY.csv, by name.
std::vector<fs::path> instances() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(test::shared_path("data/minimalloc"))) {
    if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Problem read(const fs::path& path) {
  std::ifstream file(path);
  ParsedProblem parsed = parse_problem_csv(std::string(std::istreambuf_iterator<char>(file), {}));
  REQUIRE(parsed.message.empty());
  const std::string capacity = path.stem().extension().string().substr(1);
  std::int64_t bytes = 0;
  std::from_chars(capacity.data(), capacity.data() + capacity.size(), bytes);
  parsed.problem.capacity_bytes = bytes;
  return parsed.problem;
}

void check_fits(const Problem& problem) {
  // Several times what the hardest one takes; effort is counted, so a slow machine changes nothing.
  const Options options{.threads = 2, .patience = Patience::kUnlimited, .most_visits = 400'000'000};
  const Result result = solve(problem, options);
  CHECK_MESSAGE(result.status == Status::kPlaced, result.message);
  if (result.status == Status::kPlaced) CHECK(validate(problem, result.solution).empty());
}

TEST_CASE("instances: MiniMalloc's fit within their capacity, forwards and backwards" *
          doctest::skip(!test::has_shared("data/minimalloc"))) {
  const std::vector<fs::path> paths = instances();
  CHECK(paths.size() >= 9);
  for (const fs::path& path : paths) {
    INFO(path.filename().string());
    const Problem problem = read(path);
    check_fits(problem);
    check_fits(testing::reversed(problem));
  }
}

}  // namespace
}  // namespace trainscope::memplan
