// check, train and export on files whose marks tell where PyTorch's gradients stop, which buffers
// move, and of which parameters only parts are there.
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

struct Model {
  std::string file;
  std::string batch = "reg";
  std::string loss = "mse";
  std::string rate = "0.1";
};

const Model kPadded = {"padded.onnx", "ids", "cross_entropy", "0.5"};
const Model kPositions = {"positions.onnx", "ids", "cross_entropy", "0.5"};

Finished train(const Model& model, const fs::path& run_folder,
               const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {
      "train",
      exported(model.file),
      "--data",
      "tensors:" + exported(model.batch + ".safetensors") + ",validation=0",
      "--loss",
      model.loss,
      "--optimizer",
      "sgd",
      "--lr",
      model.rate,
      "--steps",
      "3",
      "--batch",
      model.batch == "ids" ? "6" : "16",
      "-q",
      "--threads",
      "1",
      "--run-dir",
      run_folder.string()};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.type() == b.type());
  double most = 0;
  for (std::size_t i = 0; i < a.values<float>().size(); ++i) {
    most =
        std::max(most, std::abs(static_cast<double>(a.values<float>()[i] - b.values<float>()[i])));
  }
  return most;
}

// Whether so many tensors have PyTorch's elements after training, in whatever shape.
void check_elements(const std::string& state, const std::string& expected, std::size_t count) {
  const SafetensorsFile ours = SafetensorsFile::open(state);
  const SafetensorsFile theirs = SafetensorsFile::open(exported(expected));
  CHECK(ours.names().size() == count);
  for (const std::string& name : ours.names()) {
    CAPTURE(name);
    const Tensor truth = theirs.tensor(name);
    CHECK(distance(ours.tensor(name).reshaped(truth.shape()), truth) < 2e-6);
  }
}

}  // namespace

TEST_CASE("marks: padding rows, detached values and rows that are read train as in PyTorch") {
  struct Case {
    Model model;
    std::vector<double> losses;
    std::string state;
    std::size_t tensors;
  };
  const std::vector<double> padded = {7.108267, 3.509580, 2.639769};
  const std::vector<double> detached = {0.731295, 0.552891, 0.507686};
  const Case cases[] = {{kPadded, padded, "padded", 4},
                        {{"padded-noopt.onnx", "ids", "cross_entropy", "0.5"}, padded, "padded", 4},
                        {{"detached.onnx"}, detached, "detached", 6},
                        {{"detached-noopt.onnx"}, detached, "detached", 6},
                        {kPositions, {2.561096, 2.360078, 2.221074}, "positions", 6}};
  const TemporaryFolder folder;
  for (const Case& each : cases) {
    CAPTURE(each.model.file);
    const fs::path trained = folder / each.model.file;
    const Finished finished = train(each.model, trained);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    CHECK(finished.err.empty() == (each.model.file != kPositions.file));
    const std::vector<double> losses = losses_of(trained);
    REQUIRE(losses.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(losses[i] == doctest::Approx(each.losses[i]).epsilon(1e-6));
    }
    const std::string state = (folder / (each.model.file + ".safetensors")).string();
    REQUIRE(run({"export", trained.string(), "--format", "safetensors", "--names", "torch", "-o",
                 state})
                .exit_code == 0);
    const SafetensorsFile ours = SafetensorsFile::open(state);
    const SafetensorsFile theirs =
        SafetensorsFile::open(exported(each.state + "-state.safetensors"));
    CHECK(ours.names().size() == each.tensors);
    for (const std::string& name : ours.names()) {
      CAPTURE(name);
      CHECK(distance(ours.tensor(name), theirs.tensor(name)) < 2e-6);
    }
  }
}

TEST_CASE("marks: check names what learns nothing and what was detached") {
  const Finished padded = run({"check", exported("padded.onnx"), "--loss", "cross_entropy"});
  CHECK(text_has(padded.out,
                 "row 2 of 'head.weight' learns nothing at 'node_embedding': padding_idx"));
  const Finished detached = run({"check", exported("detached.onnx"), "--loss", "mse", "--json"});
  CHECK(text_has(detached.out, "detaches, at 'node_mul', 'node_linear_1', 'node_add'"));
}

TEST_CASE("marks: buffers that the forward pass changes are named, those of batch norms are not") {
  const TemporaryFolder folder;
  const Finished finished = train({"average-noopt.onnx"}, folder / "run");
  REQUIRE(finished.exit_code == 0);
  CHECK(text_has(finished.err,
                 "warning: the forward pass changes buffers of the module: 'average';"));
  CHECK(!text_has(finished.err, "running_mean"));
  CHECK(losses_of(folder / "run").front() == doctest::Approx(1.397876).epsilon(1e-6));
  const Finished checked = run({"check", exported("average-noopt.onnx"), "--loss", "mse"});
  CHECK(text_has(checked.out, "note: the forward pass changes buffers of the module: 'average';"));
}

TEST_CASE("marks: of an embedding at constant positions the rows that are read are a parameter") {
  const Finished checked = run({"check", exported("positions.onnx"), "--loss", "cross_entropy"});
  CHECK(
      text_has(checked.out, "restored where.weight: only the 5 rows of it that this graph reads"));
  CHECK(text_has(checked.out, "restored kind.weight: only the 1 row of it"));
  const TemporaryFolder folder;
  REQUIRE(train(kPositions, folder / "run", {"--freeze", "where.weight"}).exit_code == 0);
  // From the trained model too: it has the rows under the same names.
  const std::string state = (folder / "state.safetensors").string();
  const Finished written = run({"export", (folder / "run").string(), "--format", "safetensors",
                                "--names", "torch", "-o", state});
  REQUIRE(written.exit_code == 0);
  CHECK(text_has(written.err,
                 "only the rows that the forward pass reads are in the model: "
                 "'where.weight', 'kind.weight'"));
  const std::string again = (folder / "run/model.onnx").string();
  CHECK(run({"check", again, "--loss", "cross_entropy"}).exit_code == 0);
}

TEST_CASE("marks: where calls were left out or merged, it is said or refused") {
  const TemporaryFolder folder;
  const Finished merged = train({"merged.onnx"}, folder / "merged");
  REQUIRE(merged.exit_code == 0);
  CHECK(text_has(merged.err,
                 "or merged equal ones: 'tanh_1', which 'node_mul' read; where one of them"));
  CHECK(text_has(merged.err, "optimize=False"));
  CHECK(losses_of(folder / "merged").front() == doctest::Approx(1.117852).epsilon(1e-6));
  // Lines of source show that something is detached: whether it is this is not told.
  const Finished cloned = train({"cloned.onnx"}, folder / "cloned");
  CHECK(cloned.exit_code == 3);
  CHECK(text_has(cloned.err, "'clone', which 'node_linear_1' read. The module detaches values"));
  CHECK(train({"cloned.onnx"}, folder / "again", {"--train", "h.*"}).exit_code == 3);
  const Finished norms = train({"norms.onnx"}, folder / "norms");
  CHECK(norms.exit_code == 3);
  CHECK(text_has(norms.err,
                 "no call of the file reads 'm.bias', 'm.weight': the exporter merged calls"));
  CHECK(train({"norms.onnx"}, folder / "head", {"--train", "h.*"}).exit_code == 0);
  CHECK(train({"norms.onnx"}, folder / "norm", {"--train", "n.weight"}).exit_code == 3);
}

TEST_CASE("marks: a parameter that was repeated along one axis learns as one") {
  const TemporaryFolder folder;
  const Model repeated{"repeated.onnx", "ids", "cross_entropy", "0.5"};
  const Finished finished = train(repeated, folder / "run");
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const std::vector<double> losses = losses_of(folder / "run");
  REQUIRE(losses.size() == 3);
  CHECK(losses[0] == doctest::Approx(2.398601).epsilon(1e-6));
  CHECK(losses[1] == doctest::Approx(2.326435).epsilon(1e-6));
  CHECK(losses[2] == doctest::Approx(2.259489).epsilon(1e-6));
  const std::string state = (folder / "state.safetensors").string();
  REQUIRE(run({"export", (folder / "run").string(), "--format", "safetensors", "--names", "torch",
               "-o", state})
              .exit_code == 0);
  check_elements(state, "repeated-state.safetensors", 4);
  // Along two axes: which of them, the numbers do not tell.
  const Finished mask = train({"mask.onnx", "ids", "cross_entropy", "0.5"}, folder / "mask");
  CHECK(mask.exit_code == 3);
  CHECK(text_has(mask.err, "'token' (see 'expand')"));
  const Finished frozen =
      train({"mask.onnx", "ids", "cross_entropy", "0.5"}, folder / "frozen", {"--freeze", "token"});
  INFO(frozen.err);
  CHECK(frozen.exit_code == 0);
}

TEST_CASE("marks: a sum of parameters alone is refused, a folded padding row is named") {
  const TemporaryFolder folder;
  const Finished doubled = train({"doubled.onnx"}, folder / "doubled");
  CHECK(doubled.exit_code == 3);
  CHECK(text_has(doubled.err, "'w' (see 'add')"));
  CHECK(train({"doubled.onnx"}, folder / "layers", {"--train", "*.weight"}).exit_code == 0);
  const Finished asked = train({"doubled.onnx"}, folder / "asked", {"--train", "*"});
  CHECK(asked.exit_code == 3);
  const Finished rows = train({"rows.onnx", "ids", "cross_entropy", "0.5"}, folder / "rows");
  REQUIRE(rows.exit_code == 0);
  CHECK(text_has(rows.err,
                 "lookups of constant rows were folded: 'where.weight'; whether one of the"));
}

TEST_CASE("marks: shapes that the exporter folded are named on the way home, unused layers too") {
  const TemporaryFolder folder;
  const Model scales{"scales.onnx", "ids", "cross_entropy", "0.5"};
  const Finished finished = train(scales, folder / "run");
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK(text_has(finished.err, "a number that is not told is added to 'first.weight'"));
  CHECK(losses_of(folder / "run").back() == doctest::Approx(2.258236).epsilon(1e-6));
  const std::string state = (folder / "state.safetensors").string();
  const Finished written = run({"export", (folder / "run").string(), "--format", "safetensors",
                                "--names", "torch", "-o", state});
  REQUIRE(written.exit_code == 0);
  CHECK(text_has(written.err,
                 "2 tensors are in a shape that may not be the module's, which the exporter "
                 "folded: 'g', 'k'"));
  CHECK(text_has(written.err, "1 tensor is written as what is added to 1"));
  CHECK(text_has(written.err,
                 "as its forward pass does not need them under these names: 'idle.weight'"));
  CHECK(text_has(written.out, "each.reshape(own[name].shape)"));
  check_elements(state, "scales-state.safetensors", 6);
}

TEST_CASE("train, check: what no export tells is a note, in the facts too") {
  const TemporaryFolder folder;
  const Finished marked =
      train({"padded.onnx", "ids", "cross_entropy", "0.5"}, folder / "run", {"--json"});
  REQUIRE(marked.exit_code == 0);
  CHECK(text_has(marked.out, "no export tells of requires_grad and torch.no_grad()"));
  const Finished named = run({"check", exported("buffer-ts.onnx"), "--loss", "mse", "--json"});
  CHECK(text_has(named.out, "tells nothing of detach(), torch.no_grad(), padding_idx"));
  CHECK(text_has(named.out, "does not tell buffers from parameters"));
}

}  // namespace trainscope::test
