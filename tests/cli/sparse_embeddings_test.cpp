// --sparse-embeddings: in training, resumed, in the run's files, refused where it means nothing.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

// Runs of an untied model in one folder.
class Runs {
 public:
  Runs() {
    const Finished made = run(
        {"model", "llama", "--layers", "1", "--heads", "2", "--kv-heads", "2", "--embedding", "16",
         "--feed-forward", "24", "--context", "8", "--vocab", "300", "--no-tied", "-o", "l.onnx"},
        {}, folder_.path());
    REQUIRE(made.exit_code == 0);
  }

  Finished train(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"train", "l.onnx", "--data",    "synthetic", "--batch", "2",
                                      "--seq", "8",      "--threads", "2",         "--seed",  "3",
                                      "--lr",  "0.1",    "--run-dir", name};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {}, folder_.path());
  }

  std::string trained(const std::string& name, const std::vector<std::string>& more) const {
    const Finished finished = train(name, more);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return read(name + "/model.onnx");
  }

  std::string read(const std::string& path) const { return read_text(folder_ / path); }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("sparse embeddings: plain sgd trains the same model as from all rows") {
  const Runs runs;
  const std::vector<std::string> sgd = {"--steps", "5", "--optimizer", "sgd"};
  const auto with = [&sgd](std::vector<std::string> more) {
    more.insert(more.begin(), sgd.begin(), sgd.end());
    return more;
  };
  const std::string rows = runs.trained("rows", sgd);
  CHECK(runs.read("rows/plan.json").find("SgdRowsStep") != std::string::npos);
  CHECK(rows == runs.trained("whole", with({"--disable", "sparse_rows"})));
  CHECK(rows == runs.trained("soon", with({"--optimizer-in-backward"})));
  CHECK(rows == runs.trained("asked", with({"--sparse-embeddings"})));
  CHECK(runs.trained("low", with({"--precision", "fp16"})) ==
        runs.trained("low-whole", with({"--precision", "fp16", "--disable", "sparse_rows"})));
}

TEST_CASE("sparse embeddings: lazy moments, resumed equal uninterrupted") {
  const Runs runs;
  const std::string whole = runs.trained("a", {"--steps", "6", "--sparse-embeddings"});
  runs.trained("b", {"--steps", "3", "--sparse-embeddings"});
  CHECK(whole == runs.trained("b", {"--steps", "6", "--sparse-embeddings", "--resume", "auto"}));
  CHECK(whole != runs.trained("c", {"--steps", "6"}));
  CHECK(runs.read("a/config.toml").find("sparse-embeddings = true") != std::string::npos);
  CHECK(runs.read("c/config.toml").find("sparse-embeddings = false") != std::string::npos);
}

TEST_CASE("sparse embeddings: not with lamb") {
  const Finished refused =
      Runs().train("a", {"--steps", "1", "--optimizer", "lamb", "--sparse-embeddings"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("--sparse-embeddings means nothing with --optimizer lamb") !=
        std::string::npos);
}

}  // namespace trainscope::test
