// Results of training as facts and text.
#include "cli/print/train_summary.h"

#include <fmt/format.h>

#include "engine/core/text.h"

namespace trainscope {
namespace {

Json facts_of(const TrainingResult& result) {
  Json json = Json::object({{"run", result.folder.string()},
                            {"status", name_of(result.status)},
                            {"step", result.step},
                            {"steps", result.steps},
                            {"from_step", result.from_step},
                            {"to_step", result.to_step},
                            {"samples_seen", result.samples_seen},
                            {"training_ms", result.training_ms},
                            {"predicted_bytes", result.predicted_bytes},
                            {"used_bytes", result.used_bytes}});
  if (const DeviceMemory& memory = result.device_memory; memory.total > 0) {
    json.set("device_memory", Json::object({{"total_bytes", memory.total},
                                            {"allocated_bytes", memory.allocated},
                                            {"driver_bytes", memory.driver},
                                            {"library_bytes", memory.libraries}}));
  }
  if (result.beyond_plan.trips > 0) {
    json.set("second_arena_bytes", result.beyond_plan.bytes);
    json.set("most_trips", result.beyond_plan.trips);
  }
  if (!result.model.empty()) json.set("model", result.model.string());
  if (result.first) json.set("first_loss", result.first->loss);
  if (result.last) json.set("last_loss", result.last->loss);
  if (result.validation) {
    json.set("validation", Json::object({{"loss", result.validation->loss},
                                         {"accuracy", result.validation->accuracy},
                                         {"examples", result.validation->examples}}));
  }
  if (result.ended_early) json.set("ended_early", true);
  if (result.best) {
    json.set("best", Json::object({{"step", result.best->step}, {"loss", result.best->loss}}));
  }
  return json;
}

std::string text_of(const TrainingResult& result) {
  const std::string folder = printable(result.folder.string());
  std::string text;
  if (result.ended_early) {
    text += fmt::format("ended early after step {} of {}: the validation loss did not fall\n",
                        result.step, result.steps);
    if (result.best) {
      text += fmt::format(
          "best        step {}, validation loss {:.6g}: `trainscope export {} "
          "--best -o FILE`\n",
          result.best->step, result.best->loss, folder);
    }
  } else if (result.step < result.steps) {
    text += fmt::format("stopped after step {} of {}; --run-dir {} --resume auto goes on\n",
                        result.step, result.steps, folder);
  }
  if (result.last) {
    const double seconds = result.training_ms / 1000.0;
    const auto samples =
        static_cast<double>((result.step - result.from_step) * result.last->samples);
    text += fmt::format("steps       {} to {}, loss {:.6g} to {:.6g}, {:.1f} s, {:.0f} samples/s\n",
                        result.from_step + 1, result.step, result.first->loss, result.last->loss,
                        seconds, samples / seconds);
  }
  if (result.validation) {
    text += fmt::format("validation  {}\n", evaluation_text(*result.validation));
  }
  text += fmt::format("memory      arena of {} bytes predicted, {} bytes used\n",
                      result.predicted_bytes, result.used_bytes);
  if (const DeviceMemory& memory = result.device_memory; memory.total > 0) {
    text += fmt::format(
        "            {} of {} bytes of the device allocated; {} bytes had its driver and other "
        "processes before, {} libraries since\n",
        memory.allocated, memory.total, memory.driver, memory.libraries);
  }
  if (result.beyond_plan.trips > 0) {
    text += fmt::format(
        "            {} bytes in a second arena: a loop had {} trips, more than the plan has room "
        "for (--max-trips {})\n",
        result.beyond_plan.bytes, result.beyond_plan.trips, result.beyond_plan.trips);
  }
  if (!result.model.empty()) text += fmt::format("model       {}/{}\n", folder, kTrainedModelFile);
  text += fmt::format("run         {} (trainscope inspect {})\n", folder, folder);
  return text;
}

}  // namespace

Outcome summary_of(const TrainingResult& result) {
  return {.facts = facts_of(result), .text = text_of(result), .exit_code = result.exit_code};
}

Outcome summary_of(const TrainingPreview& preview) {
  return {.facts = Json::object({{"dry_run", true},
                                 {"from_step", preview.from_step},
                                 {"steps", preview.steps},
                                 {"batch", preview.batch},
                                 {"micro_batches", preview.micro_batches},
                                 {"training_examples", preview.training_examples},
                                 {"calls", preview.calls},
                                 {"predicted_bytes", preview.predicted_bytes}}),
          .text = fmt::format("would train steps {} to {} of {} x {} examples, {} in all\n"
                              "memory      arena of {} bytes predicted, {} calls a step\n",
                              preview.from_step + 1, preview.steps, preview.micro_batches,
                              preview.batch, preview.training_examples, preview.predicted_bytes,
                              preview.calls)};
}

}  // namespace trainscope
