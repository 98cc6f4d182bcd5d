// A tensor of a past step again: the bits of a run that recorded it; and where a NaN came from.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "cli/compare/find_trace.h"
#include "engine/core/file.h"
#include "engine/core/safetensors.h"
#include "kernels/api/random.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

using profiler::TraceRow;

const std::string kModels = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/models/";

std::vector<std::string> training(const std::string& model, const std::filesystem::path& to) {
  return {"train",    kModels + model + "/model.onnx",
          "--data",   "synthetic",
          "--lr",     "0.001",
          "--steps",  "12",
          "--quiet",  "--save-every",
          "4",        "--keep",
          "9",        "--run-dir",
          to.string()};
}

// Dropout, batch norms, and neither; tensors at random places of the recorded steps.
TEST_CASE("at: the bits of a run that recorded them") {
  for (const std::string model : {"gpt2-dropout", "resnet18", "lenet"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    REQUIRE(run(training(model, folder / "plain")).exit_code == 0);
    std::vector<std::string> words = training(model, folder / "recorded");
    words.insert(words.end(), {"--record-numerics", "--record-steps", "2,7,12"});
    REQUIRE(run(words).exit_code == 0);
    const auto trace = find_trace((folder / "recorded").string());
    REQUIRE(trace.has_value());
    std::vector<const TraceRow*> rows;
    for (const TraceRow& row : trace->rows()) {
      if (row.step > 0 && row.kind != profiler::TraceKind::kOwn) rows.push_back(&row);
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto at = static_cast<std::size_t>(random_u64(11, 1, i) % rows.size());
      const TraceRow& row = *rows[at];
      CAPTURE(row.step);
      CAPTURE(row.key());
      const Finished again = run({"at", (folder / "plain").string(), "--step",
                                  std::to_string(row.step), "--value", row.key(), "--json"});
      CAPTURE(again.err);
      REQUIRE(again.exit_code == 0);
      CHECK(again.json().at("hash").as_string() == hash_hex(row.hash));
      CHECK(again.json().at("bitwise").as_bool());
      CHECK_FALSE(again.json().at("unfused").as_bool());
    }
  }
}

TEST_CASE("at: what is inside a fused node comes from the step without fusions, and says so") {
  const TemporaryFolder folder;
  REQUIRE(run(training("gpt2", folder / "run")).exit_code == 0);
  const std::filesystem::path file = folder / "softmax.safetensors";
  const Finished finished =
      run({"at", (folder / "run").string(), "--step", "6", "--value", "/h.0/attn/Softmax_output_0",
           "--output", file.string(), "--json"});
  CAPTURE(finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK(finished.json().at("unfused").as_bool());
  const Tensor softmax = SafetensorsFile::open(file).tensor("act:/h.0/attn/Softmax_output_0");
  double sum = 0.0;
  for (const float x : softmax.values<float>()) sum += x;
  const std::int64_t width = softmax.type().shape[softmax.type().shape.rank - 1];
  CHECK(sum == doctest::Approx(static_cast<double>(softmax.elements() / width)));
}

TEST_CASE("at: refusals") {
  const TemporaryFolder folder;
  REQUIRE(run(training("mlp", folder / "run")).exit_code == 0);
  const std::string to = (folder / "run").string();
  const auto refused = [&](const std::vector<std::string>& words, const std::string& said) {
    const Finished finished = run(words);
    CAPTURE(finished.err);
    CHECK(finished.exit_code == 2);
    CHECK(finished.err.find(said) != std::string::npos);
  };
  refused({"at", to}, "--step and --value");
  refused({"at", to, "--step", "13", "--value", "x"}, "there is no step 13");
  refused({"at", to, "--step", "1", "--value", "nosuch"}, "no value 'nosuch'");
  refused({"at", to, "--step", "1", "--value", "x", "--threads", "7"}, "threads was");
  refused({"at", to, "--first-nan"}, "did not end because its loss was no number");
}

TEST_CASE("at: options that the run had otherwise are named") {
  const TemporaryFolder folder;
  const std::string run_folder = (folder / "run").string();
  REQUIRE(run(training("mlp", run_folder)).exit_code == 0);
  const Finished found = run({"at", run_folder, "--step", "3", "--value", "loss", "--seed", "5"});
  CHECK(found.exit_code == 2);
  CHECK(found.err.find("--seed") != std::string::npos);
}

TEST_CASE("at: a run whose beginning is gone is refused") {
  const TemporaryFolder folder;
  REQUIRE(run(training("mlp", folder / "a")).exit_code == 0);
  const Finished later = run({"train", kModels + "mlp/model.onnx", "--data", "synthetic", "--lr",
                              "0.001", "--steps", "12", "--quiet", "--save-every", "4", "--keep",
                              "1", "--resume", (folder / "a/checkpoints/step-00000004").string(),
                              "--run-dir", (folder / "b").string()});
  CAPTURE(later.err);
  REQUIRE(later.exit_code == 0);
  const Finished found = run({"at", (folder / "b").string(), "--step", "6", "--value", "loss"});
  CAPTURE(found.out);
  CHECK(found.exit_code == 2);
  CHECK(found.err.find("the checkpoint of step 4, which the run began from, is gone") !=
        std::string::npos);
}

// The learning rate makes parameters infinite in the first update.
TEST_CASE("at: a parameter that is no number is the optimizer's") {
  const TemporaryFolder folder;
  const Finished failed = run({"train", kModels + "mlp/model.onnx", "--data", "synthetic", "--lr",
                               "1e300", "--optimizer", "sgd", "--steps", "3", "--quiet",
                               "--run-dir", (folder / "run").string()});
  REQUIRE(failed.exit_code == 7);
  const Finished found = run({"at", (folder / "run").string(), "--first-nan"});
  CAPTURE(found.out);
  CAPTURE(found.err);
  REQUIRE(found.exit_code == 0);
  CHECK(found.out.find("the optimizer's update") != std::string::npos);
  CHECK(found.out.find("of      grad:") != std::string::npos);
  CHECK(found.out.find("of      param:") != std::string::npos);
}

// 64 rows of [x1, x2], labels 0 or 1; in one epoch without shuffling step 37 meets a row that
// explodes.
TEST_CASE("at: a NaN of one exploding row is traced to its op") {
  const TemporaryFolder folder;
  write_two_models(folder.path());
  std::string table = "x1,x2,label\n";
  for (int i = 0; i < 60; ++i) {
    const bool explodes = i == 36;
    table += explodes ? "3e38,3e38,1\n"
                      : std::to_string(i % 7) + ".5," + std::to_string(i % 5) + "," +
                            std::to_string(i % 3) + "\n";
  }
  write_file_atomic(folder / "rows.csv", std::string_view(table));
  const Finished failed = run({"train", (folder / "c.onnx").string(), "--data",
                               "csv:" + (folder / "rows.csv").string() + ",label=label", "--steps",
                               "50", "--batch", "1", "--shuffle", "none", "--lr", "3", "--quiet",
                               "--run-dir", (folder / "run").string()});
  CAPTURE(failed.err);
  CAPTURE(failed.exit_code);
  REQUIRE(failed.exit_code == 7);
  CHECK(failed.err.find("--first-nan") != std::string::npos);
  // What is left: the step, its batch, and the command that shows the rest.
  const Json failure = read_json_file(folder / "run/failure/failure.json");
  CHECK(failure.at("step").as_int() == 37);
  CHECK(failure.at("micro_batch").as_int() == 0);
  CHECK(failure.at("command").as_string() ==
        "trainscope at " + (folder / "run").string() + " --first-nan");
  const Tensor row = SafetensorsFile::open(folder / "run/failure/batch.safetensors").tensor("x");
  REQUIRE(row.elements() == 2);
  CHECK(row.values<float>()[0] == 3e38F);
  const Finished found = run({"at", (folder / "run").string(), "--first-nan", "--json"});
  CAPTURE(found.err);
  REQUIRE(found.exit_code == 0);
  CAPTURE(found.out);
  CHECK(found.json().at("op").as_string() == "MatMul");
  CHECK(found.json().at("step").as_int() == 37);
  CHECK(found.json().at("batch").as_string() ==
        (folder / "run/failure/batch.safetensors").string());
  CHECK(found.json().at("inputs").as_array().size() == 2);
}

}  // namespace
}  // namespace trainscope::test
