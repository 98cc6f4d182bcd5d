// Graphs from text, passes over them, and their results on given inputs.
#include "tests/support/graph_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/ir/well_known.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Evaluate& evaluate() {
  static const Evaluate evaluate =
      evaluator(op_table(), cpu_kernels(), {.kernels = KernelChoice::kReference, .threads = 1});
  return evaluate;
}

const Pass& pass_named(std::string_view name) {
  for (const Pass& pass : default_passes()) {
    if (pass.name == name) return pass;
  }
  fail(ErrorCode::kUsage, "no pass '{}' in the default pipeline", name);
}

PassContext context_for(const TrainingOptions& options, std::string_view pass) {
  return {
      .ops = op_table(), .evaluate = &evaluate(), .options = options, .pass = pass, .counters = {}};
}

bool is_step_scalar(std::string_view name) {
  return name == kStepInput || name == kRandomStepInput || name == kMicroStepInput ||
         name == kLearningRateInput;
}

Tensor random_elements(const Value& value, std::uint64_t seed) {
  if (is_step_scalar(value.name)) return convert(Tensor::scalar(1.0), value.type.dtype);
  const std::uint64_t stream =
      hash_bytes(std::as_bytes(std::span(value.name.data(), value.name.size())));
  Tensor tensor = random_tensor(value.type, seed, stream);
  if (value.type.dtype == DType::kI64) {
    for (std::int64_t& element : tensor.values<std::int64_t>()) element = std::abs(element) % 10;
  }
  return tensor;
}

}  // namespace

OnnxModel model(std::string_view text) {
  return OnnxModel::parse_text(
      fmt::format("<ir_version: 8, opset_import: [\"\" : 17]>\ng {}", text));
}

Graph graph(std::string_view text, const ImportOptions& options) {
  return graph(model(text), options);
}

Graph graph(const OnnxModel& from, const ImportOptions& options) {
  ImportOptions with_evaluate = options;
  with_evaluate.evaluate = &evaluate();
  return to_graph(from, op_table(), with_evaluate);
}

Stages stages(std::string_view text, const CompileOptions& options) {
  return build_stages(model(text), options);
}

Graph passed(Graph start, const std::vector<std::string>& names, const TrainingOptions& options) {
  std::vector<Pass> passes;
  for (const std::string& name : names) passes.push_back(pass_named(name));
  return run_passes(std::move(start), passes, context_for(options, {}), {}).back().graph;
}

bool changes(Graph start, std::string_view pass, const TrainingOptions& options) {
  PassContext context = context_for(options, pass);
  return pass_named(pass).run(start, context);
}

std::string node_lines(const Graph& graph) {
  const std::string printed = print(graph);
  std::string lines;
  for (std::string_view line : split(printed, '\n')) {
    bool value = false;
    for (std::string_view kind : {"input ", "parameter ", "state ", "constant "}) {
      value = value || line.starts_with(kind);
    }
    if (!line.empty() && !value) lines += std::string(line) + "\n";
  }
  return lines;
}

int count_ops(const Graph& graph, std::string_view op) {
  return static_cast<int>(std::ranges::count_if(
      graph.order(), [&](NodeId id) { return graph.node(id).op->name == op; }));
}

Tensors random_inputs(const Graph& graph, std::uint64_t seed) {
  Tensors inputs;
  for (ValueKind kind : {ValueKind::kInput, ValueKind::kParameter}) {
    for (ValueId v : graph.values_of(kind)) {
      inputs.emplace(graph.value(v).name, random_elements(graph.value(v), seed));
    }
  }
  return inputs;
}

Tensors outputs_of(const Graph& graph, const Tensors& inputs) {
  const ReferenceValues values = reference_run(graph, inputs, evaluate());
  Tensors outputs;
  for (ValueId v : graph.outputs) outputs.emplace(graph.value(v).name, values.at(v));
  return outputs;
}

Tensors results_of(const Graph& graph, const Tensors& inputs) {
  const ReferenceValues values = reference_run(graph, inputs, evaluate());
  Tensors results;
  for (ValueId v : graph.outputs) results.emplace(graph.value(v).name, values.at(v));
  if (graph.loss != kNoValue) results.emplace("loss", values.at(graph.loss));
  for (const GradientOf& g : graph.gradients) {
    results.emplace("d " + graph.value(g.of).name, values.at(g.gradient));
  }
  for (const Update& u : graph.updates) {
    results.emplace("next " + graph.value(u.state).name, values.at(u.value));
  }
  return results;
}

double difference(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type()) return kInfinity;
  const Tensor wide_a = convert(a, DType::kF64);
  const Tensor wide_b = convert(b, DType::kF64);
  double worst = 0.0;
  for (std::size_t i = 0; i < wide_a.values<double>().size(); ++i) {
    const double x = wide_a.values<double>()[i];
    const double y = wide_b.values<double>()[i];
    if (x == y) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return kInfinity;
    worst = std::max(worst, std::abs(x - y) / std::max(1.0, std::abs(y)));
  }
  return worst;
}

double difference(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return kInfinity;
  double worst = 0.0;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    worst = std::max(worst, other == b.end() ? kInfinity : difference(tensor, other->second));
  }
  return worst;
}

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(shape, values);
}

Tensor doubles(Shape shape, const std::vector<double>& values) {
  return Tensor::of<double>(shape, values);
}

std::optional<Error> error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

std::string refusal_of(const std::function<void()>& action) {
  const std::optional<Error> error = error_of(action);
  if (!error) return {};
  return error->message() + "\n" + join(error->context(), "\n") + "\n" + error->hint();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace trainscope::test
