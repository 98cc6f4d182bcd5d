// Facts about what this program runs with: vectors, disks, loaded libraries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cuda_driver.h"

namespace trainscope {

// The widest vectors that the CPU kernels use: "AVX2", "AVX-512".
std::string vector_isa();
// Instruction sets of interest that the processor has.
std::vector<std::string> instruction_sets();

// Free bytes on the file system of a folder; none when they cannot be told.
std::optional<std::uint64_t> free_disk_bytes(const std::filesystem::path& folder);

// File names of the shared libraries in this process that we link: "libdnnl.so.2.7".
std::vector<std::string> loaded_libraries();

struct Library {
  std::string name;
  std::string version;
};
// Those whose version decides what a run computes or reads: onnx and protobuf as they were built
// with, oneDNN as it is loaded.
std::vector<Library> library_versions();

// Why there is no CUDA device to run on, from the driver's problem and the back end's; empty where
// there is one.
std::string cuda_absence(const CudaDriver& driver, std::string_view why_no_device);

// Of this program: "0.1.0".
std::string_view program_version();

}  // namespace trainscope
