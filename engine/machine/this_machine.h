// The machine that this process runs on: its cores, its processor, its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainscope {

// Cores that this process may use: affinity and cgroup quota, at least 1.
int usable_cores();
int online_cores();
// The processor time that the cgroup allows, in cores (1.5); none without a limit.
std::optional<double> cgroup_cores();

// "Intel(R) Xeon(R) ..."; empty when the system does not say.
std::string processor_name();

struct MachineMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::optional<std::uint64_t> limit_bytes = {};  // of the cgroup
};
MachineMemory machine_memory();

}  // namespace trainscope
