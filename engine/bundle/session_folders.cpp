// Plans, stages, profiles, traces and failures of earlier sessions.
//
// A session's plan, stages, profile, trace and failure are in the run's folder until the next
// session begins, which moves them before the manifest names it. So whatever is there belongs to
// the manifest's last session, also after a kill between two moves; and a reader that finds nothing
// there looks in sessions/K.
#include "engine/bundle/session_folders.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/bundle/format.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/system/system_error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// In the order in which they move: what needs the plan never stands there alone.
constexpr std::array kSessionFiles = {kRunEventsFile, kRunReadablePlanFile, kRunPlanFile};

constexpr std::array kSessionFolders = {kRunNumericsFolder, kRunFailureFolder, kRunStagesFolder};

bool has_filled(const Folder& folder, std::string_view name) {
  if (!folder.has_folder(name)) return false;
  return !std::ranges::all_of(folder.enter(name).list(), is_temporary_name);
}

bool is_folder(std::string_view name) { return std::ranges::count(kSessionFolders, name) > 0; }

// What of a session is in the run's folder.
std::vector<std::string_view> left_in(const Folder& run) {
  std::vector<std::string_view> names;
  for (const std::string_view name : kSessionFiles) {
    if (run.has_file(name)) names.push_back(name);
  }
  for (const std::string_view name : kSessionFolders) {
    if (has_filled(run, name)) names.push_back(name);
  }
  return names;
}

void move(const Folder& from, std::string_view name, const Folder& to) {
  const FolderEntry old = from / name;
  const FolderEntry moved = to / name;
  if (::renameat(from.descriptor(), old.name.c_str(), to.descriptor(), moved.name.c_str()) != 0) {
    fail_system(errno, "move " + quoted(old.path()) + " to", moved.path());
  }
}

}  // namespace

std::optional<Folder> session_folder(const Folder& run, std::int64_t session) {
  if (!run.has_folder(kRunSessionsFolder)) return std::nullopt;
  const Folder sessions = run.enter(kRunSessionsFolder);
  const std::string name = std::to_string(session);
  if (!sessions.has_folder(name)) return std::nullopt;
  return sessions.enter(name);
}

void check_session_move(const Folder& run, std::int64_t session) {
  const std::optional<Folder> kept = session_folder(run, session);
  for (const std::string_view name : left_in(run)) {
    if (!kept || !(is_folder(name) ? has_filled(*kept, name) : kept->has_file(name))) continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("both '{}' and '{}' are there: session {} wrote one of them",
                            printable((run / name).path().string()),
                            printable((*kept / name).path().string()), session))
        .hint("move the one away that is not of this run");
  }
}

void move_to_session(const Folder& run, std::int64_t session) {
  check_session_move(run, session);
  const std::vector<std::string_view> names = left_in(run);
  if (names.empty()) return;
  const Folder sessions = run.make(kRunSessionsFolder);
  const Folder kept = sessions.make(std::to_string(session));
  sessions.sync();
  for (const std::string_view name : names) {
    if (is_folder(name)) remove_temporary_files(run.enter(name));
    move(run, name, kept);
  }
  kept.sync();
  run.sync();
}

}  // namespace trainscope
