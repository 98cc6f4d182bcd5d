// The threads of the pool, asked for where that may fail.
#pragma once

#include <system_error>

namespace trainscope::cpu {

// Makes the calling thread's pool one of `threads` threads or more, itself among them; call it
// before the first loop on so many. Otherwise libgomp would start them in that loop, and end the
// process when the system gives none; here the system's reason is returned.
std::error_code start_threads(int threads);

}  // namespace trainscope::cpu
