// skip_padding: the same loss, gradients and update from the real tokens alone, and what stays.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>

#include "engine/core/text.h"
#include "engine/models/models.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kLength = 6;
constexpr std::int64_t kNoLabel = -100;

CompileOptions training(const std::string& mask) {
  CompileOptions options;
  options.training.mode = GraphMode::kTrain;
  options.training.optimizer = {.kind = OptimizerKind::kSgd};
  options.training.keep_gradients = true;
  options.training.skip_padding = mask;
  return options;
}

struct Subject {
  OnnxModel model;
  CompileOptions plain;
  CompileOptions skipping;
};

Subject of_text(std::string_view text) {
  Subject subject{.model = model(text), .plain = training(""), .skipping = training("m")};
  for (CompileOptions* each : {&subject.plain, &subject.skipping}) {
    each->training.loss.output = "y";
  }
  return subject;
}

Subject of_model(OnnxModel model, const std::string& mask) {
  Subject subject{.model = std::move(model), .plain = training(""), .skipping = training(mask)};
  for (CompileOptions* each : {&subject.plain, &subject.skipping}) {
    each->training.loss.output = "logits";
  }
  return subject;
}

Subject bert(double dropout = 0.0) {
  const std::string bytes = onnx_bytes(build_model("bert",
                                                   {{"layers", std::int64_t{2}},
                                                    {"heads", std::int64_t{2}},
                                                    {"embedding", std::int64_t{16}},
                                                    {"feed-forward", std::int64_t{32}},
                                                    {"vocab", std::int64_t{50}},
                                                    {"context", std::int64_t{12}},
                                                    {"mask", true},
                                                    {"dropout", dropout}},
                                                   1));
  Subject subject = of_model(OnnxModel::from_bytes(std::as_bytes(std::span(bytes))), "mask");
  for (CompileOptions* each : {&subject.plain, &subject.skipping}) {
    each->import.dims = {{"batch", kBatch}, {"sequence", kLength}};
  }
  return subject;
}

// PyTorch's export of Hugging Face's BERT.
Subject exported_bert() {
  return of_model(OnnxModel::read(std::filesystem::path(TRAINSCOPE_SOURCE_DIR) /
                                  "tests/data/models/bert/model.onnx"),
                  "attention_mask");
}

using Lengths = std::vector<std::int64_t>;

// Of each text the first so many tokens are real.
std::vector<std::int64_t> mask_of(const Lengths& lengths, std::int64_t length) {
  std::vector<std::int64_t> mask;
  for (std::int64_t real : lengths) {
    for (std::int64_t i = 0; i < length; ++i) mask.push_back(i < real ? 1 : 0);
  }
  return mask;
}

Tensor in_type(const std::vector<std::int64_t>& elements, const TensorType& type) {
  return convert(Tensor::of<std::int64_t>(type.shape, elements), type.dtype);
}

enum class PaddingLabels { kIgnored, kGiven };

Tensors inputs_of(const Graph& step, const std::string& mask, const Lengths& lengths,
                  PaddingLabels padding) {
  Tensors inputs = random_inputs(step, 7);
  Tensor& given = inputs.at(mask);
  const std::vector<std::int64_t> real = mask_of(lengths, given.type().shape[1]);
  given = in_type(real, given.type());
  for (const char* segments : {"segments", "token_type_ids"}) {
    const auto found = inputs.find(segments);
    if (found == inputs.end()) continue;
    for (std::int64_t& kind : found->second.values<std::int64_t>()) kind %= 2;
  }
  const std::span<std::int64_t> labels = inputs.at("labels").values<std::int64_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] %= 5;
    if (real[i] == 0 && padding == PaddingLabels::kIgnored) labels[i] = kNoLabel;
  }
  return inputs;
}

Graph step_of(const Subject& subject, const CompileOptions& options) {
  return build_stages(subject.model, options).back().graph;
}

const Stage& the_stage(const Stages& all) {
  const auto found = std::ranges::find(all, "skip_padding", &Stage::name);
  REQUIRE(found != all.end());
  return *found;
}

// Largest difference that skipping makes.
double change(const Subject& subject, const Lengths& lengths,
              PaddingLabels padding = PaddingLabels::kIgnored) {
  const std::string& mask = subject.skipping.training.skip_padding;
  const Graph skipping = step_of(subject, subject.skipping);
  const Graph whole = step_of(subject, subject.plain);
  REQUIRE(count_ops(skipping, "PackRows") > 0);
  REQUIRE(count_ops(whole, "PackRows") == 0);
  const Tensors expected =
      results_of(whole, inputs_of(whole, mask, lengths, PaddingLabels::kIgnored));
  REQUIRE(expected.size() > 4);
  return difference(results_of(skipping, inputs_of(skipping, mask, lengths, padding)), expected);
}

std::string near_misses(const Subject& subject) {
  std::vector<std::string> reasons;
  const Stages all = build_stages(subject.model, subject.skipping);
  for (const NearMiss& miss : the_stage(all).near_misses) {
    reasons.push_back(miss.reason);
  }
  return join(reasons, "; ");
}

constexpr double kRounding = 2e-5;

constexpr std::string_view kLayers =
    "(float[2,3,4] x, int64[2,3] m) => (float[2,3,5] y) <float[4,4] v = "
    "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, float[1,1,4] b = {1,2,3,4},"
    " float[4,5] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2}>"
    " { a = MatMul(x, v)  c = Add(b, a)  h = Tanh(c)  r = Add(h, x)  y = MatMul(r, w) }";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  const std::size_t at = result.find(from);
  REQUIRE(at != std::string::npos);
  return result.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("skip_padding: loss, gradients and parameters as from all rows") {
  for (const Subject& subject : {bert(), exported_bert()}) {
    const Graph plain = step_of(subject, subject.plain);
    const ValueId mask = plain.find(subject.skipping.training.skip_padding);
    const std::int64_t length = plain.value(mask).type.shape[1];
    CAPTURE(length);
    CHECK(change(subject, {length, 3, 1, 4}) < kRounding);
    CHECK(change(subject, {length, length, length, length}) < kRounding);
    CHECK(change(subject, {2, 0, 3, length}) < kRounding);  // one text is padding throughout
    CHECK(change(subject, {length, 3, 1, 4}, PaddingLabels::kGiven) < kRounding);
  }
}

TEST_CASE("skip_padding: masks of any type, and layers without attention") {
  for (const char* mask : {"int64[2,3] m", "int32[2,3] m", "bool[2,3] m", "float[2,3] m"}) {
    CAPTURE(mask);
    const Subject subject = of_text(replaced(kLayers, "int64[2,3] m", mask));
    CHECK(change(subject, {3, 1}) < kRounding);
    CHECK(change(subject, {0, 2}) < kRounding);
  }
}

TEST_CASE("skip_padding: no matmul reads a row of padding") {
  const Subject subject = of_text(kLayers);
  const Graph step = step_of(subject, subject.skipping);
  Tensors inputs = inputs_of(step, "m", {1, 2}, PaddingLabels::kIgnored);
  const Tensors expected = results_of(step, inputs);
  const std::span<float> x = inputs.at("x").values<float>();  // [2,3,4]
  for (std::size_t row : {1, 2, 5}) {
    std::ranges::fill(x.subspan(row * 4, 4), std::numeric_limits<float>::quiet_NaN());
  }
  CHECK(difference(results_of(step, inputs), expected) == 0.0);
}

TEST_CASE("skip_padding: all matmuls of BERT, and few moves of rows") {
  const Subject subject = bert();
  const Stages all = build_stages(subject.model, subject.skipping);
  const Graph& forward = the_stage(all).graph;
  // q, k, v, the result's and two more of each layer, two of the head.
  CHECK(count_ops(forward, "CompactMatMul") == 14);
  CHECK(count_ops(forward, "MatMul") + count_ops(forward, "BatchMatMul") == 0);
  CHECK(count_ops(forward, "PackRows") == 4);    // embeddings, each attention's result, labels
  CHECK(count_ops(forward, "UnpackRows") == 6);  // q, k, v of each layer
  CHECK(the_stage(all).near_misses.empty());
  const Graph& step = all.back().graph;
  CHECK(count_ops(step, "CompactMatMul") == 3 * 14);
  CHECK(count_ops(step, "CompactRows") == 1);
  CHECK_FALSE(changes(forward, "skip_padding", subject.skipping.training));
}

TEST_CASE("skip_padding: the exported BERT") {
  const Subject subject = exported_bert();
  const Stages all = build_stages(subject.model, subject.skipping);
  const Graph& forward = the_stage(all).graph;
  CHECK(count_ops(forward, "MatMul") + count_ops(forward, "BatchMatMul") +
            count_ops(forward, "Gemm") ==
        0);
  CHECK(count_ops(forward, "CompactMatMul") == 14);
  CHECK(count_ops(forward, "PackRows") == 4);
  CHECK(count_ops(forward, "UnpackRows") == 6);
}

TEST_CASE("skip_padding: with the head of --skip-ignored, in chunks, in bf16 and micro-batches") {
  Subject subject = bert();
  const auto both = [&subject](auto&& set) {
    set(subject.plain.training);
    set(subject.skipping.training);
  };
  SUBCASE("skip-ignored") {
    both([](TrainingOptions& options) { options.skip_ignored = true; });
    CHECK(change(subject, {6, 3, 1, 4}) < kRounding);
    CHECK(change(subject, {6, 3, 1, 4}, PaddingLabels::kGiven) < kRounding);
    CHECK(count_ops(step_of(subject, subject.skipping), "CompactRows") == 2);
  }
  SUBCASE("chunks") {
    both([](TrainingOptions& options) { options.loss_chunks = 2; });
    CHECK(change(subject, {6, 3, 1, 4}) < kRounding);
    CHECK(change(subject, {6, 3, 1, 4}, PaddingLabels::kGiven) < kRounding);
    CHECK(count_ops(step_of(subject, subject.skipping), "CompactMatMul") == 3 * 13);
  }
  SUBCASE("label smoothing") {
    both([](TrainingOptions& options) { options.loss.label_smoothing = 0.1; });
    CHECK(change(subject, {6, 3, 1, 4}) < kRounding);
    CHECK(change(subject, {6, 3, 1, 4}, PaddingLabels::kGiven) < kRounding);
  }
  SUBCASE("bf16") {
    both([](TrainingOptions& options) { options.precision = StepPrecision::kBF16; });
    CHECK(change(subject, {6, 3, 1, 4}) < 0.1);
  }
  SUBCASE("micro-batches") {
    both([](TrainingOptions& options) { options.micro_batches = 2; });
    CHECK(change(subject, {6, 3, 1, 4}) < kRounding);
    CHECK(change(subject, {6, 3, 1, 4}, PaddingLabels::kGiven) < kRounding);
  }
}

TEST_CASE("skip_padding: dropout draws for the rows as they lie") {
  const Subject subject = bert(0.2);
  const Graph step = step_of(subject, subject.skipping);
  const Tensors inputs = inputs_of(step, "mask", {6, 3, 1, 4}, PaddingLabels::kIgnored);
  const Tensors once = results_of(step, inputs);
  CHECK(difference(results_of(step, inputs), once) == 0.0);  // finite, and the same again
}

TEST_CASE("skip_padding: only when asked, in training") {
  Subject subject = bert();
  const auto unchanged = [&subject] {
    const Stages all = build_stages(subject.model, subject.skipping);
    return !the_stage(all).changed;
  };
  CHECK_FALSE(unchanged());
  subject.skipping.training.keep_outputs = true;
  CHECK(unchanged());
  subject = bert();
  subject.skipping.training.mode = GraphMode::kGradients;
  CHECK(unchanged());
  subject = bert();
  subject.skipping.training.skip_padding = "";
  CHECK(unchanged());
}

TEST_CASE("skip_padding: the mask is an input [batch, sequence]") {
  Subject subject = bert();
  const auto refusal = [&subject] {
    return refusal_of([&] { build_stages(subject.model, subject.skipping); });
  };
  subject.skipping.training.skip_padding = "padding";
  CHECK(contains(refusal(), "'padding', which is no input of the model"));
  subject = of_text(kLayers);
  subject.skipping.training.skip_padding = "x";
  CHECK(contains(refusal(), "'x' is f32[2,3,4], expected [batch, sequence]"));
}

TEST_CASE("skip_padding: what stays says why") {
  SUBCASE("another mask") {
    Subject subject = bert();
    subject.skipping.training.skip_padding = "segments";
    CHECK(near_misses(subject) ==
          "adds nothing to its scores that is made of 'segments'; adds nothing to its scores that "
          "is made of 'segments'");
    CHECK(count_ops(step_of(subject, subject.skipping), "PackRows") == 0);
  }
  SUBCASE("tokens that others read") {
    const Subject subject =
        of_text(replaced(kLayers, "h = Tanh(c)", "n = ReduceMean <axes = [1]> (c)  h = Add(c, n)"));
    CHECK(near_misses(subject) ==
          "'ReduceMean_2' (ReduceMean) reads more than each token's own row");
    CHECK(count_ops(step_of(subject, subject.skipping), "CompactMatMul") == 3);
  }
  SUBCASE("values whose gradient is asked for stay whole") {
    Subject subject = of_text(kLayers);
    subject.skipping.training.gradient_of = {"y"};
    subject.plain.training.gradient_of = {"y"};
    CHECK(change(subject, {3, 1}) < kRounding);
  }
}

}  // namespace trainscope::test
