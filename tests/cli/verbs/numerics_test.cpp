// Recording numbers and comparing them, as a user does: train --record-numerics, compare.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "cli/compare/find_trace.h"
#include "engine/core/safetensors.h"
#include "profiler/numerics/tensor_comparison.h"
#include "tests/cli/numerics_tools.h"

namespace trainscope::test {
namespace {

using profiler::Trace;
using profiler::TraceRow;

const std::string kModels = std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/models/";

TEST_CASE("numerics: every value of the model has a row or a fate") {
  for (const std::string model : {"mlp", "lenet", "resnet18", "gpt2", "bert", "llama"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    record(5, model, folder / "run");
    const auto trace = find_trace((folder / "run").string());
    REQUIRE(trace.has_value());
    CHECK(trace->steps() == std::vector<std::int64_t>{1, 2, 5});
    std::map<std::string, int> keys;
    for (const TraceRow& row : trace->rows()) {
      if (row.step == 1) ++keys[row.key()];
    }
    for (const auto& [key, times] : keys) {
      CAPTURE(key);
      CHECK(times == 1);
    }
    CHECK(keys["loss:loss"] == 1);
    for (const profiler::TraceName& name : trace->names()) {
      CAPTURE(name.value);
      CHECK(name.fate != "unexplained");
      if (!name.row.empty() && !name.row.starts_with("input:")) CHECK(keys[name.row] == 1);
    }
  }
}

// Of the step without fusions each gradient is a row; the step as it ran says what it did with it.
TEST_CASE("numerics: every gradient of a value has a row or a fate") {
  for (const std::string model : {"mlp", "lenet", "resnet18", "gpt2", "bert", "llama"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    record(5, model, folder / "fused", {"--record-steps", "1"});
    record(5, model, folder / "all", {"--record-steps", "1", "--record-values", "all"});
    const auto fused = find_trace((folder / "fused").string());
    const auto all = find_trace((folder / "all").string());
    REQUIRE(fused.has_value());
    REQUIRE(all.has_value());
    std::map<std::string, std::string> known;
    for (const TraceRow& row : fused->rows()) known[row.key()] = "row";
    for (const profiler::TraceName& name : fused->names()) known[name.value] = name.fate;
    int gradients = 0;
    for (const TraceRow& row : all->rows()) {
      if (row.kind != profiler::TraceKind::kActivationGradient) continue;
      CAPTURE(row.key());
      CHECK(known.contains(row.key()));
      ++gradients;
    }
    CHECK(gradients >= 5);
  }
}

TEST_CASE("numerics: patterns of names say which values are recorded") {
  const TemporaryFolder folder;
  record(5, "gpt2", folder / "all", {"--record-values", "all"});
  record(5, "gpt2", folder / "some", {"--record-values", "/h.0/*,h.0.*"});
  const auto all = find_trace((folder / "all").string());
  const auto some = find_trace((folder / "some").string());
  REQUIRE(some.has_value());
  std::map<std::string, std::uint64_t> hashes;
  for (const TraceRow& row : all->rows()) {
    hashes[std::to_string(row.step) + row.key()] = row.hash;
  }
  std::map<profiler::TraceKind, int> kinds;
  for (const TraceRow& row : some->rows()) {
    CAPTURE(row.key());
    ++kinds[row.kind];
    CHECK(hashes.at(std::to_string(row.step) + row.key()) == row.hash);
    const bool always =
        row.kind == profiler::TraceKind::kInput || row.kind == profiler::TraceKind::kLoss;
    CHECK((always || row.value.find("h.0") != std::string::npos));
  }
  using profiler::TraceKind;
  for (const TraceKind kind :
       {TraceKind::kInput, TraceKind::kActivation, TraceKind::kLoss, TraceKind::kActivationGradient,
        TraceKind::kGradient, TraceKind::kParameter, TraceKind::kState}) {
    CHECK(kinds[kind] > 0);
  }
  CHECK(some->rows().size() * 2 < all->rows().size());
  const Finished both = run({"compare", (folder / "all").string(), (folder / "some").string(),
                             "--only", "tensors", "--json"});
  CHECK(both.exit_code == 0);
  CHECK(both.json().at("only_b").as_array().empty());
  CHECK(both.json().at("accounted").as_int() ==
        static_cast<std::int64_t>(both.json().at("only_a").as_array().size()));
}

TEST_CASE("numerics: another number of threads, and all values, are within limits") {
  for (const std::string model : {"gpt2", "resnet18"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    record(5, model, folder / "two", {"--threads", "2"});
    record(5, model, folder / "one", {"--threads", "1"});
    record(5, model, folder / "all", {"--record-values", "all"});
    for (const std::string other : {"one", "all"}) {
      const Finished both = run({"compare", (folder / "two").string(), (folder / other).string(),
                                 "--only", "tensors", "--json"});
      CAPTURE(both.out);
      CHECK(both.exit_code == 0);
      const Json facts = both.json();
      CHECK(facts.at("faults").as_int() == 0);
      CHECK(facts.at("measured").as_bool());
      const auto alone =
          facts.at("only_a").as_array().size() + facts.at("only_b").as_array().size();
      CHECK(facts.at("accounted").as_int() == static_cast<std::int64_t>(alone));
    }
  }
}

// lenet ends in LogSoftmax: its loss saves a log-sum-exp of log-probabilities, which is nothing but
// rounding.
TEST_CASE("numerics: kernels of other roundings are within limits, another rate is not") {
  const TemporaryFolder folder;
  const std::string a = record(5, "lenet", folder / "a");
  const std::string b = record(5, "lenet", folder / "b", {"--kernels", "reference"});
  const Finished both = run({"compare", a, b, "--only", "tensors", "--json"});
  CAPTURE(both.out);
  CHECK(both.exit_code == 0);
  const Json facts = both.json();
  CHECK(facts.at("first").is_null());
  int unjudged = 0;
  for (const Json& tensor : facts.at("tensors").as_array()) {
    const bool is_own = tensor.at("value").as_string().starts_with("own:");
    CHECK(tensor.at("limit").is_null() == is_own);
    const bool is_unjudged = tensor.at("verdict").as_string() == "unjudged";
    if (is_unjudged) CHECK(is_own);
    unjudged += is_unjudged ? 1 : 0;
  }
  CHECK(unjudged > 0);
  const Finished text = run({"compare", a, b, "--only", "tensors", "--top", "1000"});
  CHECK(text_has(text.out, "unjudged"));
  CHECK(text_has(text.out, "no tensor is beyond its limit"));
  const std::string other =
      record(5, "lenet", folder / "c", {"--kernels", "reference", "--lr", "0.00101"});
  const Finished differs = run({"compare", a, other, "--only", "tensors", "--json"});
  CHECK(differs.exit_code == 9);
  CHECK(text_has(differs.json().at("first").at("value").as_string(), "param:"));
}

TEST_CASE("numerics: recording changes no bit of what is trained") {
  const TemporaryFolder folder;
  record(5, "gpt2", folder / "recorded", {"--record-values", "all"});
  const Finished plain =
      run({"train", kModels + "gpt2/model.onnx", "--data", "synthetic", "--lr", "0.001", "--steps",
           "5", "--quiet", "--run-dir", (folder / "plain").string()});
  REQUIRE(plain.exit_code == 0);
  const std::string file = "checkpoints/step-00000005/model.safetensors";
  CHECK(SafetensorsFile::open(folder / "recorded" / file).content_hash() ==
        SafetensorsFile::open(folder / "plain" / file).content_hash());
}

// What an optimizer does otherwise shows in the first step's update, not before.
TEST_CASE("numerics: another optimizer is found in the update of step 1") {
  const TemporaryFolder folder;
  record(5, "gpt2", folder / "a");
  const std::vector<std::string> others[] = {{"--eps", "1e-6"}, {"--weight-decay", "0.02"}};
  for (std::size_t i = 0; i < std::size(others); ++i) {
    CAPTURE(i);
    const std::string name = "b" + std::to_string(i);
    record(5, "gpt2", folder / name, others[i]);
    const Finished both = run({"compare", (folder / "a").string(), (folder / name).string(),
                               "--only", "tensors", "--json"});
    CHECK(both.exit_code == 9);
    const Json first = both.json().at("first");
    CHECK(first.at("step").as_int() == 1);
    CHECK(first.at("phase").as_string() == "update");
  }
}

TEST_CASE("numerics: rows are the elements that --record-full keeps") {
  const TemporaryFolder folder;
  record(5, "lenet", folder / "run", {"--record-full", "*", "--record-steps", "2"});
  const auto trace = find_trace((folder / "run").string());
  REQUIRE(trace.has_value());
  CHECK(trace->steps() == std::vector<std::int64_t>{2});
  const auto full = SafetensorsFile::open(folder / "run/numerics/full/2.safetensors");
  std::size_t found = 0;
  for (std::size_t i = 0; i < trace->rows().size(); ++i) {
    const TraceRow& row = trace->rows()[i];
    if (row.step != 2) continue;
    const Tensor tensor = full.tensor(row.key());
    const profiler::TensorSummary summary =
        profiler::summary_of(tensor.dtype(), {tensor.data(), tensor.bytes()});
    CHECK(summary.hash == row.hash);
    CHECK(summary.sketch == trace->sketch(i));
    CHECK(summary.statistics == row.statistics);
    ++found;
  }
  CHECK(found == full.entries().size());
}

// The loss scale, 65536 at first, is not in them.
TEST_CASE("numerics: gradients of fp16 steps are those of f32 steps") {
  const TemporaryFolder folder;
  record(5, "mlp", folder / "a");
  record(5, "mlp", folder / "b", {"--precision", "fp16"});
  const auto a = find_trace((folder / "a").string());
  const auto b = find_trace((folder / "b").string());
  std::size_t gradients = 0;
  for (const profiler::ComparedTensor& tensor : compare_tensors(*a, *b).tensors) {
    const TraceRow& row = a->rows()[tensor.row_a];
    if (row.kind != profiler::TraceKind::kGradient || row.step != 1) continue;
    CAPTURE(tensor.key);
    CHECK(tensor.relative < 0.05);
    ++gradients;
  }
  CHECK(gradients > 2);
}

TEST_CASE("numerics: kept elements of fp16 gradients are without the loss scale") {
  const TemporaryFolder folder;
  record(5, "lenet", folder / "fp16", {"--precision", "fp16", "--record-full", "*"});
  const auto full = SafetensorsFile::open(folder / "fp16/numerics/full/1.safetensors");
  const auto trace = find_trace((folder / "fp16").string());
  REQUIRE(trace.has_value());
  for (const TraceRow& row : trace->rows()) {
    if (row.step != 1 || row.kind != profiler::TraceKind::kGradient) continue;
    const Tensor tensor = full.tensor(row.key());
    CHECK(tensor.dtype() == DType::kF32);  // divided by the loss scale
    const profiler::TensorStatistics statistics =
        profiler::summary_of(DType::kF32, {tensor.data(), tensor.bytes()}).statistics;
    CHECK(statistics.l2 == doctest::Approx(row.statistics.l2));
  }
}

// Differences that rounding makes, of real tensors.
TEST_CASE("numerics: sketches are within 0.8 to 1.25 of the true error for 99 of 100 tensors") {
  for (const std::string model : {"gpt2", "resnet18"}) {
    CAPTURE(model);
    const TemporaryFolder folder;
    record(5, model, folder / "a", {"--record-values", "all", "--record-full", "*"});
    record(5, model, folder / "b", {"--record-full", "*", "--threads", "1"});
    const auto a = find_trace((folder / "a").string());
    const auto b = find_trace((folder / "b").string());
    std::size_t different = 0;
    std::size_t outside = 0;
    for (const profiler::ComparedTensor& tensor : compare_tensors(*a, *b).tensors) {
      if (!tensor.elements || tensor.elements->l2 == 0.0) continue;
      ++different;
      const double estimated =
          profiler::estimated_distance(a->sketch(tensor.row_a), b->sketch(tensor.row_b));
      const double ratio = estimated / tensor.elements->l2;
      outside += ratio < 0.8 || ratio > 1.25 ? 1 : 0;
    }
    CAPTURE(outside);
    CHECK(different > 150);
    CHECK(static_cast<double>(outside) <= 0.01 * static_cast<double>(different));
  }
}

TEST_CASE("numerics: refusals") {
  const TemporaryFolder folder;
  record(5, "mlp", folder / "a");
  record(5, "mlp", folder / "b", {"--seed", "9"});
  record(5, "lenet", folder / "c");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& said) {
    const Finished finished = run(words);
    CAPTURE(finished.err);
    CHECK(finished.exit_code == 2);
    CHECK(finished.err.find(said) != std::string::npos);
  };
  const std::string a = (folder / "a").string();
  refused({"compare", a, (folder / "b").string(), "--only", "tensors"}, "different batches");
  refused({"compare", a, (folder / "c").string(), "--only", "tensors"}, "different models");
  refused({"compare", a, a, (folder / "b").string(), "--only", "tensors"}, " in C");
  refused({"train", kModels + "mlp/model.onnx", "--data", "synthetic", "--steps", "2",
           "--record-steps", "3"},
          "--record-numerics");
  refused({"train", kModels + "mlp/model.onnx", "--data", "synthetic", "--steps", "2",
           "--record-numerics", "--record-values", "/0/Gem_output_0", "--run-dir",
           (folder / "none").string()},
          "did you mean '/0/Gemm_output_0'");
  CHECK_FALSE(std::filesystem::exists(folder / "none"));
  refused({"train", kModels + "mlp/model.onnx", "--data", "synthetic", "--steps", "2",
           "--record-numerics", "--record-steps", "0"},
          "--record-steps is '0'");
}

}  // namespace
}  // namespace trainscope::test
