// Traces of three engines beside each other, as they are committed: none of the other engines is
// needed.
#include <doctest/doctest.h>

#include <set>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

const std::string kTraces = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/numerics/";
const std::string kOurs = kTraces + "mlp-trainscope";
const std::string kTorch = kTraces + "mlp-pytorch";
const std::string kOrt = kTraces + "mlp-onnxruntime";
const std::string kFaulty = kTraces + "mlp-pytorch-faulty";

TEST_CASE("compare: three engines agree, in one table") {
  const Finished both = run({"compare", kOurs, kTorch, kOrt, "--json"});
  CAPTURE(both.out);
  CAPTURE(both.err);
  REQUIRE(both.exit_code == 0);
  const Json facts = both.json();
  CHECK(facts.at("measured").as_bool());
  CHECK(facts.at("faults").as_int() == 0);
  CHECK(facts.at("only_b").as_array().empty());
  const Json& third = facts.at("c");
  CHECK(third.at("steps").as_array().size() == 1);
  CHECK(third.at("faults").as_int() == 0);
  std::set<std::string> forward;
  for (const Json& tensor : third.at("tensors").as_array()) {
    CHECK(tensor.at("error").as_number() <= tensor.at("limit").as_number());
    forward.insert(tensor.at("value").as_string());
  }
  for (const char* value : {"act:/0/Gemm_output_0", "act:/3/Relu_output_0", "act:logits"}) {
    CHECK(forward.contains(value));
  }
  // The losses of both steps are held against each other, of the same batches.
  const Json& loss = facts.at("loss");
  CHECK(loss.at("test").as_string() == "same_seed");
  CHECK_FALSE(loss.at("differs").as_bool());
  CHECK(loss.at("pairs").at(0).at("training").at("steps").as_int() == 2);

  const Finished table = run({"compare", kOurs, kTorch, kOrt, "--only", "tensors"});
  REQUIRE(table.exit_code == 0);
  for (const char* title : {"error B", "error C", "A-f64", "B-f64", "C-f64"}) {
    CHECK(text_has(table.out, title));
  }
}

TEST_CASE("compare: the op of a planted fault is the first beyond its limit") {
  for (const std::string& peer : {kOurs, kTorch}) {
    CAPTURE(peer);
    const Finished both = run({"compare", peer, kFaulty, "--only", "tensors", "--json"});
    CAPTURE(both.err);
    REQUIRE(both.exit_code == 9);
    const Json first = both.json().at("first");
    CHECK(first.at("step").as_int() == 1);
    CHECK(first.at("phase").as_string() == "forward");
    CHECK(first.at("value").as_string() == "act:/3/Relu_output_0");
    CHECK(first.at("op").as_string() == "Relu");
    CHECK(first.at("node").as_string() == "/3/Relu");
  }
  // The loss alone tells that something differs.
  const Finished losses = run({"compare", kOurs, kFaulty, "--only", "loss", "--json"});
  CHECK(losses.exit_code == 9);
  CHECK(losses.json().at("differs").as_bool());
}

TEST_CASE("compare: of the three the faulty one is told from the truth") {
  const Finished all = run({"compare", kOurs, kTorch, kFaulty, "--only", "tensors", "--json"});
  REQUIRE(all.exit_code == 9);
  const Json facts = all.json();
  CHECK(facts.at("faults").as_int() == 0);
  const Json& first = facts.at("c").at("first");
  CHECK(first.at("value").as_string() == "act:/3/Relu_output_0");
  CHECK(first.at("error_a").as_number() < 1e-6);
  CHECK(first.at("error_b").as_number() > 1e-3);
}

TEST_CASE("report: other engines' errors are a picture of the page") {
  const TemporaryFolder folder;
  const std::string run_folder = (folder / "run").string();
  const Finished trained =
      run({"train", test_model("mlp/model.onnx").string(), "--data", "synthetic", "--steps", "3",
           "--record-numerics", "--quiet", "--run-dir", run_folder});
  CAPTURE(trained.err);
  REQUIRE(trained.exit_code == 0);
  // Of other batches: that is said, and the run's own errors are shown.
  const Finished report =
      run({"report", run_folder, "--against", run_folder + "," + kTorch, "--json"});
  CAPTURE(report.err);
  REQUIRE(report.exit_code == 0);
  const Json peers = report.json().at("against");
  CHECK(peers.at(0).at("faults").as_int() == 0);
  CHECK(text_has(peers.at(1).at("no_tensors").as_string(), "different batches"));
  const std::string page = read_text(folder / "run/report.html");
  CHECK(text_has(page, "this run - f64"));
  CHECK(text_has(page, "this run - run"));
  CHECK(text_has(page, "different batches"));
}

}  // namespace
}  // namespace trainscope::test
