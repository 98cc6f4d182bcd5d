// Loads the CUDA back end, which is a library of its own: no CUDA symbol is anywhere else.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/api/back_end.h"

namespace trainscope::cuda {

// What was found and loaded, for people: "libcudart.so.13 /usr/local/cuda/lib64/libcudart.so.13".
struct LoadedLibrary {
  std::string file;
  std::string path;  // where it was found; empty: left to the system's loader
};

// The back end's library and those of NVIDIA that it needs, opened before it by their paths, so
// that it finds them without a search path. Nothing is ever closed.
struct LoadedBackEnd {
  const BackEndLibrary* library = nullptr;  // null: why_not says why
  std::string why_not;
  std::vector<LoadedLibrary> files;
};
LoadedBackEnd load(const std::vector<std::filesystem::path>& folders);
// From the folders of this process, once.
const LoadedBackEnd& loaded_back_end();

// The GPU of this number as a device, or why there is none.
MadeDevice make_device(int number);
// NCCL between a device of make_device() and those of the other ranks, one a rank.
MadeChannel make_channel(Device& device, std::shared_ptr<Communicator> hosts);
// CUPTI for a device of make_device(), or why its work cannot be recorded.
MadeTracer make_tracer(Device& device);
// What a device of make_device() is and runs with, a line each.
std::string describe(const Device& device);

}  // namespace trainscope::cuda
