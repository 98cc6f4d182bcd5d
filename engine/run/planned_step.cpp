// A run's record as what compile() takes.
#include "engine/run/planned_step.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/machine/machine_file.h"

namespace trainscope {
namespace {

constexpr std::int64_t kMostThreads = 1'000'000;  // what is above is no number of threads

template <typename Value>
struct Word {
  std::string_view text;
  Value value;
};

template <typename Value, std::size_t kCount>
Value value_of(std::string_view option, std::string_view text,
               const std::array<Word<Value>, kCount>& words) {
  for (const Word<Value>& word : words) {
    if (word.text == text) return word.value;
  }
  fail(ErrorCode::kBadInput, "the option {} is '{}', which this program does not know", option,
       printable(text));
}

std::vector<std::string> texts_of(const Json& options, std::string_view name) {
  std::vector<std::string> texts;
  const Json* list = options.find(name);
  if (list == nullptr) return texts;
  for (const Json& each : list->as_array()) texts.push_back(each.as_string());
  return texts;
}

// Batch tiles had another name in older runs.
bool has_batch_tiles(const Json& options) {
  return options.get_or("batch-tiles", options.get_or("op-chains", "none")) != "none";
}

CompileOptions recorded_options(const RunManifest& manifest) {
  const Json& recorded = manifest.options;
  CompileOptions options;
  options.training.mode = GraphMode::kInference;  // of a finished graph: nothing is built around it
  options.passes.keep = KeepGraphs::kLast;
  options.passes.disabled = texts_of(recorded, "disable");
  for (std::string& name : options.passes.disabled) {
    name = present_pass_name(name, default_passes());
  }
  for (const Pass& pass : default_passes()) options.passes.disabled.emplace_back(pass.name);
  options.device = device_of(recorded.get_or("device", "cpu"));
  const std::int64_t threads = planned_threads(manifest).value_or(1);
  require(threads >= 1 && threads <= kMostThreads, ErrorCode::kBadInput, "the option threads is {}",
          threads);
  options.lower.threads = static_cast<int>(threads);
  options.lower.kernels = kernel_choice_of(recorded.get_or("kernels", "fastest"));
  options.lower.same_bits = same_bits_of(recorded.get_or("deterministic", "threads"));
  options.lower.tf32 = recorded.get_or("precision", "f32") == name_of(StepPrecision::kTf32);
  options.order = op_order_of(recorded.get_or("op-order", "memory"));
  if (has_batch_tiles(recorded)) options.batch_tiles = BatchTileOptions{};
  options.costs = recorded.get_or("costs", "");
  if (!manifest.machine.is_null()) options.machine = machine_of(manifest.machine);
  return options;
}

}  // namespace

KernelChoice kernel_choice_of(std::string_view word) {
  static constexpr std::array<Word<KernelChoice>, 3> kWords = {
      {{"fastest", KernelChoice::kFastest},
       {"direct", KernelChoice::kDirect},
       {"reference", KernelChoice::kReference}}};
  return value_of("kernels", word, kWords);
}

SameBits same_bits_of(std::string_view word) {
  static constexpr std::array<Word<SameBits>, 2> kWords = {
      {{"threads", SameBits::kSameThreads}, {"strict", SameBits::kAnyThreads}}};
  return value_of("deterministic", word, kWords);
}

OpOrder op_order_of(std::string_view word) {
  static constexpr std::array<Word<OpOrder>, 2> kWords = {
      {{"given", OpOrder::kGiven}, {"memory", OpOrder::kMemory}}};
  return value_of("op-order", word, kWords);
}

std::optional<StageRecord> planned_stage(const RunReader& run) {
  std::vector<StageRecord> stages = run.stages();
  const auto is_planned = [](const StageRecord& stage) {
    return std::ranges::find(kProgramStages, stage.name) == kProgramStages.end();
  };
  const auto last = std::ranges::find_if(stages.rbegin(), stages.rend(), is_planned);
  return last == stages.rend() ? std::nullopt : std::optional(std::move(*last));
}

std::optional<std::int64_t> planned_threads(const RunManifest& manifest) {
  if (manifest.options.contains("threads")) return manifest.options.get<std::int64_t>("threads");
  const std::int64_t used = manifest.sessions.empty() ? 0 : manifest.sessions.back().threads;
  return used > 0 ? std::optional(used) : std::nullopt;
}

PlannedStep planned_step(const RunReader& run) {
  const std::optional<StageRecord> stage = planned_stage(run);
  if (!stage) {
    throw Error(ErrorCode::kBadInput, "the run has no stages: there is no graph to plan")
        .hint("stages are written when training starts");
  }
  return {.model = OnnxModel::read(run.open_stage(*stage)),
          .options = recorded_options(run.manifest())};
}

}  // namespace trainscope
