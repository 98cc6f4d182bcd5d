// What every verb asks of its call.
#include "cli/flags/invocation.h"

#include <algorithm>

#include "cli/flags/ranks_flag.h"
#include "cli/machine.h"
#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/machine/this_machine.h"

namespace trainscope {

LogLevel log_level(const Settings& settings) {
  if (is_other_rank(settings)) return LogLevel::kError;
  const bool quiet = settings.on("quiet");
  const bool verbose = settings.on("verbose");
  require(!quiet || !verbose, ErrorCode::kUsage, "--quiet and --verbose contradict each other");
  const std::string& word = settings.text("log-level");
  if (quiet || verbose) {
    require(!settings.given("log-level"), ErrorCode::kUsage, "--log-level {} and --{}: give one",
            word, quiet ? "quiet" : "verbose");
    return quiet ? LogLevel::kWarning : LogLevel::kDebug;
  }
  for (LogLevel level : {LogLevel::kDebug, LogLevel::kWarning, LogLevel::kError}) {
    if (word == name_of(level)) return level;
  }
  return LogLevel::kInfo;
}

LogOptions log_options(const Settings& settings) {
  const bool json = settings.text("log-format") == "json";
  return {.level = log_level(settings), .format = json ? LogFormat::kJson : LogFormat::kText};
}

Invocation::Invocation(const Command& command, Settings settings,
                       std::vector<std::string> arguments, std::vector<std::string> words)
    : command_(command),
      settings_(std::move(settings)),
      arguments_(std::move(arguments)),
      words_(std::move(words)),
      log_(log_options(settings_)) {
  arguments_.resize(std::max(arguments_.size(), command.arguments.size()));
}

Invocation Invocation::with_argument(std::string first) const {
  std::vector<std::string> arguments = arguments_;
  CHECK_INVARIANT(!arguments.empty());
  arguments.front() = std::move(first);
  return Invocation(command_, settings_, std::move(arguments), words_);
}

const std::string& Invocation::argument(std::size_t i) const {
  CHECK_INVARIANT(i < arguments_.size());
  return arguments_[i];
}

int Invocation::threads() const {
  const std::optional<std::int64_t> wanted = settings_.find_integer("threads");
  if (wanted) return static_cast<int>(*wanted);
  const std::optional<RankPlace> place = rank_place(settings_);
  return place ? std::max(1, usable_cores() / place->ranks) : usable_cores();
}

void check_device(const Settings& settings) {
  const std::string& device = settings.text("device");
  if (device == back_end_names().front()) return;
  require(names_device(device), ErrorCode::kUsage, "--device is '{}': expected {}",
          printable(device), fmt::join(back_end_names(), " or "));
  const std::string why = why_no_device(device);
  if (why.empty()) return;
  if (!device.starts_with("cuda")) {
    throw Error(ErrorCode::kNoDevice, fmt::format("there is no device '{}'", device)).at(why);
  }
  throw Error(ErrorCode::kNoDevice, "there is no CUDA device for trainscope")
      .at(cuda_absence(find_cuda_driver(), why))
      .hint("leave out --device: everything runs on the CPU");
}

}  // namespace trainscope
