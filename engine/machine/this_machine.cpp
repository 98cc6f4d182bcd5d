// Reads what Linux tells of cores, processor and memory, and of the limits of this process's
// cgroup.
#include "engine/machine/this_machine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/core/text.h"

namespace trainscope {
namespace {

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string first_line(const std::string& path) {
  const std::vector<std::string> lines = lines_of(path.c_str());
  return lines.empty() ? std::string() : lines.front();
}

// The folder of this process's cgroup (version 2): the path after "0::" in /proc/self/cgroup.
std::string cgroup_folder() {
  for (const std::string& line : lines_of("/proc/self/cgroup")) {
    if (!line.starts_with("0::")) continue;
    const std::string path = line.substr(3);
    // In a container the own group is often mounted as the root.
    return std::filesystem::exists("/sys/fs/cgroup" + path + "/cgroup.controllers")
               ? "/sys/fs/cgroup" + path
               : "/sys/fs/cgroup";
  }
  return "/sys/fs/cgroup";
}

// "MemTotal:       65536 kB" -> bytes.
std::uint64_t meminfo_bytes(const std::vector<std::string>& lines, std::string_view key) {
  for (const std::string& line : lines) {
    if (!line.starts_with(key)) continue;
    const std::string_view rest = trim(std::string_view(line).substr(key.size()));
    const std::optional<std::int64_t> kib = parse_int(rest.substr(0, rest.find(' ')));
    return kib ? static_cast<std::uint64_t>(*kib) << 10 : 0;
  }
  return 0;
}

}  // namespace

int online_cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

int usable_cores() {
  int cores = online_cores();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) cores = CPU_COUNT(&allowed);
  const std::optional<double> limit = cgroup_cores();
  if (limit) cores = std::min(cores, static_cast<int>(std::ceil(*limit)));
  return std::max(1, cores);
}

// cpu.max holds "QUOTA PERIOD" in microseconds, or "max PERIOD".
std::optional<double> cgroup_cores() {
  const std::string line = first_line(cgroup_folder() + "/cpu.max");
  const std::vector<std::string_view> parts = split(line, ' ');
  if (parts.size() != 2) return std::nullopt;
  const std::optional<double> quota = parse_number(parts[0]);
  const std::optional<double> period = parse_number(parts[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::string processor_name() {
  for (const std::string& line : lines_of("/proc/cpuinfo")) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos)
      return printable(trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

MachineMemory machine_memory() {
  const std::vector<std::string> lines = lines_of("/proc/meminfo");
  MachineMemory memory{.total_bytes = meminfo_bytes(lines, "MemTotal:"),
                       .available_bytes = meminfo_bytes(lines, "MemAvailable:"),
                       .limit_bytes = std::nullopt};
  const std::optional<std::int64_t> limit = parse_int(first_line(cgroup_folder() + "/memory.max"));
  if (limit && *limit > 0) memory.limit_bytes = static_cast<std::uint64_t>(*limit);
  return memory;
}

}  // namespace trainscope
