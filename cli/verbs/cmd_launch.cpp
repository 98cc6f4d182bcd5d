// launch: several processes of this program train one model together.
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/launch/rank_processes.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr Flag kLaunchFlags[] = {{.name = "ranks",
                                  .type = FlagType::kInteger,
                                  .value = "N",
                                  .help = "How many processes train",
                                  .letter = 'n',
                                  .minimum = 1,
                                  .maximum = kMostRanks,
                                  .also = "nproc-per-node|np"}};

// What the others follow from is told once; a rank with an error of its own has told it.
Outcome outcome_of(const RankEnd& end, const std::string& channel_failure) {
  if (end.signal != 0) {
    fail(ErrorCode::kDistributed, "rank {} was ended by signal {} ({})", end.rank, end.signal,
         strsignal(end.signal));
  }
  if (end.code == static_cast<int>(ErrorCode::kDistributed)) {
    fail(ErrorCode::kDistributed, "{}",
         channel_failure.empty() ? fmt::format("rank {} has lost the others", end.rank)
                                 : printable(channel_failure, 400));
  }
  return {.exit_code = end.code, .told = true};
}

// Flags of every verb that this line gives are for the ranks: in their environment, over which
// their own words win; those that may be repeated, before their verb. --set is of this verb's
// flags.
RankLine line_of_ranks(const Invocation& invocation) {
  RankLine line;
  for (const Flag& flag : global_flags()) {
    const Settings::Setting& setting = invocation.settings().all().find(flag.name)->second;
    if (setting.origin != Origin::kFlag || flag.name == "set") continue;
    for (const std::string& text : setting.texts) {
      if (flag.type == FlagType::kTexts) {
        line.words.push_back(fmt::format("--{}={}", flag.name, text));
      } else {
        line.variables.push_back(fmt::format("{}={}", environment_name(flag.name), text));
      }
    }
  }
  const std::vector<std::string>& words = invocation.arguments();
  line.words.insert(line.words.end(), words.begin(), words.end());
  return line;
}

Outcome run_launch(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  require(settings.has("ranks"), ErrorCode::kUsage, "launch needs -n N: how many processes train");
  const std::string& verb = invocation.argument(0);
  if (verb != "train" && verb != "profile") {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("launch starts ranks of train or profile, not of '{}'", printable(verb)))
        .hint("`trainscope launch -n 2 -- train MODEL.onnx ...`");
  }
  RankProcesses ranks(static_cast<int>(settings.integer("ranks")), line_of_ranks(invocation));
  const RankEnd end = ranks.wait();
  return outcome_of(end, ranks.channel_failure());
}

}  // namespace

Command launch_command() {
  return {.name = "launch",
          .summary = "Train one model with several processes, each on batches of its own.",
          .arguments = {{.name = "train",
                         .help = "the call of train (or profile) that each process makes",
                         .repeated = true,
                         .behind_dashes = true}},
          .flags = join_flags({kLaunchFlags}),
          .examples = {"trainscope launch -n 2 -- train model.onnx --data synthetic --steps 20",
                       "trainscope launch -n 4 -- train gpt.onnx --data text:book.txt --seq 64 "
                       "--steps 200 --threads 2 --run-dir runs/book"},
          .run = run_launch};
}

}  // namespace trainscope
