// Requests as words of the command line.
#include "gui/budget/train_on.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/train/checkpoint.h"
#include "engine/train/schedule.h"

namespace trainscope::gui {
namespace {

void add_pins(std::string_view word, const std::vector<std::string>& patterns, std::string& text) {
  for (const std::string& pattern : patterns) {
    const bool fits =
        !pattern.empty() && trim(pattern) == pattern && pattern.find('\n') == std::string::npos;
    require(fits, ErrorCode::kUsage, "the name '{}' cannot be pinned: a line does not hold it",
            printable(pattern));
    text += fmt::format("{} {}\n", word, pattern);
  }
}

// Of all sessions; none where the run's length is in epochs.
std::optional<std::int64_t> steps_of(const RunManifest& manifest) {
  const Json* steps = manifest.options.find("steps");
  if (steps == nullptr || !steps->is_int()) return std::nullopt;
  return steps->as_int();
}

// Whether that many steps are more than the run has left; of a run of epochs once it has ended.
bool is_longer(const RunReader& run, std::int64_t last_step) {
  const std::optional<std::int64_t> of_run = steps_of(run.manifest());
  const bool ended = run.manifest().sessions.back().status == RunStatus::kFinished;
  return of_run ? *of_run < last_step : ended;
}

// Whether the rate of a step depends on how many there are in all.
bool has_last_step(const RunManifest& manifest) {
  const ScheduleKind kind = parse_schedule_kind(manifest.options.get_or("schedule", "constant"));
  return falls_to_minimum(kind) || kind == ScheduleKind::kOneCycle;
}

std::filesystem::path folder_of(const RunReader& run) {
  std::filesystem::path folder = std::filesystem::absolute(run.folder().path()).lexically_normal();
  return folder.filename().empty() ? folder.parent_path() : folder;
}

}  // namespace

std::int64_t newest_checkpoint_step(const RunReader& run) {
  static constexpr std::string_view kPrefix = "step-";
  const std::optional<Folder> root = run.checkpoints_folder();
  std::int64_t newest = 0;
  if (!root) return newest;
  for (const std::string& name : root->list()) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view digits = std::string_view(name).substr(kPrefix.size());
    const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
    const std::optional<std::int64_t> step = parse_int(digits.substr(zeros));
    if (step && checkpoint_name(*step) == name) newest = std::max(newest, *step);
  }
  return newest;
}

std::vector<std::string> plan_flags(const PlanRequest& request, const std::string& pins) {
  std::vector<std::string> flags;
  if (request.level == PlanLevel::kAuto) {
    flags = {"--memory-budget", std::to_string(request.budget_bytes)};
  } else {
    flags = {"--recompute", std::string(name_of(request.level))};
  }
  const bool pinned =
      !request.recompute.empty() || (!request.keep.empty() && request.level != PlanLevel::kNone);
  if (pinned) flags.insert(flags.end(), {"--pins", pins});
  return flags;
}

std::string pins_text(const PlanRequest& request) {
  std::string text;
  add_pins("keep", request.keep, text);
  add_pins("recompute", request.recompute, text);
  return text;
}

std::string pins_file(const RunReader& run, const PlanRequest& request) {
  const std::string text = pins_text(request);
  if (text.empty()) return {};
  const std::filesystem::path folder = std::filesystem::absolute(run.folder().path());
  return (folder / fmt::format("pins-{}.txt", hash_hex(hash_text(text)))).string();
}

std::string write_pins(const RunReader& run, const PlanRequest& request) {
  const std::string file = pins_file(run, request);
  if (file.empty()) return file;
  const std::string name = std::filesystem::path(file).filename().string();
  write_file_atomic(run.folder() / name, pins_text(request));
  return file;
}

std::filesystem::path new_run_folder(const RunReader& run, std::int64_t steps) {
  const std::int64_t last_step = newest_checkpoint_step(run) + steps;
  if (!is_longer(run, last_step) || !has_last_step(run.manifest())) return {};
  const std::filesystem::path folder = folder_of(run);
  for (int number = 2;; ++number) {
    std::filesystem::path other = folder;
    other += fmt::format("-{}", number);
    if (!path_exists(other)) return other;
  }
}

std::vector<std::string> train_words(const RunReader& run, const PlanRequest& request,
                                     const std::string& pins, std::int64_t steps,
                                     const std::filesystem::path& new_run) {
  const std::int64_t from = newest_checkpoint_step(run);
  if (from == 0) {
    throw Error(ErrorCode::kUsage, "the run has no checkpoint to go on from")
        .hint("train with --save-every N, or wait for its end");
  }
  const std::filesystem::path folder = folder_of(run);
  std::vector<std::string> words = {"train", "--resume", folder.string()};
  if (!new_run.empty()) {
    words.back() = (folder / kRunCheckpointsFolder / checkpoint_name(from)).string();
    words.insert(words.end(), {"--run-dir", new_run.string()});
  }
  words.insert(words.end(), {"--session-steps", std::to_string(steps)});
  if (is_longer(run, from + steps)) {
    words.insert(words.end(), {"--steps", std::to_string(from + steps)});
  }
  const std::vector<std::string> flags = plan_flags(request, pins);
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

std::string command_line(std::span<const std::string> words) {
  std::string line = "trainscope";
  for (const std::string& word : words) line += " " + shell_word(word);
  return line;
}

}  // namespace trainscope::gui
