// Gradients of one batch.
#include "engine/check/gradients.h"

#include <algorithm>

#include "engine/check/batch_inputs.h"
#include "engine/ir/well_known.h"

namespace trainscope {
namespace {

// Every float value that a node of the model computes.
std::vector<std::string> all_float_values(const OnnxModel& model, const CompileOptions& options) {
  CompileOptions import_only = options;
  import_only.passes.stop_after = default_passes().front().name;
  import_only.passes.keep = KeepGraphs::kAll;
  Stages stages = build_stages(model, import_only);
  const Graph& graph = stages.front().graph;
  std::vector<std::string> names;
  for (ValueId v : graph.values_of(ValueKind::kNode)) {
    if (is_float(graph.value(v).type.dtype)) names.push_back(graph.value(v).name);
  }
  return names;
}

}  // namespace

CompileOptions reference_compile_options(const ReferenceMeta& meta, GraphMode mode,
                                         const GradientsOptions& options) {
  CompileOptions compile_options;
  compile_options.import.float_type = options.float_type;
  compile_options.import.trainable = meta.trainable;
  compile_options.training.mode = mode;
  compile_options.training.precision = options.precision;
  compile_options.training.loss = meta.loss;
  compile_options.training.keep_gradients = true;
  compile_options.lower = options.lower;
  compile_options.passes = options.passes;
  compile_options.device = options.device;
  compile_options.passes.keep = KeepGraphs::kLast;
  return compile_options;
}

GradientsResult compute_gradients(const OnnxModel& model, const ReferenceMeta& meta,
                                  const Batch& batch, const GradientsOptions& options) {
  CompileOptions compile_options = reference_compile_options(meta, GraphMode::kGradients, options);
  bind_batch_sizes(model, meta.loss, batch, compile_options.import);
  std::vector<std::string> values = options.values;
  if (values.size() == 1 && values.front() == "all")
    values = all_float_values(model, compile_options);
  compile_options.import.keep_values = values;
  compile_options.training.gradient_of = values;

  Session session(model, compile_options);
  Executor& executor = session.executor();
  // In mixed precision some values are stored in two bytes; files hold what they are computed with.
  const auto read = [&executor](const std::string& name) {
    Tensor tensor = executor.read(name);
    const DType upcast = computed(tensor.dtype());
    return upcast == tensor.dtype() ? std::move(tensor) : convert(tensor, upcast);
  };
  require_inputs(executor, model, meta.loss, batch);
  bind_batch(executor, batch);
  if (executor.has(kRandomStepInput))
    executor.write(kRandomStepInput, Tensor::scalar<std::int64_t>(1));
  executor.run_micro_step();

  const Graph& graph = executor.program().graph;
  GradientsResult result;
  result.loss = executor.read(graph.value(graph.loss).name);
  for (const GradientOf& g : graph.gradients) {
    const Value& of = graph.value(g.of);
    Tensor gradient = read(graph.value(g.gradient).name);
    (of.kind == ValueKind::kParameter ? result.gradients : result.activation_gradients)
        .insert_or_assign(of.name, std::move(gradient));
  }
  for (const std::string& name : values) result.activations.emplace(name, read(name));
  result.arena_bytes = executor.program().arena().bytes;
  result.used_bytes = executor.used_bytes();
  return result;
}

void write_gradients(const GradientsResult& result, const std::filesystem::path& path) {
  std::vector<std::string> names{"loss"};
  std::vector<TensorView> views{result.loss.view()};
  auto add = [&](std::string_view prefix, const std::map<std::string, Tensor>& tensors) {
    for (const auto& [name, tensor] : tensors) {
      names.push_back(std::string(prefix) + name);
      views.push_back(tensor.view());
    }
  };
  add("grad:", result.gradients);
  add("act:", result.activations);
  add("dact:", result.activation_gradients);
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) tensors.push_back({names[i], views[i]});
  write_safetensors(path, tensors);
}

}  // namespace trainscope
