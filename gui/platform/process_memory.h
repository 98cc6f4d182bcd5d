// How the process gets its memory from the system, and gives it back.
#pragma once

namespace trainscope::gui {

// What is freed goes back to the system, though other threads have allocated it: a window stays
// open for long, and what it read once to show something else shall not stay with it. To be called
// before there are threads; without effect where the C library is not glibc, whose mallopt() says
// more.
void keep_process_small();

}  // namespace trainscope::gui
