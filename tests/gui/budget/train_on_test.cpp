// Command lines of plans.
#include "gui/budget/train_on.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "tests/gui/budget/budget_tools.h"

namespace trainscope::gui::test {
namespace {

using trainscope::test::recorded_run;
using trainscope::test::TemporaryFolder;
using Words = std::vector<std::string>;

}  // namespace

TEST_SUITE_BEGIN("processes");

TEST_CASE("train on: a plan as flags") {
  CHECK(plan_flags({.level = PlanLevel::kNone}, "p") == Words{"--recompute", "none"});
  CHECK(plan_flags({.level = PlanLevel::kNone, .keep = {"a"}}, "p") ==
        Words{"--recompute", "none"});
  CHECK(plan_flags({.level = PlanLevel::kLevel2, .keep = {"a"}}, "p") ==
        Words{"--recompute", "2", "--pins", "p"});
  CHECK(plan_flags({.level = PlanLevel::kAuto, .budget_bytes = 7, .recompute = {"a"}}, "p") ==
        Words{"--memory-budget", "7", "--pins", "p"});
  CHECK(pins_text({.keep = {"a b", "c"}, .recompute = {"d*"}}) ==
        "keep a b\nkeep c\nrecompute d*\n");
  for (const char* name : {"", " a", "a ", "a\nb"}) {
    CHECK_THROWS_AS(pins_text({.keep = {name}}), Error);
  }
}

TEST_CASE("train on: words for a shell") {
  const Words words = {"train", "--resume", "/a b/it's", "--lr", "1e-3", "", "$HOME", "a;b"};
  CHECK(command_line(words) ==
        "trainscope train --resume '/a b/it'\\''s' --lr 1e-3 '' '$HOME' 'a;b'");
}

TEST_CASE("train on: from the newest checkpoint, longer where the run has fewer steps left") {
  const TemporaryFolder folder;
  const RunReader ended = recorded_run(folder, 6, {"--save-every", "2"});
  CHECK(newest_checkpoint_step(ended) == 6);
  const Words words =
      train_words(ended, {.level = PlanLevel::kLevel1}, "", 4, new_run_folder(ended, 4));
  CHECK(words == Words{"train", "--resume", (folder / "run").string(), "--session-steps", "4",
                       "--steps", "10", "--recompute", "1"});
  std::filesystem::create_directory(folder / "run/checkpoints/step-9");  // of no checkpoint's name
  CHECK(newest_checkpoint_step(ended) == 6);
  const TemporaryFolder other;
  const RunReader open = recorded_run(other, 30, {"--session-steps", "5"});
  CHECK(newest_checkpoint_step(open) == 5);
  CHECK(train_words(open, {.level = PlanLevel::kAuto, .budget_bytes = 110'000}, "", 20,
                    new_run_folder(open, 20)) == Words{"train", "--resume",
                                                       (other / "run").string(), "--session-steps",
                                                       "20", "--memory-budget", "110000"});
  std::filesystem::remove_all(other / "run/checkpoints");
  CHECK_THROWS_AS(train_words(open, {}, "", 20, new_run_folder(open, 20)), Error);
}

TEST_CASE("train on: a new run where the schedule comes to its end with the run's last step") {
  for (const char* schedule : {"linear", "cosine", "polynomial", "one_cycle"}) {
    CAPTURE(schedule);
    const TemporaryFolder folder;
    const RunReader ended = recorded_run(folder, 6, {"--schedule", schedule});
    CHECK(new_run_folder(ended, 4) == folder / "run-2");
    std::filesystem::create_directory(folder / "run-2");
    CHECK(train_words(ended, {.level = PlanLevel::kLevel1}, "", 4, new_run_folder(ended, 4)) ==
          Words{"train", "--resume", (folder / "run/checkpoints/step-00000006").string(),
                "--run-dir", (folder / "run-3").string(), "--session-steps", "4", "--steps", "10",
                "--recompute", "1"});
  }
  for (const char* schedule : {"constant", "step"}) {
    CAPTURE(schedule);
    const TemporaryFolder folder;
    std::vector<std::string> more = {"--schedule", schedule};
    if (std::string_view(schedule) == "step") more.insert(more.end(), {"--step-size", "2"});
    CHECK(new_run_folder(recorded_run(folder, 6, more), 4).empty());
  }
  const TemporaryFolder folder;
  const RunReader open = recorded_run(folder, 30, {"--schedule", "cosine", "--session-steps", "5"});
  CHECK(new_run_folder(open, 20).empty());  // it has 25 left
  CHECK(new_run_folder(open, 26) == folder / "run-2");
}

TEST_CASE("train on: pins lie in the run's folder") {
  const TemporaryFolder folder;
  const RunReader run = recorded_run(folder, 1);
  CHECK(write_pins(run, {.level = PlanLevel::kLevel1}).empty());
  const PlanRequest pinned{.level = PlanLevel::kLevel1, .keep = {"h.0.*"}};
  const std::string file = write_pins(run, pinned);
  CHECK(trainscope::test::read_text(file) == "keep h.0.*\n");
  CHECK(std::filesystem::path(file).parent_path() == folder / "run");
  CHECK(write_pins(run, pinned) == file);
}

TEST_SUITE_END();

}  // namespace trainscope::gui::test
