// The bench verb's workloads, FLOP counts and statistics.
#include "engine/run/bench/bench_run.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"

using namespace trainscope;

namespace {

std::int64_t flops_of(std::string_view builder, const ModelArguments& arguments,
                      const std::map<std::string, std::int64_t>& dims) {
  const std::string bytes = onnx_bytes(build_model(builder, arguments, 1));
  const OnnxModel model = OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
  CompileOptions options;
  options.import.dims = dims;
  options.training.mode = GraphMode::kInference;
  return training_flops(build_stages(model, options).front().graph);
}

}  // namespace

TEST_CASE("bench: an MLP's FLOPs are 2MNK, three times but for the first layer's input") {
  // Batch 8, layers 5 x 7 and 7 x 3.
  const std::int64_t first = 2 * 8 * 5 * 7;
  const std::int64_t second = 2 * 8 * 7 * 3;
  for (const bool bias : {true, false}) {
    CHECK(flops_of("mlp", {{"dims", Ints{5, 7, 3}}, {"bias", bias}}, {{"batch", 8}}) ==
          2 * first + 3 * second);
  }
}

TEST_CASE("bench: a transformer's FLOPs count projections, attention in full, and the head") {
  const std::int64_t layers = 2, d = 12, vocab = 11, batch = 3, length = 5;
  const std::int64_t tokens = batch * length;
  const std::int64_t block = tokens * (2 * 12 * d * d + 4 * length * d);
  const std::int64_t head = tokens * 2 * d * vocab;
  CHECK(flops_of(
            "gpt2",
            {{"layers", layers}, {"heads", 3}, {"embedding", d}, {"vocab", vocab}, {"context", 6}},
            {{"batch", batch}, {"sequence", length}}) == 3 * (layers * block + head));
}

TEST_CASE("bench: recurrent layers count their products of inputs and of states") {
  const std::int64_t tokens = 2 * 5, width = 6, hidden = 4, vocab = 7;
  const std::int64_t first = 2 * tokens * 4 * hidden * (width + hidden);
  const std::int64_t second = 2 * tokens * 4 * hidden * (hidden + hidden);
  CHECK(flops_of("lstm", {{"embedding", width}, {"hidden", hidden}, {"vocab", vocab}},
                 {{"batch", 2}, {"sequence", 5}}) ==
        3 * (first + second + 2 * tokens * hidden * vocab));
}

TEST_CASE("bench: convolutions count their kernel, the first one no gradient of its input") {
  // 16x16 images: 12x12 after the first convolution, 6x6, 2x2 after the second, 1x1.
  const std::int64_t batch = 3, classes = 4;
  const std::int64_t first = 2 * batch * 6 * 12 * 12 * 25;
  const std::int64_t second = 2 * batch * 16 * 2 * 2 * 6 * 25;
  const std::int64_t dense = 2 * batch * (16 * 120 + 120 * 84 + 84 * classes);
  CHECK(flops_of("lenet", {{"image", 16}, {"classes", classes}}, {{"batch", batch}}) ==
        2 * first + 3 * (second + dense));
}

TEST_CASE("bench: parameters of the standard workloads") {
  const auto parameters = [](std::string_view name) {
    const BenchWorkload& workload = find_workload(name);
    return build_model(workload.model, workload.arguments, 1).parameters();
  };
  CHECK(parameters("w1-sgd") == 669'706);
  CHECK(parameters("w2-lenet") == 61'706);
  CHECK(parameters("w2-resnet18") == 11'173'962);
  CHECK(parameters("w4") == 124'475'904);  // the published 124,439,808 and 47 rows of the table
  CHECK(parameters("w5") == 52'811'322);
  // Table, two layers with two biases each, head.
  CHECK(parameters("w6-lstm") == 10'000 * 512 + 2 * (8 * 512 * 512 + 8 * 512) + 10'000 * 513);
}

TEST_CASE("bench: the middle of the steps' times") {
  const Spread odd = spread_of({3.0, 1.0, 2.0});
  CHECK(odd.least == 1.0);
  CHECK(odd.median == 2.0);
  CHECK(odd.most == 3.0);
  CHECK(spread_of({4.0, 1.0, 2.0, 9.0}).median == 3.0);
}

TEST_CASE("bench: unknown workloads and sizes that do not suit are usage errors") {
  const auto code = [](auto&& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kRunFailed;
  };
  CHECK(code([] { find_workload("w1-adam"); }) == ErrorCode::kUsage);
  const BenchOptions with_sequence{.batch = 2, .sequence = 4, .steps = 1};
  CHECK(code([&] { run_bench(find_workload("w1-sgd"), with_sequence); }) == ErrorCode::kUsage);
}

TEST_CASE("bench: every workload trains, here on small batches") {
  for (BenchWorkload workload : bench_workloads()) {
    CAPTURE(workload.name);
    // A table of 50,000 tokens takes seconds to fill: the rest stays as it is.
    if (workload.sequence > 0) workload.arguments.insert_or_assign("vocab", 300);
    if (workload.sequence > 0) workload.arguments.insert_or_assign("layers", 2);
    // Some of a handful of labels must count.
    if (workload.labelled < 1.0) workload.labelled = 0.5;
    const BenchOptions options{
        .batch = 2, .sequence = workload.sequence > 0 ? 8 : 0, .steps = 3, .threads = 1};
    const BenchResult result = run_bench(workload, options);
    CHECK(result.step_ms.size() == 3);
    CHECK(spread_of(result.step_ms).least > 0.0);
    CHECK(result.flops_per_step > 0);
    CHECK(result.parameters > 60'000);
    CHECK(result.arena_bytes > 4 * result.parameters);
    CHECK(result.last_loss < result.first_loss);  // the same batch again and again
  }
}

TEST_CASE("bench: a paired run times the step without recomputation in turn") {
  const BenchOptions options{.batch = 64,
                             .steps = 4,
                             .threads = 1,
                             .recompute = {.mode = RecomputeMode::kLevel1},
                             .paired = true};
  const BenchResult result = run_bench(find_workload("w1-sgd"), options);
  CHECK(result.step_ms.size() == 4);
  CHECK(result.plain_step_ms.size() == 4);
  REQUIRE(result.recompute);
  CHECK(result.recompute->repeats > 0);
  CHECK(result.used_bytes == result.arena_bytes);
}
