// Where fetched data sets are kept.
#pragma once

#include <filesystem>

namespace trainscope {

// TRAINSCOPE_DATA_DIR, else trainscope/data in the user's cache: XDG_CACHE_HOME, else ~/.cache,
// else the working folder's .cache.
std::filesystem::path data_folder();

}  // namespace trainscope
