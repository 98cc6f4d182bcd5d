// mkdtemp, which makes a name that was not there.
#include "engine/core/system/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "trainscope-XXXXXX").string();
  require(::mkdtemp(name.data()) != nullptr, ErrorCode::kIo, "cannot make the folder {}: {}",
          printable(name), std::strerror(errno));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace trainscope
