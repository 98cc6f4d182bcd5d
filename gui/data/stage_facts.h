// A stage of a compilation as the window lists it.
#pragma once

#include <string>

#include "engine/bundle/format.h"

namespace trainscope::gui {

// Its row, and under which label the rewrite logs know it.
struct StageFacts {
  std::string label = {};  // "07-fuse_gelu"
  StageRecord record = {};
};

}  // namespace trainscope::gui
