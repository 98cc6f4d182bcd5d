// What the processes that train one model must have in common, and how one of them fails.
#pragma once

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "kernels/api/communicator.h"

namespace trainscope {

// Throws kDistributed, naming the settings, on a rank that has other ones than rank 0.
void require_settings_of_rank_0(Communicator& ranks, const Json& mine);

// What went wrong was that the channel failed, where it has: whatever else `error` says.
void note_channel_failure(const Communicator& ranks, Error& error);

}  // namespace trainscope
