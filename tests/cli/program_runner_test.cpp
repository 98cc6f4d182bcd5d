// What the tests leave for scripts/check_plan.py.
#include "tests/cli/program_runner.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>

#include "tests/support/kept_plans.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

// Keeps plans in another folder while it lives.
class KeepingIn {
 public:
  explicit KeepingIn(const fs::path& folder) {
    if (const char* before = std::getenv(kKeptPlansVariable)) before_ = before;
    setenv(kKeptPlansVariable, folder.c_str(), 1);
  }
  ~KeepingIn() {
    unsetenv(kKeptPlansVariable);
    if (before_) setenv(kKeptPlansVariable, before_->c_str(), 1);
  }
  KeepingIn(const KeepingIn&) = delete;
  KeepingIn& operator=(const KeepingIn&) = delete;

 private:
  std::optional<std::string> before_;
};

std::ptrdiff_t plans_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

}  // namespace

TEST_CASE("program runner: the plan of each run is kept once, with the stages to check") {
  const TemporaryFolder folder;
  const TemporaryFolder kept;
  const KeepingIn keeping(kept.path());
  std::vector<std::string> words = {"train",       test_model("mlp/model.onnx").string(),
                                    "--data",      "synthetic",
                                    "--steps",     "1",
                                    "--threads",   "1",
                                    "--recompute", "1"};
  CHECK(run(words, {}, folder.path()).exit_code == 0);
  CHECK(plans_in(kept.path()) == 1);
  words.insert(words.end(), {"--run-dir", "r"});
  CHECK(run(words, {}, folder.path()).exit_code == 0);
  CHECK(plans_in(kept.path()) == 1);
  words.insert(words.end(), {"--optimizer", "sgd"});
  CHECK(run(words, {}, folder.path()).exit_code != 0);  // there is a run already
  words[words.size() - 3] = "s";
  CHECK(run(words, {}, folder.path()).exit_code == 0);
  CHECK(plans_in(kept.path()) == 2);
  for (const fs::directory_entry& plan : fs::directory_iterator(kept.path())) {
    const Json stages = Json::parse(read_text(plan.path() / "stages/stages.json"));
    const JsonArray& rows = stages.array_at("stages");
    REQUIRE(rows.size() == 3);
    CHECK(rows[1].get<std::string>("name") == "order");
    CHECK(rows[2].get<std::string>("name") == "recompute");
    CHECK(read_text(plan.path() / "plan.json") != "");
    CHECK(fs::exists(plan.path() / "stages" / rows[2].get<std::string>("file")));
  }
}

}  // namespace trainscope::test
