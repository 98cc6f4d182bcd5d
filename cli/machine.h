// Facts about the machine: cores, processor, memory, loaded libraries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cuda_driver.h"

namespace trainscope {

// Cores that this process may use: affinity and cgroup quota, at least 1.
int usable_cores();
int online_cores();
// The processor time that the cgroup allows, in cores (1.5); none without a limit.
std::optional<double> cgroup_cores();

// "Intel(R) Xeon(R) ..."; empty when the system does not say.
std::string processor_name();
// The widest vectors that the CPU kernels use: "AVX2", "AVX-512".
std::string vector_isa();
// Instruction sets of interest that the processor has.
std::vector<std::string> instruction_sets();

struct Memory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::optional<std::uint64_t> limit_bytes;  // of the cgroup
};
Memory machine_memory();

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

// Why there is no CUDA device to run on.
std::string cuda_absence(const CudaDriver& driver);

// Of this program: "0.1.0".
std::string_view program_version();

}  // namespace trainscope
