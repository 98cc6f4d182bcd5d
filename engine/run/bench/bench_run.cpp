// Builds a workload's model in memory, compiles it, runs and times its steps.
#include "engine/run/bench/bench_run.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/numbers.h"
#include "engine/core/saturating.h"
#include "engine/run/timed_steps.h"

namespace trainscope {
namespace {

constexpr std::int64_t kWarmUpSteps = 3;
constexpr std::int64_t kMeasuredSteps = 7;
constexpr const char* kLabels = "labels";

// Whether a model is made for sequences up to a length, or for any.
bool has_context(std::string_view model) {
  const auto builders = model_builders();
  const auto builder = std::ranges::find(builders, model, &ModelBuilder::name);
  CHECK_INVARIANT(builder != builders.end());
  return std::ranges::find(builder->options, "context", &ModelOption::name) !=
         builder->options.end();
}

OnnxModel workload_model(const BenchWorkload& workload, const BenchOptions& options) {
  ModelArguments arguments = workload.arguments;
  if (options.sequence > 0 && has_context(workload.model)) {
    arguments.emplace("context", options.sequence);
  }
  const std::string bytes = onnx_bytes(build_model(workload.model, arguments, options.seed));
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

CompileOptions workload_options(const BenchWorkload& workload, const BenchOptions& options) {
  CompileOptions compile;
  compile.import.dims["batch"] = options.batch;
  if (options.sequence > 0) compile.import.dims["sequence"] = options.sequence;
  compile.training.mode = GraphMode::kTrain;
  compile.training.loss = {.kind = LossKind::kCrossEntropy, .output = "logits", .labels = kLabels};
  compile.training.optimizer = workload.optimizer;
  compile.training.optimizer.in_backward = options.optimizer_in_backward;
  compile.training.loss_chunks = options.loss_chunks;
  compile.training.skip_ignored = options.skip_ignored;
  compile.training.skip_padding = options.skip_padding;
  compile.training.precision = options.precision;
  compile.training.seed = options.seed;
  compile.passes.disabled = options.disabled;
  compile.device = options.device;
  compile.lower.threads = options.threads;
  compile.lower.kernels = options.kernels;
  compile.lower.same_bits = options.same_bits;
  compile.order = options.order;
  // Times of whole ops, not of their batch tiles.
  if (options.op_times.empty()) compile.batch_tiles = options.batch_tiles;
  compile.recompute = options.recompute;
  compile.costs = options.costs;
  compile.machine = options.machine;
  return compile;
}

// Draws the fields of a batch, each from a stream of its own.
class Synthesis {
 public:
  explicit Synthesis(std::uint64_t seed) : seed_(seed) {}

  // Floats are normal, integers are below `kinds`.
  Tensor next(const TensorType& type, std::int64_t kinds) {
    const std::uint64_t stream = kSyntheticStreams + field_++;
    const bool floats = is_float(type.dtype);
    Tensor tensor({.dtype = floats ? DType::kF32 : DType::kI64, .shape = type.shape});
    std::uint64_t index = 0;
    if (!floats) {
      const auto bound = static_cast<std::uint64_t>(kinds);
      for (std::int64_t& element : tensor.values<std::int64_t>()) {
        element = static_cast<std::int64_t>(random_below(seed_, stream, index++, bound));
      }
      return type.dtype == DType::kI64 ? std::move(tensor) : convert(tensor, type.dtype);
    }
    for (float& element : tensor.values<float>()) {
      element = static_cast<float>(random_normal(seed_, stream, index++));
    }
    return type.dtype == DType::kF32 ? std::move(tensor) : convert(tensor, type.dtype);
  }

  // All but a fraction of the labels count no more.
  void hide(Tensor& labels, double labelled, std::int64_t ignore_index) {
    const std::uint64_t stream = kSyntheticStreams + field_++;
    std::uint64_t index = 0;
    for (std::int64_t& label : labels.values<std::int64_t>()) {
      if (random_uniform_f64(seed_, stream, index++) >= labelled) label = ignore_index;
    }
  }

 private:
  std::uint64_t seed_;
  std::uint64_t field_ = 0;
};

// The model's inputs and the labels.
Batch synthetic_batch(const Compiled& compiled, const BenchWorkload& workload,
                      const BenchOptions& options) {
  const Graph& imported = compiled.stages.front().graph;
  const Shape& logits = imported.value(imported.outputs.front()).type.shape;
  const std::int64_t classes = logits[logits.rank - 1];
  Synthesis synthesis(options.seed);
  Batch batch;
  for (ValueId id : imported.inputs) {
    const Value& input = imported.value(id);
    const auto kinds = workload.kinds.find(input.name);
    batch.tensors.emplace_back(
        input.name,
        synthesis.next(input.type, kinds == workload.kinds.end() ? classes : kinds->second));
  }
  const Graph& final = compiled.program.graph;
  Tensor labels = synthesis.next(final.value(final.find(kLabels)).type, classes);
  if (workload.labelled < 1.0) {
    synthesis.hide(labels, workload.labelled, LossOptions().ignore_index);
  }
  batch.tensors.emplace_back(kLabels, std::move(labels));
  batch.examples = options.batch;
  return batch;
}

void check_sizes(const BenchWorkload& workload, const BenchOptions& options) {
  CHECK_INVARIANT(options.batch >= 1 && options.steps >= 1);
  require((workload.sequence > 0) == (options.sequence > 0), ErrorCode::kUsage,
          "--seq does not suit {}: its examples are no sequences", workload.name);
}

std::int64_t count_elements(const Graph& graph, ValueKind kind) {
  std::int64_t sum = 0;
  for (ValueId id : graph.values_of(kind)) sum += graph.value(id).type.elements();
  return sum;
}

// Terms of each sum of a matmul or convolution; 0 for other ops.
std::int64_t terms_of_sum(const Graph& graph, const Node& node) {
  return node.op->terms == nullptr ? 0 : node.op->terms(*NodeArgs(graph, node));
}

}  // namespace

std::int64_t training_flops(const Graph& forward) {
  std::vector<bool> wants_gradient(forward.value_capacity(), false);
  for (ValueId id : forward.values_of(ValueKind::kParameter)) {
    wants_gradient[static_cast<std::size_t>(id)] = true;
  }
  const auto wanting = [&](std::span<const ValueId> inputs) {
    return std::ranges::count_if(inputs, [&](ValueId input) {
      return input != kNoValue && wants_gradient[static_cast<std::size_t>(input)];
    });
  };
  std::int64_t flops = 0;
  for (NodeId id : forward.order()) {
    const Node& node = forward.node(id);
    const bool wanted = wanting(node.inputs) > 0;
    for (ValueId output : node.outputs) {
      if (output != kNoValue) wants_gradient[static_cast<std::size_t>(output)] = wanted;
    }
    const std::int64_t terms = terms_of_sum(forward, node);
    if (terms == 0) continue;
    // The third input of Gemm or Conv is no factor.
    const std::int64_t matmuls = 1 + wanting(std::span(node.inputs).first(2));
    const std::int64_t outputs = forward.value(node.outputs.front()).type.elements();
    const std::int64_t of_one = saturating_multiply(2, saturating_multiply(outputs, terms));
    add_saturating(flops, saturating_multiply(matmuls, of_one));
  }
  return flops;
}

Spread spread_of(const std::vector<double>& values) {
  CHECK_INVARIANT(!values.empty());
  return {.least = std::ranges::min(values),
          .median = median(values),
          .most = std::ranges::max(values)};
}

TimedSteps workload_steps(const BenchWorkload& workload, const BenchOptions& options) {
  return TimedSteps(
      workload_model(workload, options), workload_options(workload, options),
      [&](const Compiled& compiled) { return synthetic_batch(compiled, workload, options); },
      workload.learning_rate);
}

namespace {

// A compiled workload and what it came to so far.
class Bench {
 public:
  Bench(const BenchWorkload& workload, const BenchOptions& options)
      : steps_(workload_steps(workload, options)) {
    const Graph& forward = steps_.compiled().stages.front().graph;
    const Program& program = steps_.compiled().program;
    result_.flops_per_step = training_flops(forward);
    result_.parameters = count_elements(forward, ValueKind::kParameter);
    result_.arena_bytes = program.arena().bytes;
    result_.host_arena_bytes = program.space(Space::kHost).bytes;
    result_.persistent_bytes = program.persistent_bytes;
    result_.recompute = steps_.compiled().recompute;
  }

  // Steps count from 1.
  void run(std::int64_t step) {
    const TimedStep done = steps_.run();
    if (step == 1) result_.first_loss = done.loss;
    result_.last_loss = done.loss;
    if (step > kWarmUpSteps) result_.step_ms.push_back(done.milliseconds);
    result_.used_bytes = steps_.executor().used_bytes();
    result_.used_host_bytes = steps_.executor().used_host_bytes();
  }

  void measure_ops(const std::filesystem::path& file) {
    OpMeasurement measured = steps_.measure_ops(kMeasuredSteps, file);
    result_.ops = std::move(measured.ops);
    result_.measured_step = measured.step;
  }

  const BenchResult& result() const { return result_; }

 private:
  TimedSteps steps_;
  BenchResult result_;
};

}  // namespace

BenchResult run_bench(const BenchWorkload& workload, const BenchOptions& options) {
  check_sizes(workload, options);
  Bench step(workload, options);
  std::optional<Bench> plain;
  if (options.paired) {
    BenchOptions without = options;
    without.recompute = {};
    plain.emplace(workload, without);
  }
  for (std::int64_t i = 1; i <= kWarmUpSteps + options.steps; ++i) {
    const bool plain_first = i % 2 == 0;  // whoever comes second finds the other's caches
    if (plain && plain_first) plain->run(i);
    step.run(i);
    if (plain && !plain_first) plain->run(i);
  }
  if (!options.op_times.empty()) step.measure_ops(options.op_times);
  BenchResult result = step.result();
  if (plain) {
    result.plain_step_ms = plain->result().step_ms;
    require(plain->result().last_loss == result.last_loss, ErrorCode::kMismatch,
            "after {} steps the loss is {}, without recomputation {}", options.steps,
            result.last_loss, plain->result().last_loss);
  }
  return result;
}

}  // namespace trainscope
