// Saving and loading, which checkpoints stay, and what a killed save leaves.
#include "engine/train/checkpoint.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/core/file.h"
#include "tests/engine/core/core_test_tools.h"
#include "tests/engine/train/checkpoint_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

Logger quiet() { return Logger({.stream = nullptr}); }

std::int64_t latest_step(const fs::path& root) {
  Logger log = quiet();
  const auto checkpoint = load_latest_checkpoint(open_root(root), log);
  REQUIRE(checkpoint.has_value());
  CHECK(is_small_training(*checkpoint, checkpoint->state.step));
  return checkpoint->state.step;
}

void damage(const fs::path& file) {
  std::string text = get(file);
  text.back() = static_cast<char>(text.back() ^ 1);
  put(file, text);
}

}  // namespace

TEST_CASE("checkpoint: what is saved is loaded") {
  const TemporaryFolder folder;
  const fs::path saved = SmallTraining(100).save(folder / "checkpoints");
  CHECK(saved == folder / "checkpoints" / "step-00000100");
  CHECK(list_directory(saved) ==
        std::vector<std::string>{"manifest.json", "model.safetensors", "optimizer.safetensors"});
  const Checkpoint checkpoint = load_checkpoint(saved);
  CHECK(is_small_training(checkpoint, 100));
  CHECK(checkpoint.folder == saved);
  CHECK(checkpoint.state.seed == 0xFFFF'FFFF'FFFF'FFF1U);
  CHECK(checkpoint.state.settings.get<std::int64_t>("batch") == 12);
  CHECK(checkpoint.state.settings.get<std::string>("model_hash") == "00ff");
  CHECK(checkpoint.state.metrics.get<double>("loss") == 1.0 / 101.0);
  const Error error = error_of([&] { checkpoint.file("averages"); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "has no file averages.safetensors"));
}

TEST_CASE("checkpoint: the same state gives the same bytes") {
  const TemporaryFolder folder;
  const fs::path a = SmallTraining(7).save(folder / "a");
  const fs::path b = SmallTraining(7).save(folder / "b");
  for (const std::string& name : list_directory(a)) CHECK(get(a / name) == get(b / name));
}

TEST_CASE("checkpoint: the manifest is readable text") {
  const TemporaryFolder folder;
  const fs::path saved = SmallTraining(3).save(folder.path());
  const Json manifest = read_json_file(saved / "manifest.json");
  CHECK(manifest.get<std::int64_t>("format") == 1);
  CHECK(manifest.get<std::int64_t>("step") == 3);
  CHECK(manifest.get<std::int64_t>("samples_seen") == 36);
  CHECK(manifest.get<std::string>("seed") == "18446744073709551601");
  CHECK(manifest.at("files").at(0).get<std::string>("name") == "model");
  CHECK(manifest.at("files").at(0).get<std::uint64_t>("size_bytes") ==
        fs::file_size(saved / "model.safetensors"));
}

TEST_CASE("checkpoint: names sort as steps do, also beyond eight digits") {
  CHECK(checkpoint_name(0) == "step-00000000");
  CHECK(checkpoint_name(12345678) == "step-12345678");
  CHECK(checkpoint_name(123456789) == "step-123456789");
  const TemporaryFolder folder;
  SmallTraining(99999999).save(folder.path());
  SmallTraining(100000000).save(folder.path());
  CHECK(latest_step(folder.path()) == 100000000);
}

TEST_CASE("latest checkpoint: none in an empty folder") {
  const TemporaryFolder folder;
  Logger log = quiet();
  CHECK(!load_latest_checkpoint(open_root(folder.path()), log).has_value());
}

TEST_CASE("latest checkpoint: other people's names are left alone") {
  const TemporaryFolder folder;
  SmallTraining(5).save(folder.path());
  for (const char* name : {"step-7", "step-00000009.bak", "step--0000009", "step-", "step-0000000x",
                           ".saving-step-00000008", "notes"}) {
    fs::create_directory(folder / name);
  }
  CHECK(latest_step(folder.path()) == 5);
}

TEST_CASE("latest checkpoint: a damaged one is passed over with a warning") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {10, 20, 30}) SmallTraining(step).save(folder / "c");
  damage(folder / "c" / "step-00000030" / "model.safetensors");
  fs::remove(folder / "c" / "step-00000020" / "manifest.json");
  Logger log = quiet();
  log.open_file(open_root(folder.path()) / "log");
  CHECK(load_latest_checkpoint(open_root(folder / "c"), log)->state.step == 10);
  const std::string lines = get(folder / "log");
  CHECK(contains(lines, "\"level\":\"warning\""));
  CHECK(contains(lines, "checkpoint step-00000030 is not usable"));
  CHECK(contains(lines, "model.safetensors is damaged"));
  CHECK(contains(lines, "checkpoint step-00000020 is not usable"));
  CHECK(contains(lines, "manifest.json is missing: the checkpoint was never completed"));
}

TEST_CASE("latest checkpoint: an error when all are damaged, not a silent new start") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {1, 2}) {
    damage(SmallTraining(step).save(folder.path()) / "model.safetensors");
  }
  Logger log = quiet();
  const Error error = error_of([&] { load_latest_checkpoint(open_root(folder.path()), log); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "none of the 2 checkpoints"));
}

TEST_CASE("old checkpoints: the newest stay") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {10, 20, 30, 40}) SmallTraining(step).save(folder.path());
  fs::create_directory(folder / "step-mine");
  remove_old_checkpoints(open_root(folder.path()), 30, 2);
  CHECK(list_directory(folder.path()) ==
        std::vector<std::string>{"step-00000020", "step-00000030", "step-00000040", "step-mine"});
  remove_old_checkpoints(open_root(folder.path()), 40, 1);
  CHECK(list_directory(folder.path()) == std::vector<std::string>{"step-00000040", "step-mine"});
}

TEST_CASE("best checkpoint: noted, replaced by a better one, and kept beside the newest") {
  const TemporaryFolder folder;
  CHECK(!find_best_checkpoint(open_root(folder.path())).has_value());
  for (const std::int64_t step : {10, 20, 30, 40}) SmallTraining(step).save(folder.path());
  note_best_checkpoint(open_root(folder.path()), {.step = 10, .loss = 0.75});
  CHECK(find_best_checkpoint(open_root(folder.path()))->step == 10);
  CHECK(find_best_checkpoint(open_root(folder.path()))->loss == 0.75);
  remove_old_checkpoints(open_root(folder.path()), 40, 2);
  CHECK(list_directory(folder.path()) ==
        std::vector<std::string>{"best.json", "step-00000010", "step-00000030", "step-00000040"});
  CHECK(is_small_training(load_checkpoint(folder / "step-00000010"), 10));
  note_best_checkpoint(open_root(folder.path()), {.step = 40, .loss = 0.5});
  remove_old_checkpoints(open_root(folder.path()), 40, 1);
  CHECK(list_directory(folder.path()) == std::vector<std::string>{"best.json", "step-00000040"});
}

TEST_CASE("best checkpoint: a file that cannot be understood is refused with what to do") {
  const TemporaryFolder folder;
  for (const char* text : {"", "{", "[]", "{\"step\": 1}", "{\"step\": \"1\", \"loss\": 2}"}) {
    put(folder / "best.json", text);
    const Error error = error_of([&] { find_best_checkpoint(open_root(folder.path())); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.hint(), "remove the file"));
  }
}

TEST_CASE("checkpoint: one without metrics, as older programs wrote them, is loaded") {
  const TemporaryFolder folder;
  const CheckpointState state{.step = 3, .samples_seen = 4};
  const fs::path saved = save_checkpoint(open_root(folder.path()), state, {});
  CHECK(!contains(get(saved / "manifest.json"), "metrics"));
  CHECK(load_checkpoint(saved).state.metrics.size() == 0);
}

TEST_CASE("checkpoint: one of the same step is replaced") {
  const TemporaryFolder folder;
  const fs::path saved = SmallTraining(4).save(folder.path());
  damage(saved / "model.safetensors");
  SmallTraining(4).save(folder.path());
  CHECK(latest_step(folder.path()) == 4);
  CHECK(list_directory(folder.path()) == std::vector<std::string>{"step-00000004"});
}

TEST_CASE("checkpoint: what a killed save left behind is removed by the next") {
  const TemporaryFolder folder;
  fs::create_directories(folder / ".saving-step-00000009" / "x");
  put(folder / ".saving-step-00000009" / "model.safetensors", "half");
  fs::create_directories(folder / ".replaced-step-00000001");
  put(folder / ".trainscope-12-0.tmp", "half");
  SmallTraining(10).save(folder.path());
  CHECK(list_directory(folder.path()) == std::vector<std::string>{"step-00000010"});
}

TEST_CASE("checkpoint: killed at any moment, a whole one is there") {
  const TemporaryFolder folder;
  SmallTraining(1).save(folder.path());
  for (int kill_after_us = 0; kill_after_us < 12000; kill_after_us += 300) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (std::int64_t step = 2;; ++step) {
        SmallTraining(step).save(folder.path());
        remove_old_checkpoints(open_root(folder.path()), step, 2);
      }
    }
    ::usleep(static_cast<useconds_t>(kill_after_us));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    Logger log = quiet();
    const auto checkpoint = load_latest_checkpoint(open_root(folder.path()), log);
    REQUIRE(checkpoint.has_value());
    CHECK(is_small_training(*checkpoint, checkpoint->state.step));
  }
}

TEST_CASE("restore: hands over each tensor that is wanted") {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = load_checkpoint(SmallTraining(9).save(folder.path()));
  const TensorView weight{.type = {.dtype = DType::kF32, .shape = {2, 3}}};
  const TensorView count{.type = {.dtype = DType::kI64, .shape = {}}};
  const std::array wanted = {NamedTensor{"n", count}, NamedTensor{"w", weight}};
  std::map<std::string, Tensor, std::less<>> got;
  restore_tensors(checkpoint.file("model"), wanted,
                  [&](std::string_view name, const Tensor& t) { got.emplace(name, t); });
  REQUIRE(got.size() == 2);
  CHECK(got.at("w").values<float>()[0] == 9.0F);
  CHECK(got.at("w").values<float>()[5] == 5.0F);
  CHECK(got.at("n").values<std::int64_t>()[0] == 9);
}

TEST_CASE("restore: every difference is listed and nothing is handed over") {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = load_checkpoint(SmallTraining(9).save(folder.path()));
  const TensorView transposed{.type = {.dtype = DType::kF32, .shape = {3, 2}}};
  const TensorView bias{.type = {.dtype = DType::kF32, .shape = {3}}};
  const std::array wanted = {NamedTensor{"w", transposed}, NamedTensor{"b", bias}};
  int handed_over = 0;
  const Error error = error_of([&] {
    restore_tensors(checkpoint.file("model"), wanted,
                    [&](std::string_view, const Tensor&) { ++handed_over; });
  });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "'w' is f32[2,3], the model has f32[3,2]"));
  CHECK(contains(error.message(), "'b' is missing"));
  CHECK(contains(error.message(), "'n' is not in the model"));
  CHECK(handed_over == 0);
}

}  // namespace trainscope
