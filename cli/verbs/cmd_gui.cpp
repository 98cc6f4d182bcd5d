// gui: the window.
#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/flags/sizes.h"
#include "cli/source.h"
#include "cli/window_program.h"

namespace trainscope {
namespace {

constexpr Flag kGuiFlags[] = {
    {.name = "at",
     .value = "VIEW",
     .help = "What is shown: PANEL, or PANEL,KEY=VALUE,KIND:NAME as a bookmark has it: "
             "kernels,by=op,node:/h.0/attn/MatMul; docs/gui.md lists the keys"},
    {.name = "exec",
     .type = FlagType::kTexts,
     .value = "COMMAND",
     .help = "A command of the window by its id, once all is open: go.kernels; docs/gui.md "
             "lists them"},
    {.name = "scale",
     .type = FlagType::kNumber,
     .value = "S",
     .help = "How large everything is; default: as it was left",
     .minimum = 0.75,
     .maximum = 3.0},
    {.name = "theme",
     .type = FlagType::kChoice,
     .value = "dark|light|color-blind",
     .help = "Colours; default: as they were left"},
};

Outcome run_gui(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  std::vector<std::string> words = {"gui"};
  for (const std::string& path : invocation.arguments()) {
    if (path.empty()) continue;  // it was left out: the welcome screen
    load_plugins_of(path);
    words.push_back(path);
  }
  add_window_flags(words, settings, kGuiFlags);
  add_window_flags(words, settings, size_flags());
  become_window_program(words);
}

}  // namespace

Command gui_command() {
  return {
      .name = "gui",
      .summary = "Open the window: stages, graph, memory, time and kernels of runs.",
      .arguments = {{.name = "RUN|MODEL.onnx|FOLDER",
                     .help = "runs, models, or folders of runs; without one: a welcome screen",
                     .required = false,
                     .repeated = true}},
      .flags = join_flags({kGuiFlags, size_flags()}),
      .examples = {"trainscope gui runs/mlp-1", "trainscope gui model.onnx --batch 16 --seq 128"},
      .run = run_gui};
}

}  // namespace trainscope
