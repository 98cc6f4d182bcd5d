// diff: two stages side by side.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/flags/training_flags.h"
#include "cli/print/inspect.h"
#include "cli/source.h"
#include "cli/stages.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr Flag kDiffFlags[] = {
    {.name = "all", .type = FlagType::kSwitch, .help = "Rows for what is the same in both, too"},
    {.name = "session",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Of runs that were resumed: the stages of their Nth session; default: the newest",
     .minimum = 1}};

// "runs/mlp-1:differentiate"; what a path holds after its last colon is the stage, unless the path
// is there as it stands.
struct StageWord {
  std::string path;
  std::string stage;  // empty: the last
};

StageWord stage_word(const std::string& word) {
  std::error_code ignored;
  const std::size_t colon = word.rfind(':');
  if (colon == std::string::npos || fs::exists(word, ignored)) return {.path = word, .stage = {}};
  return {.path = word.substr(0, colon), .stage = word.substr(colon + 1)};
}

bool is_same(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || fs::equivalent(a, b, ignored);
}

StageHistory history_of(const Source& source, const Invocation& invocation) {
  if (!source.is_run()) return stage_history(source, source.settle(invocation));
  const auto session = invocation.settings().find_integer("session");
  return StageHistory::of(source.run(), session.value_or(kNewestSession));
}

// One compilation: from its earlier stage to its later one.
Outcome diff_of_one(const StageHistory& stages, const StageWord& a, const StageWord& b,
                    DiffRows rows) {
  std::size_t from = stages.find(a.stage);
  std::size_t to = stages.find(b.stage);
  if (from > to) std::swap(from, to);
  const Graph graph_a = stages.graph(from);
  const Graph graph_b = stages.graph(to);
  Outcome outcome =
      describe_diff(diff_stages(stages.shared_history(), {.stage = from, .graph = graph_a},
                                {.stage = to, .graph = graph_b}),
                    rows);
  const std::string& from_label = stages.history()[from].label;
  const std::string& to_label = stages.history()[to].label;
  outcome.facts.set("from", from_label);
  outcome.facts.set("to", to_label);
  outcome.text =
      fmt::format("from {} to {}\n{}", printable(from_label), printable(to_label), outcome.text);
  return outcome;
}

Outcome run_diff(const Invocation& invocation) {
  const StageWord a = stage_word(invocation.argument(0));
  const StageWord b = stage_word(invocation.argument(1));
  const DiffRows rows = invocation.settings().on("all") ? DiffRows::kAll : DiffRows::kChanged;
  const Source source_a = Source::open(a.path);
  const Source source_b = Source::open(b.path);
  require(!invocation.settings().has("session") || source_a.is_run() || source_b.is_run(),
          ErrorCode::kUsage, "--session is of a run");
  const StageHistory stages_a = history_of(source_a, invocation);
  if (is_same(a.path, b.path)) return diff_of_one(stages_a, a, b, rows);
  const StageHistory stages_b = history_of(source_b, invocation);
  const std::size_t stage_a = stages_a.find(a.stage);
  const std::size_t stage_b = stages_b.find(b.stage);
  Outcome outcome =
      describe_diff(compare_graphs(stages_a.graph(stage_a), stages_b.graph(stage_b)), rows);
  const std::string label_a = a.path + ":" + stages_a.history()[stage_a].label;
  const std::string label_b = b.path + ":" + stages_b.history()[stage_b].label;
  outcome.facts.set("a", label_a);
  outcome.facts.set("b", label_b);
  outcome.text =
      fmt::format("A  {}\nB  {}\n{}", printable(label_a), printable(label_b), outcome.text);
  return outcome;
}

}  // namespace

Command diff_command() {
  return {.name = "diff",
          .summary = "Explain what each node and value of a stage is in another stage.",
          .arguments = {{.name = "A",
                         .help = "RUN:STAGE or MODEL.onnx:STAGE, the stage by name or number; "
                                 "no stage: the last; of a pass that runs twice its last run"},
                        {.name = "B",
                         .help = "the same; stages of one run or model are explained pass by "
                                 "pass, from the earlier to the later whichever is A; others "
                                 "are compared by names"}},
          .flags = join_flags({kDiffFlags, compile_flags()}),
          .examples = {"trainscope diff runs/mlp-1:loss runs/mlp-1:differentiate",
                       "trainscope diff model.onnx:imported model.onnx --loss cross_entropy"},
          .run = run_diff};
}

}  // namespace trainscope
