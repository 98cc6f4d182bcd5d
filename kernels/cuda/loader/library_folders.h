// Where the libraries of NVIDIA may lie, and the one of this project that needs them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope::cuda {

// What decides where to look. Separate from the process, for tests.
struct LibraryPlaces {
  std::string wanted;                         // TRAINSCOPE_CUDA_LIBRARIES: a folder that wins
  std::filesystem::path program;              // the folder of this program
  std::filesystem::path toolkit;              // /usr/local/cuda
  std::vector<std::filesystem::path> python;  // prefixes with lib/python3.*/site-packages below
};
LibraryPlaces places_of_this_process();

// Folders that exist, the first to look into first: the wanted one, the program's own and ../lib
// beside it, the toolkit's, those of NVIDIA's packages in each Python.
std::vector<std::filesystem::path> library_folders(const LibraryPlaces& places);

// The file of that name in the first folder that has it; empty: none has.
std::filesystem::path find_library(std::span<const std::filesystem::path> folders,
                                   const std::string& file);
// The name of the file in `folder` that is `begin` and the highest number; empty: there is none.
std::string highest_numbered(const std::filesystem::path& folder, std::string_view begin);

}  // namespace trainscope::cuda
