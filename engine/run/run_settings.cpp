// Requests as JSON.
#include "engine/run/run_settings.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/exec/backends.h"
#include "engine/functions/user_gradients.h"
#include "engine/machine/machine_file.h"
#include "engine/plugin/plugin.h"
#include "engine/run/resume.h"
#include "kernels/api/environment.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxCostsBytes = std::uint64_t{1} << 30;

std::string_view kernels_text(KernelChoice choice) {
  switch (choice) {
    case KernelChoice::kFastest:
      return "fastest";
    case KernelChoice::kDirect:
      return "direct";
    case KernelChoice::kReference:
      return "reference";
  }
  return "?";
}

// The data that must be the same to go on; its file may have moved.
Json data_identity(const Json& description) {
  Json identity = Json::object();
  for (const JsonMember& member : description.as_object()) {
    const bool left_out = member.key == "file" || member.key == "vocabulary";
    if (!left_out) identity.set(member.key, member.value);
  }
  return identity;
}

Json sizes_json(const ImportOptions& import) {
  Json json = Json::object();
  for (const auto& [symbol, size] : import.dims) json.set(symbol, size);
  for (const auto& [input, shape] : import.shapes) json.set(input, Json::list(shape));
  return json;
}

// What adds numbers in another order, and so changes bits. A key stands only where it was asked
// for, as in runs from before it existed.
void add_sum_orders(const CompileOptions& compile, Json& settings) {
  const TrainingOptions& training = compile.training;
  if (compile.batch_tiles) {
    settings.set("batch_tiles", "auto");
    // Which sections are tiled follows from times.
    if (!compile.costs.empty())
      settings.set("costs", hash_hex(hash_text(read_file(compile.costs, kMaxCostsBytes))));
    if (compile.machine != default_machine())
      settings.set("machine", machine_json(compile.machine));
  }
  if (training.loss_chunks > 1) settings.set("loss_chunks", training.loss_chunks);
  if (training.skip_ignored) settings.set("skip_ignored", true);
  if (!training.skip_padding.empty()) settings.set("skip_padding", training.skip_padding);
}

std::string term_text(const LossOptions& loss) {
  if (loss.kind == LossKind::kOutput) return fmt::format("output:{}", loss.output);
  std::string text =
      fmt::format("{}:output={},labels={}", name_of(loss.kind), loss.output, loss.labels);
  if (is_by_class(loss.kind)) {
    text += fmt::format(",ignore_index={},class_axis={}", loss.ignore_index, loss.class_axis);
  }
  if (loss.kind == LossKind::kHuber) text += fmt::format(",delta={}", loss.delta);
  if (loss.kind == LossKind::kFocal) {
    text += fmt::format(",gamma={},alpha={}", loss.gamma,
                        loss.alpha < 0.0 ? "none" : fmt::format("{}", loss.alpha));
  }
  if (loss.kind == LossKind::kCtc) {
    text += fmt::format(",blank={},time_axis={},most_labels={},zero_infinity={}", loss.blank,
                        loss.time_axis, loss.most_labels, loss.zero_infinity ? 1 : 0);
  }
  if (!loss.class_weights.empty()) {
    text += fmt::format(",weights={}", fmt::join(loss.class_weights, ":"));
  }
  if (loss.label_smoothing > 0.0) {
    text += fmt::format(",label_smoothing={}", loss.label_smoothing);
  }
  return text;
}

Json alternation_json(const TrainingOptions& training) {
  Json losses = Json::array();
  for (const AlternatingLoss& loss : training.alternation) {
    losses.push_back(Json::object({{"output", loss.output},
                                   {"pattern", loss.pattern},
                                   {"optimizer", optimizer_json(loss.optimizer)}}));
  }
  return losses;
}

// By file name, which is what a message shows: plugins may have moved. Those of one name have their
// hashes side by side, in an order that is not that of loading.
Json plugin_hashes() {
  std::map<std::string, std::set<std::string>> hashes;
  for (const LoadedPlugin* plugin : loaded_plugins()) {
    hashes[plugin->file.filename().string()].insert(hash_hex(plugin->hash));
  }
  Json json = Json::object();
  for (const auto& [name, of_name] : hashes)
    json.set(name, fmt::format("{}", fmt::join(of_name, " ")));
  return json;
}

// What does not keep a run from going on. With the same bits for any number of threads these do not
// matter.
Json about_settings(const TrainRequest& request) {
  const bool strict = request.compile.lower.same_bits == SameBits::kAnyThreads;
  Json about = Json::object({{"version", request.notes.program_version},
                             {"deterministic", strict ? "strict" : "threads"},
                             {"isa", cpu_isa()}});
  if (!strict) about.set("threads", request.compile.lower.threads);
  // Choices by time are kept there: without them others may be made.
  const char* choices = std::getenv(kMatmulChoicesVariable);
  const DeviceHandle& device = request.compile.device;
  const bool on_cpu = !device || device->facts().name == cpu_device()->facts().name;
  const bool is_named = choices != nullptr && *choices != '\0' && !on_cpu;
  if (is_named) about.set("matmul_choices", std::filesystem::absolute(choices).string());
  return about;
}

}  // namespace

Json run_settings(const TrainRequest& request, const Json& data) {
  const CompileOptions& compile = request.compile;
  const TrainingOptions& training = compile.training;
  Json settings = Json::object({{"model", hash_hex(request.model.hash())},
                                {"loss", loss_text(training.loss)},
                                {"optimizer", optimizer_json(training.optimizer)},
                                {"schedule", schedule_json(request.schedule)},
                                {"batch", request.batch},
                                {"sizes", sizes_json(compile.import)},
                                {"accumulate", training.micro_batches},
                                {"train", Json::list(compile.import.trainable)},
                                {"freeze", Json::list(compile.import.frozen)},
                                {"disable", Json::list(compile.passes.disabled)},
                                {"stop_after", compile.passes.stop_after},
                                {"kernels", kernels_text(compile.lower.kernels)},
                                {"data", data_identity(data)}});
  if (compile.import.parameters) {
    settings.set("parameters", Json::list(*compile.import.parameters));
  }
  if (compile.import.gradients) {
    settings.set("gradients", hash_hex(compile.import.gradients->hash()));
  }
  if (request.ranks) settings.set("ranks", request.ranks->size());
  if (training.straight_through) settings.set("straight_through", true);
  if (!training.alternation.empty()) settings.set("alternate", alternation_json(training));
  if (training.running_statistics) settings.set("batch_norm", "running");
  // Runs from before it existed were f32, and say nothing.
  if (training.precision != StepPrecision::kF32) {
    settings.set("precision", name_of(training.precision));
  }
  if (!loaded_plugins().empty()) settings.set("plugins", plugin_hashes());
  add_sum_orders(compile, settings);
  if (training.ema_decay > 0.0) settings.set("ema", training.ema_decay);
  if (request.shuffle == Shuffle::kNone) settings.set("shuffle", "none");
  settings.set(std::string(kAboutSettings), about_settings(request));
  return settings;
}

std::string loss_text(const LossOptions& loss) {
  std::string text;
  for (const LossOptions* term : terms_of_loss(loss)) {
    if (!text.empty()) text += kBetweenLosses;
    if (term->weight != 1.0) text += fmt::format("{}*", term->weight);
    text += term_text(*term);
  }
  return text;
}

Json optimizer_json(const OptimizerOptions& optimizer) {
  const bool of_plugin = optimizer.kind == OptimizerKind::kPlugin;
  const std::string_view kind = of_plugin ? optimizer.step.name : name_of(optimizer.kind);
  Json json = Json::object({{"kind", kind},
                            {"weight_decay", optimizer.weight_decay},
                            {"decay_matrices_only", optimizer.decay_matrices_only},
                            {"clip_norm", optimizer.clip_norm}});
  if (of_plugin) {
    json.set("momentum", optimizer.momentum);
    json.set("beta1", optimizer.beta1);
    json.set("beta2", optimizer.beta2);
    json.set("epsilon", optimizer.epsilon);
  } else if (optimizer.kind == OptimizerKind::kSgd) {
    json.set("momentum", optimizer.momentum);
    if (optimizer.nesterov) json.set("nesterov", true);
  } else if (optimizer.kind == OptimizerKind::kRmsProp) {
    json.set("alpha", optimizer.beta2);
    json.set("epsilon", optimizer.epsilon);
    json.set("momentum", optimizer.momentum);
    if (optimizer.centered) json.set("centered", true);
  } else if (optimizer.kind == OptimizerKind::kLion) {
    json.set("beta1", optimizer.beta1);
    json.set("beta2", optimizer.beta2);
  } else {
    json.set("beta1", optimizer.beta1);
    json.set("beta2", optimizer.beta2);
    json.set("epsilon", optimizer.epsilon);
    if (!optimizer.bias_correction) json.set("bias_correction", false);
  }
  if (optimizer.sparse_embeddings) json.set("sparse_embeddings", true);
  if (optimizer.kind == OptimizerKind::kLamb) {
    json.set("ratio_min", optimizer.ratio_min);
    // JSON has no infinity: no limit, no key.
    if (std::isfinite(optimizer.ratio_max)) json.set("ratio_max", optimizer.ratio_max);
  }
  Json groups = Json::array();
  for (const ParameterGroup& group : optimizer.groups) {
    groups.push_back(
        Json::object({{"pattern", group.pattern},
                      {"weight_decay", group.weight_decay ? Json(*group.weight_decay) : Json()},
                      {"learning_rate_scale", group.learning_rate_scale}}));
  }
  json.set("groups", std::move(groups));
  return json;
}

Json model_facts(const OnnxModel& model) {
  std::error_code error;
  Json facts = Json::object({{"file", model.path().string()},
                             {"path", fs::absolute(model.path(), error).string()},
                             {"xxh3", hash_hex(model.hash())},
                             {"producer", model.producer()},
                             {"opset", model.opset()},
                             {"nodes", model.node_count()}});
  if (!loaded_plugins().empty()) facts.set("plugins", plugins_json());
  return facts;
}

}  // namespace trainscope
