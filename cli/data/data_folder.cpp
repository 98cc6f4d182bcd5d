// The folder of data sets by the environment.
#include "cli/data/data_folder.h"

#include <cstdlib>

namespace trainscope {
namespace {

// The XDG base directory specification ignores relative paths.
std::filesystem::path absolute_path_in(const char* variable) {
  const char* value = std::getenv(variable);
  const std::filesystem::path path = value == nullptr ? "" : value;
  return path.is_absolute() ? path : std::filesystem::path();
}

}  // namespace

std::filesystem::path data_folder() {
  const char* own = std::getenv("TRAINSCOPE_DATA_DIR");
  if (own != nullptr && *own != '\0') return own;
  const std::filesystem::path cache = absolute_path_in("XDG_CACHE_HOME");
  if (!cache.empty()) return cache / "trainscope/data";
  return absolute_path_in("HOME") / ".cache/trainscope/data";
}

}  // namespace trainscope
