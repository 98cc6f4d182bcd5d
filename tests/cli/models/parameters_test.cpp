// check and train on files of PyTorch's exporters: what is trained, with PyTorch's losses.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

Finished check(const std::string& model, std::vector<std::string> words = {}) {
  words.insert(words.begin(), {"check", exported(model), "--loss", "mse"});
  return run(words);
}

// Three steps of plain SGD on one batch.
Finished train(const std::string& model, const fs::path& folder,
               std::vector<std::string> words = {}) {
  const std::string batch = model == "bn_shared.onnx" ? "bn_shared.safetensors" : "reg.safetensors";
  words.insert(words.begin(),
               {"train", exported(model), "--data", "tensors:" + exported(batch) + ",validation=0",
                "--loss", "mse", "--optimizer", "sgd", "--lr", "0.1", "--steps", "3", "--batch",
                "16", "-q", "--threads", "1", "--run-dir", (folder / model).string()});
  return run(words);
}

}  // namespace

TEST_CASE("train: exported models lose as in PyTorch") {
  struct Case {
    std::string model;
    std::vector<double> losses;
    std::vector<std::string> words;
  };
  const std::vector<double> cube = {1.011419, 0.735231, 0.599476};
  const std::vector<double> buffer = {0.693463, 0.635538, 0.588093};
  const std::vector<double> norms = {0.975616, 0.723151, 0.522316};
  const Case cases[] = {{"cube.onnx", cube, {}},
                        {"cube-noopt.onnx", cube, {}},
                        {"buffer.onnx", buffer, {}},
                        {"buffer-ts.onnx", buffer, {"--freeze", "freq"}},
                        {"bn_shared.onnx", {1.370795, 0.759077, 0.571869}, {}},
                        {"twoln.onnx", norms, {}},
                        {"twoln-noopt.onnx", norms, {}},
                        {"convbn-noopt.onnx", {0.735343, 0.538544, 0.483566}, {}}};
  const TemporaryFolder folder;
  for (const Case& each : cases) {
    CAPTURE(each.model);
    const Finished finished = train(each.model, folder.path(), each.words);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    const std::vector<double> losses = losses_of(folder / each.model);
    REQUIRE(losses.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(losses[i] == doctest::Approx(each.losses[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("train: what was exported in eval mode trains as in eval() where running is asked for") {
  const TemporaryFolder folder;
  const auto losses_with = [&](const std::string& batch_norm) {
    const std::string name = "run-" + batch_norm;
    const Finished finished =
        run({"train", exported("eval-noopt.onnx"), "--data",
             "tensors:" + exported("eval.safetensors") + ",validation=0", "--batch", "4",
             "--optimizer", "sgd", "--lr", "0.1", "--steps", "3", "-q", "--threads", "1",
             "--batch-norm", batch_norm, "--run-dir", (folder / name).string()});
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    CHECK(text_has(finished.err, "exported in eval mode"));
    return losses_of(folder / name);
  };
  const double in_pytorch[] = {1.304402, 1.234849, 1.201813};
  const std::vector<double> running = losses_with("running");
  REQUIRE(running.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(running[i] == doctest::Approx(in_pytorch[i]).epsilon(1e-6));
  }
  CHECK(std::abs(losses_with("batch")[0] - in_pytorch[0]) > 1e-3);
  CHECK(run({"train", exported("eval-noopt.onnx"), "--batch-norm", "frozen"}).exit_code == 2);
  const Finished other = run({"train", "--resume", (folder / "run-running").string(), "--steps",
                              "4", "-q", "--batch-norm", "batch"});
  CHECK(other.exit_code == 2);
  CHECK(text_has(other.err, "batch_norm"));
}

TEST_CASE("train, check: a fused batch norm is refused with the call that keeps it") {
  const TemporaryFolder folder;
  for (const Finished& finished : {train("convbn.onnx", folder.path()), check("convbn.onnx")}) {
    CHECK(finished.exit_code == 3);
    CHECK(text_has(finished.err, "fused batch norms"));
    CHECK(text_has(finished.err, "optimize=False"));
  }
}

TEST_CASE("check: every initializer with its reason") {
  const Json json = check("buffer.onnx", {"--json"}).json();
  CHECK(json.array_at("parameters").size() == 2);
  REQUIRE(json.array_at("buffers").size() == 1);
  CHECK(json.array_at("buffers")[0].get<std::string>("name") == "freq");
  CHECK(json.array_at("buffers")[0].get<std::string>("reason") ==
        "the exporter marks it as a buffer");
  CHECK(check("bn_shared.onnx", {"--json"}).json().array_at("restored").size() == 2);
  CHECK(check("cube.onnx", {"--json"}).json().array_at("constants").size() == 2);
  CHECK(text_has(check("buffer-ts.onnx").out,
                 "note: the file does not tell buffers from parameters"));
  CHECK(text_has(check("buffer.onnx").out, "note: no export tells of requires_grad"));
  CHECK(!text_has(check("buffer-ts.onnx").out, "requires_grad"));
  const Json frozen = check("buffer-ts.onnx", {"--freeze", "freq", "--json"}).json();
  CHECK(frozen.array_at("frozen").size() == 1);
}

TEST_CASE("train: of a file that does not tell buffers from parameters it says so at the end") {
  const TemporaryFolder folder;
  const auto told = [&](const std::string& model, const std::string& name,
                        const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "train",     exported(model),
        "--data",    "tensors:" + exported("reg.safetensors") + ",validation=0",
        "--loss",    "mse",
        "--steps",   "1",
        "--batch",   "16",
        "--threads", "1",
        "--run-dir", (folder / name).string()};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    REQUIRE(finished.exit_code == 0);
    CHECK(finished.err.find("does not tell") == std::string::npos);
    return text_has(finished.out, "note        the file does not tell buffers from parameters");
  };
  CHECK(told("buffer-ts.onnx", "unmarked", {"-q"}));
  CHECK(!told("buffer-ts.onnx", "named", {"-q", "--train", "l.*"}));
  CHECK(!told("buffer.onnx", "marked", {"-q"}));
}

TEST_CASE("check: a list of parameters") {
  const std::string list = exported("twoln-parameters.txt");
  const Json json = check("twoln.onnx", {"--parameters", list, "--json"}).json();
  CHECK(json.array_at("parameters").size() == 10);
  CHECK(check("cube.onnx", {"--parameters", list}).exit_code == 2);
  CHECK(check("cube.onnx", {"--parameters", "nowhere.txt"}).exit_code == 6);
  const Finished both = check("twoln.onnx", {"--parameters", list, "--train", "0.*"});
  CHECK(both.exit_code == 2);
  CHECK(text_has(both.err, "--train and --parameters"));
}

TEST_CASE("check --expect: PyTorch's first loss and parameters") {
  const std::string file = exported("twoln-expected.safetensors");
  const Finished equal = check("twoln.onnx", {"--expect", file});
  CHECK(equal.exit_code == 0);
  CHECK(text_has(equal.out, "first loss equal: 0.97561"));
  CHECK(text_has(equal.out, "10 of 10 parameters"));
  const Finished fewer = check("twoln.onnx", {"--expect", file, "--freeze", "3.weight"});
  CHECK(fewer.exit_code == 9);
  CHECK(text_has(fewer.out, "9 of 10 parameters\n  not trained here:\n    3.weight\n"));
  const Finished other = run({"check", exported("twoln.onnx"), "--loss", "l1", "--expect", file});
  CHECK(other.exit_code == 9);
  CHECK(text_has(other.out, "first loss DIFFERS"));
  const Finished lacking = check("twoln.onnx", {"--expect", exported("reg.safetensors")});
  CHECK(lacking.exit_code == 3);
  CHECK(text_has(lacking.err, "loss"));
}

TEST_CASE("train: a NaN that a trained exponent made names it") {
  const TemporaryFolder folder;
  const Finished finished = train("cube.onnx", folder.path(), {"--train", "val_0"});
  CHECK(finished.exit_code == 7);
  CHECK(text_has(finished.err, "it comes of 'val_0'"));
  CHECK(text_has(finished.err, "--freeze val_0"));
  CHECK(!text_has(finished.err, "lower --lr"));
}

TEST_CASE("inspect --fate: a restored initializer says what it was") {
  const Finished finished =
      run({"inspect", exported("twoln.onnx"), "--loss", "mse", "--fate", "3.weight"});
  CHECK(finished.exit_code == 0);
  CHECK(text_has(finished.out, "merged with '1.weight'"));
}

}  // namespace trainscope::test
