// Folders in the order in which they are probed.
#include "kernels/cuda/loader/library_folders.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>

namespace trainscope::cuda {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : std::string(text);
}

// The prefix of a Python that the shell would start, through links: /usr/bin/python3 -> /usr.
void add_prefix_of_path(std::vector<fs::path>& prefixes) {
  const std::string path = variable("PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const fs::path python = fs::path(path.substr(begin, end - begin)) / "python3";
    std::error_code ignored;
    if (end > begin && fs::exists(python, ignored)) {
      prefixes.push_back(python.parent_path().parent_path());
      prefixes.push_back(fs::canonical(python, ignored).parent_path().parent_path());
      return;
    }
    begin = end + 1;
  }
}

// Subfolders of `folder` whose names begin so, newest name first.
std::vector<fs::path> subfolders(const fs::path& folder, std::string_view begin) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    if (at->path().filename().string().starts_with(begin)) found.push_back(at->path());
  }
  std::ranges::sort(found, std::greater<>());
  return found;
}

void add_packages(const fs::path& packages, std::vector<fs::path>& folders) {
  for (const char* part :
       {"nvidia/cu13/lib", "nvidia/cudnn/lib", "nvidia/nccl/lib", "nvidia/cuda_cupti/lib"}) {
    folders.push_back(packages / part);
  }
}

}  // namespace

LibraryPlaces places_of_this_process() {
  LibraryPlaces places{.wanted = variable("TRAINSCOPE_CUDA_LIBRARIES"),
                       .program = {},
                       .toolkit = "/usr/local/cuda",
                       .python = {}};
  std::error_code ignored;
  places.program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = variable(name); !prefix.empty()) {
      places.python.emplace_back(prefix);
    }
  }
  add_prefix_of_path(places.python);
  if (const std::string home = variable("HOME"); !home.empty()) {
    places.python.push_back(fs::path(home) / ".local");
  }
  for (const char* prefix : {"/usr/local", "/usr", "/opt/conda"}) {
    places.python.emplace_back(prefix);
  }
  return places;
}

std::vector<fs::path> library_folders(const LibraryPlaces& places) {
  std::vector<fs::path> folders;
  if (!places.wanted.empty()) folders.emplace_back(places.wanted);
  if (!places.program.empty()) {
    folders.push_back(places.program);
    folders.push_back(places.program.parent_path() / "lib");
  }
  for (const char* part : {"lib64", "lib"}) folders.push_back(places.toolkit / part);
  for (const fs::path& prefix : places.python) {
    for (const fs::path& version : subfolders(prefix / "lib", "python3")) {
      add_packages(version / "site-packages", folders);
      add_packages(version / "dist-packages", folders);
    }
  }
  std::vector<fs::path> present;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    const bool known = std::ranges::find(present, folder) != present.end();
    if (!known && fs::is_directory(folder, ignored)) present.push_back(folder);
  }
  return present;
}

fs::path find_library(std::span<const fs::path> folders, const std::string& file) {
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / file, ignored)) return folder / file;
  }
  return {};
}

std::string highest_numbered(const fs::path& folder, std::string_view begin) {
  std::string highest;
  int most = -1;
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(begin)) continue;
    int number = 0;
    const char* const last = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + begin.size(), last, number);
    if (error != std::errc() || rest != last || number <= most) continue;
    most = number;
    highest = name;
  }
  return highest;
}

}  // namespace trainscope::cuda
