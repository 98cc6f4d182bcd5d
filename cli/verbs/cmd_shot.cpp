// shot: a picture of a panel, without a display.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/flags/sizes.h"
#include "cli/source.h"
#include "cli/window_program.h"
#include "engine/core/error.h"

namespace trainscope {
namespace {

constexpr Flag kShotFlags[] = {
    {.name = "panel",
     .value = "NAME",
     .help = "stages, graph, inspector, memory, budget, timeline, kernels, roofline, runs, "
             "overview; window: all of it; default: that of --at, else overview"},
    {.name = "at",
     .value = "VIEW",
     .help = "What is shown, as `gui --at` takes it: PANEL, or PANEL,KEY=VALUE,KIND:NAME"},
    {.name = "select",
     .value = "NAME",
     .help = "What is selected: KIND:NAME of kind node, value, kernel, call, buffer, stage, step, "
             "model; or a name alone"},
    {.name = "size", .value = "WxH", .fallback = "1280x720", .help = "Of the picture, in pixels"},
    {.name = "scale",
     .type = FlagType::kNumber,
     .value = "S",
     .fallback = "1",
     .help = "Pixels of a logical one",
     .minimum = 0.75,
     .maximum = 3.0},
    {.name = "theme",
     .type = FlagType::kChoice,
     .value = "dark|light|color-blind",
     .fallback = "dark",
     .help = "Colours"},
    {.name = "exec",
     .type = FlagType::kTexts,
     .value = "COMMAND",
     .help = "A command of the window before the picture is taken"},
    {.name = "out",
     .value = "FILE.png|FILE.svg",
     .help = "Where it goes; SVG has text as text, and no bitmap inside",
     .letter = 'o'},
};

Outcome run_shot(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  require(settings.has("out"), ErrorCode::kUsage, "shot needs -o FILE.png or -o FILE.svg");
  std::vector<std::string> words = {"shot"};
  for (const std::string& path : invocation.arguments()) {
    load_plugins_of(path);
    words.push_back(path);
  }
  add_window_flags(words, settings, kShotFlags);
  add_window_flags(words, settings, size_flags());
  run_window_program(words);
  const std::filesystem::path out = settings.text("out");
  return {
      .facts = Json::object({{"shot", out.string()}, {"bytes", std::filesystem::file_size(out)}}),
      .text = fmt::format("shot: {}\n", out.string())};
}

}  // namespace

Command shot_command() {
  return {
      .name = "shot",
      .summary = "Write a picture of a panel of the window, without a display.",
      .arguments = {{.name = "RUN|MODEL.onnx",
                     .help = "a run's folder, or a model; of several the last one is shown, the "
                             "others are open beside it",
                     .repeated = true}},
      .flags = join_flags({kShotFlags, size_flags()}),
      .examples = {"trainscope shot runs/mlp-1 --panel memory -o memory.png",
                   "trainscope shot runs/mlp-1 --panel kernels --theme light -o kernels.svg"},
      .run = run_shot};
}

}  // namespace trainscope
