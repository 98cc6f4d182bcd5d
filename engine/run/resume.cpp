// Finding a checkpoint to go on from, and comparing its settings with today's.
#include "engine/run/resume.h"

#include <fmt/format.h>

#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

bool holds_run(const Folder& folder) {
  return folder.has_file(kRunManifestFile) && folder.has_folder(kRunCheckpointsFolder);
}

// The folder of a run that goes on, locked first.
Folder open_run(ResumePoint& point, RunAccess access) {
  if (access == RunAccess::kLook) return Folder::open(point.run_folder);
  point.lock = RunLock::take(point.run_folder);
  return point.lock->folder();
}

// The newest of a run. A best.json that cannot be read would end the run later, at a save.
std::optional<Checkpoint> newest_checkpoint(const Folder& run, Logger& log) {
  const Folder root = run.enter(kRunCheckpointsFolder);
  find_best_checkpoint(root);
  return load_latest_checkpoint(root, log);
}

ResumePoint resume_auto(const fs::path& run_folder, Logger& log, RunAccess access) {
  if (run_folder.empty()) {
    throw Error(ErrorCode::kUsage, "--resume auto needs --run-dir: which run?")
        .hint("--run-dir RUN --resume auto, or --resume RUN");
  }
  ResumePoint point{.run_folder = run_folder};
  if (!folder_exists(point.run_folder)) return point;
  const Folder run = open_run(point, access);
  if (!holds_run(run)) return point;
  point.continues_run = true;
  point.checkpoint = newest_checkpoint(run, log);
  return point;
}

// What --resume names: a run, or one of its checkpoints, RUN/checkpoints/step-N, or a checkpoint
// that belongs to no run.
struct ResumeFrom {
  fs::path run;            // empty: none
  std::string checkpoint;  // of that run; empty: the newest
};

ResumeFrom resume_from(const fs::path& path) {
  require(folder_exists(path), ErrorCode::kIo, "--resume: there is no folder '{}'",
          printable(path.string()));
  if (holds_run(Folder::open(path))) return {.run = path, .checkpoint = {}};
  const fs::path folder = fs::absolute(path).lexically_normal();
  const fs::path own = folder.filename().empty() ? folder.parent_path() : folder;
  const fs::path run = own.parent_path().parent_path();
  const bool inside = own.parent_path().filename() == kRunCheckpointsFolder && folder_exists(run) &&
                      holds_run(Folder::open(run));
  if (!inside) return {};
  return {.run = run, .checkpoint = own.filename().string()};
}

Checkpoint load_from(const Folder& run, const ResumeFrom& from, Logger& log) {
  if (!from.checkpoint.empty()) {
    return load_checkpoint(run.enter(kRunCheckpointsFolder), from.checkpoint);
  }
  std::optional<Checkpoint> newest = newest_checkpoint(run, log);
  require(newest.has_value(), ErrorCode::kBadInput, "--resume: the run '{}' has no checkpoint",
          printable(run.path().string()));
  return std::move(*newest);
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

// A pass's name, or a list of them, with the names of today.
Json with_present_names(const Json& value) {
  if (value.is_string()) return present_pass_name(value.as_string(), default_passes());
  if (!value.is_array()) return value;
  Json list = Json::array();
  for (const Json& item : value.as_array()) list.push_back(with_present_names(item));
  return list;
}

// What must be the same. An older run has recorded passes by the names that they had then.
Json binding_settings(const Json& settings, Continuation continuation) {
  Json rest = Json::object();
  for (const JsonMember& member : settings.as_object()) {
    const bool is_free = continuation == Continuation::kNewRun && member.key == kScheduleSetting;
    if (member.key == kAboutSettings || is_free) continue;
    const bool passes = member.key == "disable" || member.key == "stop_after";
    rest.set(member.key, passes ? with_present_names(member.value) : member.value);
  }
  return rest;
}

Json setting_of(const Json& settings, std::string_view key) {
  const Json* found = settings.find(key);
  return found != nullptr && found->is_object() ? *found : Json::object();
}

}  // namespace

std::vector<std::string> differences(const Json& then, const Json& now) {
  std::vector<std::string> list;
  compare("", &then, &now, list);
  return list;
}

ResumePoint find_resume_point(const std::string& resume, const fs::path& run_folder, Logger& log,
                              RunAccess access) {
  if (resume == "auto") return resume_auto(run_folder, log, access);
  ResumePoint point{.run_folder = run_folder};
  if (resume.empty()) return point;
  const ResumeFrom from = resume_from(resume);
  std::error_code error;
  point.continues_run = !from.run.empty() && (point.run_folder.empty() ||
                                              fs::equivalent(point.run_folder, from.run, error));
  if (point.continues_run) {
    point.run_folder = from.run;
    point.checkpoint = load_from(open_run(point, access), from, log);
  } else {  // another run that starts from this checkpoint
    point.checkpoint =
        from.run.empty() ? load_checkpoint(resume) : load_from(Folder::open(from.run), from, log);
  }
  return point;
}

void check_settings(const Checkpoint& checkpoint, const CheckpointState& now,
                    Continuation continuation, Logger& log) {
  const Json& then = checkpoint.state.settings;
  std::vector<std::string> changed = differences(binding_settings(then, continuation),
                                                 binding_settings(now.settings, continuation));
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
  const auto changes_of = [&](std::string_view key) {
    return differences(setting_of(then, key), setting_of(now.settings, key));
  };
  for (const std::string& line : changes_of(kAboutSettings)) {
    log.warning("the resumed run may differ in the last bits: {}", line);
  }
  if (continuation == Continuation::kSameRun) return;
  for (const std::string& line : changes_of(kScheduleSetting)) {
    log.warning("the new run has a schedule of its own: {}", line);
  }
}

}  // namespace trainscope
