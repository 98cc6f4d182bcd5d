// Writes the pipeline as a Markdown table: a row per pass, in the order in which they first run.
#include "engine/check/passes_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/core/text.h"

namespace trainscope {
namespace {

// "1, 9": a pass may run twice.
std::string places(std::span<const Pass> pipeline, std::string_view name) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < pipeline.size(); ++i) {
    if (pipeline[i].name == name) numbers.push_back(fmt::format("{:02}", i + 1));
  }
  return join(numbers, ", ");
}

}  // namespace

std::string passes_markdown(std::span<const Pass> pipeline, std::span<const ProgramStage> program) {
  std::string text =
      "# Passes\n\nGenerated from engine/passes/passes.def: do not edit. A test compares this file "
      "with "
      "the "
      "pipeline; with `TRAINSCOPE_UPDATE_DOCS=1` it writes the file anew.\n\nThe stage after a "
      "pass "
      "has its number and name (`stages/03-simplify.onnx`; 00 is the imported graph; a pass that "
      "is "
      "disabled has no stage, and those after it move up). `--disable NAME` leaves a pass out, "
      "wherever it runs; `--stop-after NAME` ends the pipeline after its last run (the stages of "
      "the program, below, "
      "follow unless it names one of them); `trainscope "
      "inspect MODEL --stages` shows what each did, with `--explain` also what it nearly rewrote "
      "and why it did not. What became of a node or value, `inspect --fate NAME` and `diff` say: "
      "each stage keeps a log of its rewrites ([rewrites.md](rewrites.md)).\n\n| runs as | pass | "
      "what it does "
      "|\n|---|---|---|\n";
  for (const Pass& pass : pipeline) {
    const auto first = std::ranges::find(pipeline, pass.name, &Pass::name);
    if (&*first != &pass) continue;
    const std::string before =
        pass.formerly.empty()
            ? ""
            : fmt::format(" Formerly `{}`, which is accepted too.", pass.formerly);
    text += fmt::format("| {} | {} | {}{} |\n", places(pipeline, pass.name), pass.name, pass.doc,
                        before);
  }
  text +=
      "\nMore stages follow the passes when a program is made. They change when nodes run, or on "
      "what slices of the batch, not what is computed, and need the kernels' workspaces and the "
      "placed arena. `trainscope inspect RUN --stages` lists those of a run:\n\n| stage | when | "
      "what it does |\n|---|---|---|\n";
  for (const ProgramStage& stage : program) {
    text += fmt::format("| {0} | {1} | {2} ([{3}]({3})) |\n", stage.name, stage.when, stage.doc,
                        stage.page);
  }
  return text;
}

}  // namespace trainscope
