// bisect as a user calls it: runs that agree, an optimizer that is not the same, traces of other
// engines, one run by itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "engine/exec/backends.h"
#include "tests/cli/numerics_tools.h"

namespace trainscope::test {
namespace {

const std::string kModels = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/models/";
const std::string kTraces = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/numerics/";

TEST_CASE("bisect: runs that differ by rounding have no culprit") {
  for (const std::string model : {"gpt2", "bert", "resnet18", "lenet"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    const std::string a = record(2, model, folder / "a", {"--threads", "2"});
    const std::string b =
        record(2, model, folder / "b", {"--threads", "1", "--kernels", "reference"});
    const Finished found = run({"bisect", a, b, "--not-bitwise", "--json"});
    CAPTURE(found.err);
    CAPTURE(found.out);
    CHECK(found.exit_code == 0);
    CHECK(found.json().at("culprit").is_null());
    CHECK(found.json().at("judged").as_int() > 40);
  }
}

TEST_CASE("bisect: another optimizer is named, and what of it is other") {
  struct Other {
    std::vector<std::string> flags;
    std::string cause;
  };
  const Other others[] = {{{"--eps", "1e-6"}, "epsilon"},
                          {{"--weight-decay", "0.02"}, "weight_decay"},
                          {{"--betas", "0.9,0.95"}, "beta2"},
                          {{"--lr", "0.002"}, "2 times as far"}};
  const TemporaryFolder folder;
  const std::string a = record(2, "gpt2", folder / "a");
  for (const Other& other : others) {
    CAPTURE(other.cause);
    const std::string b = record(2, "gpt2", folder / ("b" + other.cause.substr(0, 4)), other.flags);
    const Finished found = run({"bisect", a, b, "--json"});
    CAPTURE(found.err);
    CAPTURE(found.out);
    CHECK(found.exit_code == 9);
    const Json culprit = found.json().at("culprit");
    CHECK(culprit.at("run").as_string() == "B");
    CHECK(culprit.at("kind").as_string() == "optimizer");
    CHECK(culprit.at("phase").as_string() == "update");
    CHECK(culprit.at("step").as_int() == 1);
    CHECK(text_has(culprit.at("cause").as_string(), other.cause));
    CHECK(text_has(culprit.at("command").as_string(), "trainscope at"));
  }
}

// Its trace alone: what the update reads are sketches of two micro-batches' gradients.
TEST_CASE("bisect: another rate of accumulated gradients is named by sketches") {
  for (const std::string model : {"gpt2", "mlp"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    const std::string a = record(2, model, folder / "a", {"--accumulate", "2"});
    const std::string b =
        record(2, model, folder / "b", {"--accumulate", "2", "--lr", "0.0012"}) + "/numerics";
    const Finished found = run({"bisect", a, b, "--json"});
    CAPTURE(found.err);
    CAPTURE(found.out);
    CHECK(found.exit_code == 9);
    const Json culprit = found.json().at("culprit");
    REQUIRE(culprit.is_object());
    CHECK(culprit.at("run").as_string() == "B");
    CHECK(culprit.at("kind").as_string() == "optimizer");
    CHECK(culprit.at("step").as_int() == 1);
    CHECK(text_has(culprit.at("cause").as_string(), "1.2 times as far"));
    CHECK_FALSE(culprit.at("by_elements").as_bool());
  }
}

TEST_CASE("bisect: traces of PyTorch and Trainscope without a run") {
  const Finished found = run({"bisect", kTraces + "mlp-trainscope", kTraces + "mlp-pytorch",
                              "--model", kModels + "mlp/model.onnx", "--json"});
  CAPTURE(found.err);
  CAPTURE(found.out);
  CHECK(found.exit_code == 0);
  CHECK(found.json().at("judged").as_int() > 40);
  const Finished without =
      run({"bisect", kTraces + "mlp-trainscope", kTraces + "mlp-pytorch", "--json"});
  CHECK(without.exit_code == 2);
  CHECK(text_has(without.out, "--model FILE"));
}

// The second Relu passes all of its gradient on, from step 2 on.
TEST_CASE("bisect: a trace with a mistake, beside those of two engines") {
  for (const std::string other : {"mlp-trainscope", "mlp-pytorch"}) {
    CAPTURE(other);
    const Finished found =
        run({"bisect", kTraces + other, kTraces + "mlp-planted", "--model",
             kModels + "mlp/model.onnx", "--loss", "cross_entropy:output=logits,labels=labels",
             "--optimizer", "sgd", "--lr", "0.02", "--json"});
    CAPTURE(found.err);
    CAPTURE(found.out);
    REQUIRE(found.exit_code == 9);
    const Json culprit = found.json().at("culprit");
    CHECK(culprit.at("run").as_string() == "B");
    CHECK(culprit.at("step").as_int() == 2);
    CHECK(culprit.at("phase").as_string() == "backward");
    CHECK(culprit.at("node").as_string() == "/3/Relu");
    CHECK(culprit.at("value").as_string() == "dact:/2/Gemm_output_0");
  }
}

TEST_CASE("bisect: a run by itself") {
  for (const std::string model : {"mlp", "gpt2", "resnet18"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    const std::string a = record(2, model, folder / "a");
    for (const std::string between : {"", "stages", "kernels"}) {
      CAPTURE(between);
      std::vector<std::string> words = {"bisect", a, "--json"};
      if (!between.empty()) words.insert(words.end(), {"--between", between});
      const Finished found = run(words);
      CAPTURE(found.err);
      CAPTURE(found.out);
      CHECK(found.exit_code == 0);
      CHECK(found.json().at("culprit").is_null());
    }
  }
}

// Kernels that a run's trace names for its rows, of which each has one.
std::vector<std::string> kernels_of(const std::string& folder) {
  std::vector<std::string> kernels;
  const std::string text = read_text(std::filesystem::path(folder) / "numerics" / "values.tsv");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    std::size_t at = begin;
    for (int column = 0; column < 8; ++column) at = text.find('\t', at) + 1;
    kernels.push_back(text.substr(at, text.find('\t', at) - at));
    begin = end + 1;
  }
  return kernels;
}

// 3x3 convolutions of 64 channels and more.
TEST_CASE("bisect: Winograd's form on and off, by the kernels that the traces name") {
  const TemporaryFolder folder;
  const std::string model = (folder / "model.onnx").string();
  REQUIRE(run({"model", "resnet", "--stem", "cifar", "--blocks", "1,1", "--image", "32",
               "--classes", "10", "-o", model})
              .exit_code == 0);
  const auto trained = [&](const std::string& kernels) {
    const std::string to = (folder / kernels).string();
    const Finished finished = run({"train", model, "--data", "synthetic", "--batch", "8", "--steps",
                                   "2", "--optimizer", "sgd", "--lr", "0.01", "--kernels", kernels,
                                   "--record-numerics", "--quiet", "--run-dir", to});
    CAPTURE(finished.err);
    REQUIRE(finished.exit_code == 0);
    return to;
  };
  const std::string fastest = trained("fastest");
  const std::string direct = trained("direct");
  for (const std::string kernel :
       {"conv.onednn_winograd", "conv_grad_input.onednn_winograd", "conv.onednn"}) {
    CAPTURE(kernel);
    const bool is_winograd = text_has(kernel, "winograd");
    // Winograd's form needs AVX-512.
    const auto by_fastest = std::ranges::count(kernels_of(fastest), kernel);
    if (is_winograd) CHECK((by_fastest > 0) == (cpu_isa() == "AVX-512"));
    CHECK((std::ranges::count(kernels_of(direct), kernel) > 0) == !is_winograd);
  }
  const Finished found = run({"bisect", fastest, direct, "--json"});
  CAPTURE(found.err);
  CAPTURE(found.out);
  CHECK(found.exit_code == 0);
  CHECK(found.json().at("culprit").is_null());
  CHECK(found.json().at("judged").as_int() > 60);
}

// Behind the passes the program itself, call by call as it runs.
TEST_CASE("bisect: between stages the parts of the program are checked too") {
  struct Kind {
    std::string model;
    std::string part;  // empty: the processor's kernels decide which there are
    std::vector<std::string> flags;
  };
  const Kind kinds[] = {
      {"mlp", "recompute", {"--recompute", "2", "--threads", "2"}},
      {"mlp", "batch_tiles", {"--batch-tiles", "auto", "--threads", "2"}},
      {"gpt2", "order", {"--accumulate", "2"}},
      {"lenet", "", {"--precision", "bf16"}},
  };
  for (const auto& [model, part, flags] : kinds) {
    CAPTURE(part);
    CAPTURE(flags.front());
    const TemporaryFolder folder;
    const std::string a = record(2, model, folder / "a", flags);
    const Finished found = run({"bisect", a, "--between", "stages", "--json"});
    CAPTURE(found.err);
    CAPTURE(found.out);
    REQUIRE(found.exit_code == 0);
    const Json program = found.json().at("program");
    CHECK(program.at("culprit").is_null());
    CHECK(program.at("calls").as_int() >= 15);
    CHECK(program.at("reads").as_int() > program.at("calls").as_int());
    CHECK(program.at("unjudged").as_int() == 0);
    bool has_part = part.empty();
    for (const Json& each : program.at("parts").as_array()) {
      has_part = has_part || each.as_string() == part;
    }
    CHECK(has_part);
  }
}

TEST_CASE("bisect: between devices there must be two") {
  const TemporaryFolder folder;
  const std::string a = record(2, "mlp", folder / "a");
  const Finished found = run({"bisect", a, "--between", "devices", "--json"});
  CAPTURE(found.out);
  CAPTURE(found.err);
  if (why_no_device("cuda").empty()) {  // as on a machine with a GPU, and its back end built
    CHECK(found.exit_code == 0);
    CHECK(found.json().at("devices").as_array().size() == 2);
    return;
  }
  CHECK(found.exit_code == 4);
  CHECK(text_has(found.out, "no second device"));
  CHECK(text_has(found.out, "cuda"));
}

TEST_CASE("bisect: types of two bytes have room for the ops of a model") {
  for (const std::string model : {"mlp", "gpt2", "resnet18"}) {
    for (const std::string precision : {"f32", "bf16", "fp16"}) {
      CAPTURE(model);
      CAPTURE(precision);
      const TemporaryFolder folder;
      const std::string a =
          record(2, model, folder / "a", {"--precision", precision, "--accumulate", "2"});
      for (const std::string step : {"1", "2"}) {
        const Finished found =
            run({"bisect", a, "--between", "precisions", "--step", step, "--json"});
        CAPTURE(found.err);
        CAPTURE(found.out);
        REQUIRE(found.exit_code == 0);
        const Json all = found.json().at("precisions");
        CHECK(all.as_array().size() == (precision == "f32" ? 2 : 1));
        for (const Json& each : all.as_array()) {
          CHECK(each.at("culprit").is_null());
          CHECK(each.at("judged").as_int() > 15);
          const Json& steps = each.at("runs").as_array().front().at("steps");
          CHECK(std::to_string(steps.as_array().front().as_int()) == step);
        }
      }
      const Finished kernels = run({"bisect", a, "--between", "kernels", "--json"});
      CAPTURE(kernels.out);
      CHECK(kernels.exit_code == 0);
    }
  }
}

// Micro-batches, a type of two bytes, updates within the backward phase, nodes that run twice;
// values that were computed once more for their rows.
TEST_CASE("bisect: other kinds of steps have no culprit") {
  const std::vector<std::string> kinds[] = {{"--accumulate", "2"},
                                            {"--precision", "bf16"},
                                            {"--optimizer-in-backward"},
                                            {"--recompute", "1"},
                                            {"--record-values", "all", "--clip", "0.5"}};
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    CAPTURE(kinds[i].front());
    const std::string a = record(2, "gpt2", folder / std::to_string(i), kinds[i]);
    const Finished found = run({"bisect", a, "--step", "2", "--json"});
    CAPTURE(found.err);
    CAPTURE(found.out);
    CHECK(found.exit_code == 0);
    CHECK(found.json().at("judged").as_int() > 100);
  }
}

TEST_CASE("bisect: refusals") {
  const TemporaryFolder folder;
  const std::string a = record(2, "mlp", folder / "a");
  const std::string b = record(2, "mlp", folder / "b", {"--seed", "9"});
  const std::string c = record(2, "lenet", folder / "c");
  const auto refused = [](const std::vector<std::string>& words, const std::string& said) {
    const Finished finished = run(words);
    CAPTURE(finished.err);
    CHECK(finished.exit_code == 2);
    CHECK(text_has(finished.err, said));
  };
  refused({"bisect", a, b}, "different batches");
  refused({"bisect", a, c}, "different models");
  refused({"bisect", a, b, "--between", "stages"}, "give RUN_A alone");
  refused({"bisect", a, b, "--step", "2"}, "--step says which step of one run");
  refused({"bisect", a, kModels}, "no trace of its numbers");
  refused({"bisect", a, "--between", "threads"}, "--between");
}

}  // namespace
}  // namespace trainscope::test
