// Every call of a save that fails in turn: a whole checkpoint stays, and the next save works.
#include <doctest/doctest.h>

#include <cerrno>
#include <functional>

#include "engine/core/file.h"
#include "tests/engine/core/core_test_tools.h"
#include "tests/engine/train/checkpoint_tools.h"
#include "tests/engine/train/faults.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

std::int64_t latest_step(const fs::path& root) {
  Logger log({.stream = nullptr});
  const auto checkpoint = load_latest_checkpoint(open_root(root), log);
  REQUIRE(checkpoint.has_value());
  CHECK(is_small_training(*checkpoint, checkpoint->state.step));
  return checkpoint->state.step;
}

// What a training run does at a save: write, note the best, remove the oldest.
void save_and_tidy(const fs::path& root, std::int64_t step, const FileCalls& calls) {
  SmallTraining(step).save(root, calls);
  note_best_checkpoint(open_root(root), {.step = step, .loss = 1.0 / static_cast<double>(step)},
                       calls);
  remove_old_checkpoints(open_root(root), step, 1, calls);
}

using Save = std::function<void(const fs::path& root, const FileCalls& calls)>;

// Runs `save` with the fault; kIo exactly when a call was made to fail. False: it was not reached.
bool fails_with(const Save& save, const fs::path& root, const Fault& fault) {
  const TestCalls calls(fault);
  bool failed = false;
  try {
    save(root, calls);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kIo);
    failed = true;
  }
  CHECK(failed == (calls.failures() > 0));
  return failed;
}

// `before` makes the folder, `save` adds to it. For every call of `save` in turn: it fails, what
// was there before is there still, and the same save without a fault completes. Returns how many.
int check_every_call(const Save& before, const Save& save, const Fault& kind,
                     std::int64_t old_step) {
  int failures = 0;
  while (failures < 200) {
    const TemporaryFolder folder;
    before(folder.path(), TestCalls());
    Fault fault = kind;
    fault.first = failures + 1;
    CAPTURE(fault.first);
    if (!fails_with(save, folder.path(), fault)) break;
    ++failures;
    CHECK(latest_step(folder.path()) >= old_step);
    save(folder.path(), TestCalls());
    CHECK(find_best_checkpoint(open_root(folder.path())).has_value());
  }
  REQUIRE(failures < 200);
  return failures;
}

}  // namespace

TEST_CASE("checkpoint faults: each call fails in turn, alone or with all after it") {
  const Save before = [](const fs::path& root, const FileCalls& calls) {
    save_and_tidy(root, 1, calls);
  };
  for (const std::int64_t step : {2, 1}) {  // a new one, and one in place of another
    const Save save = [step](const fs::path& root, const FileCalls& calls) {
      save_and_tidy(root, step, calls);
    };
    const TemporaryFolder folder;
    before(folder.path(), TestCalls());
    const TestCalls counted;
    save(folder.path(), counted);
    for (const bool all_after : {true, false}) {
      const int failures = check_every_call(before, save, {.all_after = all_after}, 1);
      CHECK(failures == static_cast<int>(counted.calls().size()));
    }
    CHECK(counted.calls().size() >= 20);
  }
}

TEST_CASE("checkpoint faults: a full disk, a broken one, a read-only one, no more files") {
  const Save before = [](const fs::path& root, const FileCalls& calls) {
    save_and_tidy(root, 1, calls);
  };
  const Save save = [](const fs::path& root, const FileCalls& calls) {
    save_and_tidy(root, 2, calls);
  };
  for (const Fault& fault :
       {Fault{.call = "write", .error_number = ENOSPC},
        Fault{.call = "write", .error_number = EFBIG},
        Fault{.call = "write", .error_number = EDQUOT}, Fault{.call = "sync", .error_number = EIO},
        Fault{.call = "rename", .error_number = EIO},
        Fault{.call = "mkdir", .error_number = ENOSPC},
        Fault{.call = "mkdir", .error_number = EROFS},
        Fault{.call = "open", .error_number = EMFILE}}) {
    CAPTURE(fault.call);
    CHECK(check_every_call(before, save, fault, 1) >= 1);
  }
}

TEST_CASE("checkpoint faults: the old one stays until the new one is whole") {
  const TemporaryFolder folder;
  SmallTraining(1).save(folder.path());
  const TestCalls counted;
  SmallTraining(2).save(folder.path(), counted);
  fs::remove_all(folder / "step-00000002");
  // Every call but the last two, which make the renaming durable, leaves only the old one.
  for (int first = 1; first + 1 < static_cast<int>(counted.calls().size()); ++first) {
    const TestCalls calls({.first = first});
    CHECK_THROWS_AS(SmallTraining(2).save(folder.path(), calls), Error);
    CHECK(list_directory(folder.path()) == std::vector<std::string>{"step-00000001"});
    CHECK(latest_step(folder.path()) == 1);
  }
}

TEST_CASE("checkpoint faults: replacing one where folders cannot be exchanged") {
  const TemporaryFolder folder;
  SmallTraining(4).save(folder.path());
  const TestCalls cannot({.call = "exchange", .error_number = EINVAL});
  SmallTraining(4).save(folder.path(), cannot);
  CHECK(cannot.failures() == 1);
  CHECK(latest_step(folder.path()) == 4);
  CHECK(list_directory(folder.path()) == std::vector<std::string>{"step-00000004"});
  const TestCalls broken({.call = "exchange", .error_number = EIO});
  CHECK_THROWS_AS(SmallTraining(4).save(folder.path(), broken), Error);
  CHECK(latest_step(folder.path()) == 4);
}

TEST_CASE("checkpoint faults: the message names the path, the reason and what to do") {
  const TemporaryFolder folder;
  const TestCalls calls({.call = "write", .error_number = ENOSPC});
  const Error error = error_of([&] { SmallTraining(1).save(folder.path(), calls); });
  CHECK(contains(error.message(), "model.safetensors"));
  CHECK(contains(error.message(), "No space left on device"));
  CHECK(contains(error.hint(), "free some space"));
}

}  // namespace trainscope
