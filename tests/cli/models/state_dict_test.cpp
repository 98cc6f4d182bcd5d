// export --names torch: what PyTorch has after the same training, under its names and in its
// layouts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/safetensors.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

// Three steps of plain SGD on one batch, in the run RUN.
Finished train(const std::string& model, const std::string& batch, const fs::path& folder,
               const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"train",       model,
                                    "--data",      "tensors:" + exported(batch) + ",validation=0",
                                    "--loss",      "mse",
                                    "--optimizer", "sgd",
                                    "--lr",        "0.1",
                                    "--steps",     "3",
                                    "--batch",     batch == "folded.safetensors" ? "6" : "16",
                                    "--shuffle",   "none",
                                    "-q",          "--threads",
                                    "1",           "--run-dir",
                                    "run"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words, {}, folder);
}

Finished export_state(const std::string& source, const fs::path& folder,
                      const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"export",  source,  "--format", "safetensors",
                                    "--names", "torch", "-o",       "state.safetensors"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words, {}, folder);
}

// Equal in names, types and shapes; floats within 2e-6 of what f64 gives.
void check_equal(const SafetensorsFile& mine, const SafetensorsFile& torch) {
  CHECK(mine.metadata().at("format") == "pt");
  std::vector<std::string> names = mine.names();
  std::vector<std::string> expected = torch.names();
  std::ranges::sort(names);
  std::ranges::sort(expected);
  CHECK(names == expected);
  for (const std::string& name : expected) {
    CAPTURE(name);
    REQUIRE(mine.type(name) == torch.type(name));
    const Tensor a = convert(mine.tensor(name), DType::kF64);
    const Tensor b = convert(torch.tensor(name), DType::kF64);
    for (std::size_t i = 0; i < a.values<double>().size(); ++i) {
      CHECK(std::abs(a.values<double>()[i] - b.values<double>()[i]) < 2e-6);
    }
  }
}

}  // namespace

TEST_CASE("export --names torch: trained here and in PyTorch, the state_dict is the same") {
  struct Case {
    std::string model;
    std::string state;
    std::string batch;
    std::vector<std::string> words;
  };
  const Case cases[] = {
      {"cube.onnx", "cube", "reg", {}},
      {"cube-noopt.onnx", "cube", "reg", {}},
      {"buffer.onnx", "buffer", "reg", {}},
      {"buffer-ts.onnx", "buffer", "reg", {"--freeze", "freq"}},
      {"bn_shared.onnx", "bn_shared", "bn_shared", {}},
      {"twoln.onnx", "twoln", "reg", {}},
      {"twoln-noopt.onnx", "twoln", "reg", {}},
      {"convbn-noopt.onnx", "convbn", "reg", {}},
      {"folded-ts.onnx", "folded", "folded", {}},
  };
  for (const Case& each : cases) {
    CAPTURE(each.model);
    const TemporaryFolder folder;
    const Finished trained =
        train(exported(each.model), each.batch + ".safetensors", folder.path(), each.words);
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
    const Finished finished = export_state("run", folder.path());
    CHECK(finished.exit_code == 0);
    CHECK(finished.err.empty());
    CHECK(text_has(finished.out,
                   "load_state_dict(safetensors.torch.load_file(\"state.safetensors\"))"));
    check_equal(SafetensorsFile::open(folder / "state.safetensors"),
                SafetensorsFile::open(exported(each.state + "-state.safetensors")));
  }
}

TEST_CASE("export --names torch: of a model that is not trained, and of a run's model.onnx") {
  const TemporaryFolder folder;
  REQUIRE(train(exported("twoln.onnx"), "reg.safetensors", folder.path()).exit_code == 0);
  REQUIRE(export_state("run/model.onnx", folder.path()).exit_code == 0);
  check_equal(SafetensorsFile::open(folder / "state.safetensors"),
              SafetensorsFile::open(exported("twoln-state.safetensors")));
  const Json facts = export_state(exported("bn_shared.onnx"), folder.path(), {"--json"}).json();
  CHECK(facts.get<int>("tensors") == 8);
  CHECK(facts.array_at("counters").size() == 1);
  CHECK(facts.array_at("lost").empty());
}

TEST_CASE("export --names torch: what is lost or not needed is named, and the call to load it") {
  const TemporaryFolder folder;
  const Finished fused = export_state(exported("convbn.onnx"), folder.path());
  CHECK(fused.exit_code == 0);
  CHECK(text_has(fused.err, "warning: 6 tensors are lost, fused into another layer"));
  CHECK(text_has(fused.err, "'1.weight'"));
  CHECK(text_has(fused.err, "and 2 more"));
  CHECK(text_has(fused.out, "strict=False"));
  const std::string zoo =
      (fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/zoo/dinov2/model.onnx").string();
  const Finished unread = export_state(zoo, folder.path());
  CHECK(unread.exit_code == 0);
  CHECK(text_has(unread.err, "1 tensor is not in the model"));
  CHECK(text_has(unread.err, "'module.dinov2.embeddings.mask_token'"));
  CHECK(text_has(unread.out, "strict=False"));
}

TEST_CASE("export --names torch: a finished run needs its model no longer, a stopped one does") {
  const TemporaryFolder folder;
  fs::copy_file(exported("twoln.onnx"), folder / "moved.onnx");
  REQUIRE(train("moved.onnx", "reg.safetensors", folder.path()).exit_code == 0);
  fs::rename(folder / "moved.onnx", folder / "elsewhere.onnx");
  REQUIRE(export_state("run", folder.path()).exit_code == 0);
  check_equal(SafetensorsFile::open(folder / "state.safetensors"),
              SafetensorsFile::open(exported("twoln-state.safetensors")));
  fs::remove(folder / "state.safetensors");
  // As a run that was stopped: a checkpoint, and the model that it is of.
  fs::remove(folder / "run/model.onnx");
  fs::rename(folder / "elsewhere.onnx", folder / "moved.onnx");
  REQUIRE(export_state("run", folder.path()).exit_code == 0);
  check_equal(SafetensorsFile::open(folder / "state.safetensors"),
              SafetensorsFile::open(exported("twoln-state.safetensors")));
  fs::remove(folder / "state.safetensors");
  fs::remove(folder / "moved.onnx");
  const Finished finished = export_state("run", folder.path());
  CHECK(finished.exit_code == 6);
  CHECK(text_has(finished.err, "moved.onnx"));
  CHECK(!fs::exists(folder / "state.safetensors"));
}

TEST_CASE("export --names: wrong input is one error that says what to do") {
  const TemporaryFolder folder;
  const Finished word = run({"export", exported("cube.onnx"), "--format", "safetensors", "--names",
                             "pytorch", "-o", "x"});
  CHECK(word.exit_code == 2);
  CHECK(text_has(word.err, "--names is 'pytorch': expected model, torch"));
  const Finished format =
      run({"export", exported("cube.onnx"), "--names", "torch", "-o", "x"}, {}, folder.path());
  CHECK(format.exit_code == 2);
  CHECK(text_has(format.err, "--names torch needs --format safetensors"));
  write_model(R"(<ir_version: 8, opset_import: ["" : 17], producer_name: "hand">
g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}> { y = Mul(x, w) })",
              folder / "hand.onnx");
  const Finished other = export_state("hand.onnx", folder.path());
  CHECK(other.exit_code == 3);
  CHECK(text_has(other.err, "error: the model has no names of PyTorch: it was written by 'hand'"));
  CHECK(text_has(other.err, "without --names torch"));
  CHECK(!fs::exists(folder / "state.safetensors"));
}

}  // namespace trainscope::test
