// Files that are cut short while their bytes are mapped.
#pragma once

namespace trainscope::gui {

// From now on bytes of a mapped file that is shorter than it was read as zeros, where the system
// would end the process with SIGBUS. What was read of the file is read again once RunData::refresh
// sees its new size.
void survive_truncated_files();

}  // namespace trainscope::gui
