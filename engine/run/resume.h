// --resume: where a run goes on, and whether it may.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/lock.h"
#include "engine/session.h"

namespace trainscope {

struct ResumePoint {
  std::filesystem::path run_folder = {};      // empty: a new numbered one
  std::optional<RunLock> lock = {};           // of run_folder, where it was there and is written
  bool continues_run = false;                 // run_folder holds a run already
  std::optional<Checkpoint> checkpoint = {};  // none: from the beginning
};

enum class RunAccess : std::uint8_t { kWrite, kLook };

// Of TrainRequest::resume and TrainRequest::run_folder. The run that goes on is locked before
// anything of it is read, so that the checkpoint is the newest until this process writes another;
// to look at it alone it is not. Throws kUsage and kBadInput.
ResumePoint find_resume_point(const std::string& resume, const std::filesystem::path& run_folder,
                              Logger& log, RunAccess access);

// Whether the run goes on itself, or another one begins with its checkpoint.
enum class Continuation : std::uint8_t { kSameRun, kNewRun };

// Throws kUsage listing every setting that must be the same and is not; a changed setting of
// "about" is a warning, and so is another schedule of a new run: its rates are those of the steps
// to come.
void check_settings(const Checkpoint& checkpoint, const CheckpointState& now,
                    Continuation continuation, Logger& log);

// "optimizer.weight_decay was 0.1, is 0.2" for each difference; `now` and `then` are objects.
std::vector<std::string> differences(const Json& then, const Json& now);

// Which key of settings only warns; and which does where a new run begins.
inline constexpr std::string_view kAboutSettings = "about";
inline constexpr std::string_view kScheduleSetting = "schedule";

}  // namespace trainscope
