// Where the plan, stages, profile and trace of each session of a run are: of the newest one in the
// run's folder itself, of session K before it in sessions/K/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/core/folder.h"

namespace trainscope {

// sessions/K; none where there is none.
std::optional<Folder> session_folder(const Folder& run, std::int64_t session);

// Whether move_to_session can be done. Throws kBadInput for what is no file or folder where one
// belongs, and for what sessions/K has already.
void check_session_move(const Folder& run, std::int64_t session);

// Moves the plan, stages, profile and trace of session K, which has ended, to sessions/K. They move
// one by one: what a process that was killed has left is moved by the next one. Throws as
// check_session_move, and kIo.
void move_to_session(const Folder& run, std::int64_t session);

}  // namespace trainscope
