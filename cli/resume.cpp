// Finding a checkpoint to go on from, and comparing its settings with today's.
#include "cli/resume.h"

#include <fmt/format.h>

#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

bool holds_run(const fs::path& folder) {
  return path_exists(folder / kRunManifestFile) && folder_exists(folder / kRunCheckpointsFolder);
}

ResumePoint resume_auto(const Settings& settings, Logger& log) {
  if (!settings.has("run-dir")) {
    throw Error(ErrorCode::kUsage, "--resume auto needs --run-dir: which run?")
        .hint("--run-dir RUN --resume auto, or --resume RUN");
  }
  ResumePoint point;
  point.run_folder = settings.text("run-dir");
  if (!holds_run(point.run_folder)) return point;
  point.continues_run = true;
  point.checkpoint = load_latest_checkpoint(point.run_folder / kRunCheckpointsFolder, log);
  return point;
}

// The run that a checkpoint's folder belongs to: RUN/checkpoints/step-N.
fs::path run_of_checkpoint(const fs::path& checkpoint) {
  const fs::path folder = fs::absolute(checkpoint).lexically_normal();
  const fs::path own = folder.filename().empty() ? folder.parent_path() : folder;
  const fs::path run = own.parent_path().parent_path();
  return holds_run(run) ? run : fs::path();
}

ResumePoint resume_from(const fs::path& from, Logger& log) {
  require(folder_exists(from), ErrorCode::kIo, "--resume: there is no folder '{}'",
          printable(from.string()));
  ResumePoint point;
  if (holds_run(from)) {
    point.run_folder = from;
    point.checkpoint = load_latest_checkpoint(from / kRunCheckpointsFolder, log);
    require(point.checkpoint.has_value(), ErrorCode::kBadInput,
            "--resume: the run '{}' has no checkpoint", printable(from.string()));
  } else {
    point.checkpoint = load_checkpoint(from);
    point.run_folder = run_of_checkpoint(from);
  }
  point.continues_run = !point.run_folder.empty();
  return point;
}

std::string shown(const Json* value) {
  return value == nullptr ? "not set" : printable(value->dump(), 200);
}

void compare(const std::string& name, const Json* then, const Json* now,
             std::vector<std::string>& list) {
  const bool objects = then != nullptr && now != nullptr && then->is_object() && now->is_object();
  if (!objects) {
    if (then != nullptr && now != nullptr && *then == *now) return;
    list.push_back(fmt::format("{} was {}, is {}", name, shown(then), shown(now)));
    return;
  }
  const std::string prefix = name.empty() ? "" : name + ".";
  for (const JsonMember& member : then->as_object()) {
    compare(prefix + printable(member.key), &member.value, now->find(member.key), list);
  }
  for (const JsonMember& member : now->as_object()) {
    if (then->contains(member.key)) continue;
    compare(prefix + printable(member.key), nullptr, &member.value, list);
  }
}

Json without_about(const Json& settings) {
  Json rest = Json::object();
  for (const JsonMember& member : settings.as_object()) {
    if (member.key != kAboutSettings) rest.set(member.key, member.value);
  }
  return rest;
}

Json about(const Json& settings) {
  const Json* found = settings.find(kAboutSettings);
  return found != nullptr && found->is_object() ? *found : Json::object();
}

}  // namespace

std::vector<std::string> differences(const Json& then, const Json& now) {
  std::vector<std::string> list;
  compare("", &then, &now, list);
  return list;
}

ResumePoint find_resume_point(const Settings& settings, Logger& log) {
  const std::string run_folder = settings.text_or_empty("run-dir");
  const std::string resume = settings.text_or_empty("resume");
  if (resume == "auto") return resume_auto(settings, log);
  ResumePoint point;
  point.run_folder = run_folder;
  if (resume.empty()) return point;
  point = resume_from(resume, log);
  std::error_code error;
  if (!run_folder.empty() && !fs::equivalent(run_folder, point.run_folder, error)) {
    point.run_folder = run_folder;  // another run that starts from this checkpoint
    point.continues_run = false;
  }
  return point;
}

void check_settings(const Checkpoint& checkpoint, const CheckpointState& now, Logger& log) {
  const Json& then = checkpoint.state.settings;
  std::vector<std::string> changed = differences(without_about(then), without_about(now.settings));
  if (checkpoint.state.seed != now.seed) {
    changed.push_back(fmt::format("seed was {}, is {}", checkpoint.state.seed, now.seed));
  }
  if (!changed.empty()) {
    Error error(ErrorCode::kUsage,
                fmt::format("the run cannot go on from step {} with other settings",
                            checkpoint.state.step));
    for (std::string& line : changed) error.at(std::move(line));
    throw error.hint("give the same settings, or start a new run without --resume");
  }
  for (const std::string& line : differences(about(then), about(now.settings))) {
    log.warning("the resumed run may differ in the last bits: {}", line);
  }
}

}  // namespace trainscope
