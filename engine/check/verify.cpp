// Rows of verify for a model folder: gradients and values of one batch, ten optimizer steps.
#include "engine/check/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "engine/check/gradients.h"
#include "engine/check/reference.h"
#include "engine/check/sized_sessions.h"
#include "engine/check/verify_convergence.h"
#include "engine/check/verify_mixed.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/session.h"
#include "engine/train/first_step_noise.h"

namespace trainscope {
namespace {

constexpr double kFactor = 8.0;     // over measured noise
constexpr double kUlp32 = 0x1p-23;  // rounding floors of float32
constexpr double kHalfUlp32 = 0x1p-24;
constexpr double kVanishing = 1e-8;  // of the global gradient norm
constexpr double kF64 = 1e-9;        // float64 against float64, relative

struct ReferenceFolder {
  std::filesystem::path path;
  ReferenceMeta meta;
  OnnxModel model;
  SafetensorsFile reference;
  ReferenceTable values;
  ReferenceTable parameters;
  double gradient_norm = 0.0;

  static ReferenceFolder open(const std::filesystem::path& path) {
    return {.path = path,
            .meta = read_reference_meta(path / "meta.json"),
            .model = OnnxModel::read(path / "model.onnx"),
            .reference = SafetensorsFile::open(path / "reference.safetensors"),
            .values = ReferenceTable::read(path / "values.tsv", "value"),
            .parameters = ReferenceTable::read(path / "params.tsv", "param")};
  }
  double noise(std::string_view key) const { return meta.json.at("noise").at(key).as_number(); }
};

double relative(double value, double expected) {
  return std::abs(value - expected) / std::max(std::abs(expected), 1e-300);
}

double scalar_of(const Tensor& tensor) { return convert(tensor, DType::kF64).values<double>()[0]; }

std::vector<std::string> names_with(const SafetensorsFile& file, std::string_view prefix) {
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.name.starts_with(prefix)) names.push_back(entry.name.substr(prefix.size()));
  }
  return names;
}

// A gradient's limit from its norm and its measured relative noise.
double gradient_limit(double norm, double noise, double global_norm) {
  return kFactor * std::max({noise * norm, kUlp32 * norm, kVanishing * global_norm});
}

// Infinite for a tensor that the engine did not compute: what is missing must not pass.
double error_of(const std::map<std::string, Tensor>& computed, const std::string& name,
                const Tensor& expected) {
  const auto found = computed.find(name);
  return found == computed.end() ? std::numeric_limits<double>::infinity()
                                 : error_norm(found->second, expected);
}

void compare_values(const ReferenceFolder& folder, const GradientsResult& result,
                    VerifyReport& report) {
  for (const auto& [name, tensor] : result.activations) {
    Tensor expected = folder.reference.tensor("act.f64:" + name);
    double noise = folder.values.number(name, "f32_rel_l2");
    report.add({"act", name, error_norm(tensor, expected),
                kFactor * std::max(noise, kUlp32) * folder.values.number(name, "l2")});
  }
  for (const std::string& name : names_with(folder.reference, "dact.f64:")) {
    Tensor expected = folder.reference.tensor("dact.f64:" + name);
    double noise = folder.values.number(name, "grad_f32_rel_l2");
    report.add({"dact", name, error_of(result.activation_gradients, name, expected),
                gradient_limit(norm(expected), noise, folder.gradient_norm)});
  }
}

GradientsResult gradients_of(const ReferenceFolder& folder, DType float_type,
                             const VerifyOptions& options) {
  GradientsOptions gradients{.float_type = float_type,
                             .values = names_with(folder.reference, "act.f64:"),
                             .lower = options.lower,
                             .passes = options.passes,
                             .device = options.device};
  return compute_gradients(folder.model, folder.meta,
                           reference_batch(folder.reference, 0, float_type), gradients);
}

void add_plan_row(std::string_view what, const Executor& executor, VerifyReport& report) {
  double difference = static_cast<double>(executor.used_bytes() - executor.program().arena().bytes);
  report.add({"plan", fmt::format("{}: used - predicted bytes", what), std::abs(difference), 0.0});
}

void verify_gradients_f32(const ReferenceFolder& folder, const VerifyOptions& options,
                          VerifyReport& report) {
  GradientsResult result = gradients_of(folder, DType::kF32, options);
  double expected_loss = scalar_of(folder.reference.tensor("loss.f64:0"));
  report.add({"loss", "f32", relative(scalar_of(result.loss), expected_loss), 1e-6});
  for (const std::string& name : names_with(folder.reference, "grad.f64:")) {
    Tensor expected = folder.reference.tensor("grad.f64:" + name);
    double noise = folder.parameters.number(name, "grad_noise_rel_l2");
    report.add({"grad", name, error_of(result.gradients, name, expected),
                gradient_limit(norm(expected), noise, folder.gradient_norm)});
  }
  compare_values(folder, result, report);
  report.add({"plan", "gradients: used - predicted bytes",
              std::abs(static_cast<double>(result.used_bytes - result.arena_bytes)), 0.0});
}

// Same formulas, no rounding to speak of: an error here is a wrong formula. The graph's own
// constants are float32, which the reference measured as graph_vs_module_f64.
void verify_gradients_f64(const ReferenceFolder& folder, const VerifyOptions& options,
                          VerifyReport& report) {
  GradientsResult result = gradients_of(folder, DType::kF64, options);
  const Json& graph_noise = folder.meta.json.at("noise").at("graph_vs_module_f64");
  double expected_loss = scalar_of(folder.reference.tensor("loss.f64:0"));
  report.add({"loss", "f64", relative(scalar_of(result.loss), expected_loss),
              kFactor * std::max(graph_noise.at("loss_rel").as_number(), kF64 / kFactor)});
  double limit = kFactor * folder.gradient_norm *
                 std::max(graph_noise.at("grad_max_err_over_global_norm").as_number(), kF64);
  for (const std::string& name : names_with(folder.reference, "grad.f64:")) {
    Tensor expected = folder.reference.tensor("grad.f64:" + name);
    report.add({"grad", name + " (f64)", error_of(result.gradients, name, expected), limit});
  }
}

class OneBatch final : public BatchSource {
 public:
  explicit OneBatch(const Batch& batch) : batch_(batch) {}
  const Batch* next() override { return &batch_; }

 private:
  const Batch& batch_;
};

struct OptimizerRun {
  std::string name;  // adamw, sgdm
  ReferenceOptimizer optimizer;
  SafetensorsFile file;
  double stat_noise_step1 = 0.0;
  double stat_noise_step10 = 0.0;
};

// How far the measured noise of a gradient moves a parameter in AdamW's first step: elements near
// epsilon, perhaps one in ten thousand, make all of it, and the one run whose error was measured
// may have met them by luck (docs/adr/0004).
double adam_noise(const ReferenceFolder& folder, const OptimizerRun& run, const std::string& name) {
  if (run.name != "adamw" || !folder.reference.contains("grad.f64:" + name)) return 0.0;
  const Tensor gradient = folder.reference.tensor("grad.f64:" + name);
  if (gradient.shape().rank < 2) return 0.0;
  const OptimizerOptions& options = run.optimizer.options;
  const bool clipped = options.clip_norm > 0.0 && folder.gradient_norm > options.clip_norm;
  const double scale = clipped ? options.clip_norm / folder.gradient_norm : 1.0;
  const double relative = std::max(folder.parameters.number(name, "grad_noise_rel_l2"), kUlp32);
  const FirstStepNoise noise = first_step_noise(gradient, scale, relative, options.epsilon);
  return run.optimizer.learning_rates.at(0) * noise.apart;
}

void compare_parameters(const ReferenceFolder& folder, const OptimizerRun& run,
                        const Executor& executor, int step, VerifyReport& report) {
  const std::string prefix = fmt::format("param.{}.f64:", step);
  for (const std::string& name : names_with(run.file, prefix)) {
    if (run.name == "adamw" && folder.meta.vanishing.contains(name)) continue;
    Tensor expected = run.file.tensor(prefix + name);
    double noise = folder.parameters.number(name, fmt::format("{}{}_f32_err_l2", run.name, step));
    report.add(
        {"param", fmt::format("{} step {} {}", run.name, step, name),
         error_norm(executor.read(name), expected),
         kFactor * std::max(noise, kHalfUlp32 * norm(expected)) + adam_noise(folder, run, name)});
  }
}

// Whether the state is a variance of the sample, as PyTorch's batch norms keep it.
bool is_of_sample(const Graph& graph, const std::string& state) {
  return std::ranges::any_of(graph.value(graph.find(state)).uses, [&graph](const Use& use) {
    return graph.node(use.node).op->sample_variance;
  });
}

// Running statistics as the model's batch norms define them. ONNX's variance, of the population,
// has tensors of its own; its mean is PyTorch's.
void compare_statistics(const OptimizerRun& run, const Executor& executor, int step,
                        VerifyReport& report) {
  const std::string onnx_prefix = fmt::format("onnx_stat.{}.f64:", step);
  const std::string prefix = fmt::format("stat.{}.f64:", step);
  for (const std::string& name : names_with(run.file, prefix)) {
    if (!executor.has(name)) continue;  // PyTorch's count of batches is not in the graph
    const bool of_sample = is_of_sample(executor.program().graph, name);
    const bool own = !of_sample && run.file.contains(onnx_prefix + name);
    if (!own && !of_sample && name.ends_with("running_var")) continue;
    Tensor expected = run.file.tensor((own ? onnx_prefix : prefix) + name);
    double noise = step == 1 ? run.stat_noise_step1 : run.stat_noise_step10;
    report.add({"stat", fmt::format("{} step {} {}", run.name, step, name),
                error_norm(executor.read(name), expected), kFactor * noise * norm(expected)});
  }
}

// The exporter ran the module once while it kept statistics, so model.onnx holds those of one
// batch; the stored runs start from a fresh module: mean 0, variance 1.
void reset_statistics(const OptimizerRun& run, Executor& executor) {
  const std::string prefix = "stat.1.f64:";
  for (const std::string& name : names_with(run.file, prefix)) {
    if (!executor.has(name)) continue;  // PyTorch's count of batches is not in the graph
    Tensor fresh(executor.memory().type(name));
    std::ranges::fill(fresh.values<float>(), name.ends_with("running_var") ? 1.0F : 0.0F);
    executor.write(name, fresh);
  }
}

void verify_optimizer(const ReferenceFolder& folder, const OptimizerRun& run,
                      const VerifyOptions& options, VerifyReport& report) {
  const ReferenceOptimizer& optimizer = run.optimizer;
  CompileOptions compile_options = reference_compile_options(folder.meta, GraphMode::kTrain,
                                                             {.float_type = DType::kF32,
                                                              .values = {},
                                                              .lower = options.lower,
                                                              .passes = options.passes,
                                                              .device = options.device});
  compile_options.training.keep_gradients = false;
  compile_options.training.optimizer = optimizer.options;
  SizedSessions sessions(folder.model, compile_options);
  const std::array batches{reference_batch(folder.reference, 0, DType::kF32),
                           reference_batch(folder.reference, 1, DType::kF32)};
  reset_statistics(run, *sessions.executor_of(batches[0]));
  Tensor losses = run.file.tensor("losses.f64:");
  require(losses.elements() <= std::ssize(optimizer.learning_rates), ErrorCode::kBadInput,
          "optimizers.{} has {} learning rates for {} losses", run.name,
          optimizer.learning_rates.size(), losses.elements());
  double worst_loss = 0.0;
  double worst_norm = 0.0;
  for (int step = 1; step <= static_cast<int>(losses.elements()); ++step) {
    auto at = static_cast<std::size_t>(step - 1);
    const Batch& batch = batches[at % batches.size()];
    const std::shared_ptr<Executor> executor = sessions.executor_of(batch);
    OneBatch source(batch);
    StepResult result =
        Trainer(executor, 1).run_step(step, optimizer.learning_rates.at(at), source);
    worst_loss = std::max(worst_loss, relative(result.loss, losses.values<double>()[at]));
    if (result.gradient_norm && run.file.contains("grad_norms.f64:")) {
      Tensor norms = run.file.tensor("grad_norms.f64:");
      worst_norm =
          std::max(worst_norm, relative(*result.gradient_norm, norms.values<double>()[at]));
    }
    compare_parameters(folder, run, *executor, step, report);
    compare_statistics(run, *executor, step, report);
  }
  report.add({"losses", run.name, worst_loss, 1e-5});
  if (run.file.contains("grad_norms.f64:") && optimizer.options.clip_norm > 0.0) {
    report.add({"grad_norms", run.name, worst_norm, 1e-5});
  }
  for (const auto& session : sessions.sessions()) {
    add_plan_row(run.name, session->executor(), report);
  }
}

VerifyReport verify_model(const std::filesystem::path& path, const VerifyOptions& options) {
  ReferenceFolder folder = ReferenceFolder::open(path);
  folder.gradient_norm = folder.noise("grad_global_norm");
  VerifyReport report;
  report.folder = path;
  verify_gradients_f32(folder, options, report);
  // Formulas are the same for every device, and only the CPU has all ops in f64.
  const bool on_cpu = options.device == nullptr || options.device == cpu_device();
  if (on_cpu) verify_gradients_f64(folder, options, report);
  for (const char* name : {"adamw", "sgdm"}) {
    std::filesystem::path file = path / (std::string(name) + ".safetensors");
    if (!std::filesystem::exists(file)) continue;
    const Json& noise = folder.meta.json.at("optimizer_noise").at(name);
    double values = std::max(folder.noise("value_rel_l2_max"), kUlp32);
    OptimizerRun run{
        .name = name,
        .optimizer = reference_optimizer(folder.meta.json.at("optimizers").at(name)),
        .file = SafetensorsFile::open(file),
        .stat_noise_step1 = values,
        .stat_noise_step10 = std::max(values, noise.at("step10_all_rel_l2").as_number())};
    verify_optimizer(folder, run, options, report);
  }
  return report;
}

VerifyReport verify_folder(const std::filesystem::path& folder, const VerifyOptions& options) {
  if (std::filesystem::exists(folder / "curves.tsv")) return verify_convergence(folder, options);
  return options.precision == StepPrecision::kF32 ? verify_model(folder, options)
                                                  : verify_mixed(folder, options);
}

}  // namespace

void VerifyReport::add(VerifyRow row) {
  if (!row.ok()) ++failed;
  if (row.limit > 0.0) worst_share = std::max(worst_share, row.error / row.limit);
  rows.push_back(std::move(row));
}

VerifyReport verify_reference(const std::filesystem::path& folder, const VerifyOptions& options) {
  require(std::filesystem::is_directory(folder), ErrorCode::kIo, "no folder '{}'",
          printable(folder.string()));
  bool has_numbers = std::filesystem::exists(folder / "curves.tsv") ||
                     (std::filesystem::exists(folder / "values.tsv") &&
                      std::filesystem::exists(folder / "reference.safetensors"));
  if (!has_numbers) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' holds no reference numbers", printable(folder.string())))
        .hint(
            "a reference folder has model.onnx, meta.json, reference.safetensors, values.tsv, "
            "params.tsv");
  }
  try {
    return verify_folder(folder, options);
  } catch (Error& error) {
    error.at(printable(folder.string()));
    throw;
  }
}

double norm(const Tensor& a) {
  Tensor exact = convert(a, DType::kF64);
  double sum = 0.0;
  for (double x : exact.values<double>()) sum += std::isfinite(x) ? x * x : 0.0;
  return std::sqrt(sum);
}

double error_norm(const Tensor& a, const Tensor& b) {
  require(a.shape() == b.shape(), ErrorCode::kBadInput, "shapes differ: {} and {}",
          type_text(a.type()), type_text(b.type()));
  Tensor exact_a = convert(a, DType::kF64);
  Tensor exact_b = convert(b, DType::kF64);
  auto x = exact_a.values<double>();
  auto y = exact_b.values<double>();
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    if (same) continue;
    if (!std::isfinite(x[i]) || !std::isfinite(y[i]))
      return std::numeric_limits<double>::infinity();
    sum += (x[i] - y[i]) * (x[i] - y[i]);
  }
  return std::sqrt(sum);
}

}  // namespace trainscope
