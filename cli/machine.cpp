// Reads what Linux tells about cores, processor, memory and libraries.
#include "cli/machine.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <thread>

#include "engine/compile.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

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
    return fs::exists("/sys/fs/cgroup" + path + "/cgroup.controllers") ? "/sys/fs/cgroup" + path
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

std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets;
  const auto add = [&sets](bool has, const char* name) {
    if (has) sets.emplace_back(name);
  };
  add(__builtin_cpu_supports("avx2") != 0, "AVX2");
  add(__builtin_cpu_supports("fma") != 0, "FMA");
  add(__builtin_cpu_supports("avx512f") != 0, "AVX-512");
  add(__builtin_cpu_supports("avx512bf16") != 0, "AVX512_BF16");
  return sets;
}

std::string vector_isa() {
  return __builtin_cpu_supports("avx2") != 0 ? std::string(cpu_isa()) : "older than AVX2";
}

Memory machine_memory() {
  const std::vector<std::string> lines = lines_of("/proc/meminfo");
  Memory memory{.total_bytes = meminfo_bytes(lines, "MemTotal:"),
                .available_bytes = meminfo_bytes(lines, "MemAvailable:"),
                .limit_bytes = std::nullopt};
  const std::optional<std::int64_t> limit = parse_int(first_line(cgroup_folder() + "/memory.max"));
  if (limit && *limit > 0) memory.limit_bytes = static_cast<std::uint64_t>(*limit);
  return memory;
}

std::optional<std::uint64_t> free_disk_bytes(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) return std::nullopt;
  return space.available;
}

std::vector<std::string> loaded_libraries() {
  static constexpr std::string_view kWanted[] = {"libdnnl", "libonnx",  "libprotobuf",
                                                 "libfmt",  "libgomp",  "libstdc++",
                                                 "libc.so", "libxxhash"};
  std::set<std::string> found;
  for (const std::string& line : lines_of("/proc/self/maps")) {
    const std::size_t slash = line.rfind('/');
    if (slash == std::string::npos) continue;
    const std::string name = line.substr(slash + 1);
    const bool wanted = std::ranges::any_of(
        kWanted, [&name](std::string_view start) { return name.starts_with(start); });
    if (wanted) found.insert(printable(name));
  }
  return {found.begin(), found.end()};
}

std::vector<Library> library_versions() {
  // The first fields of oneDNN's dnnl_version_t, which its C interface keeps.
  struct DnnlVersion {
    int major, minor, patch;
  };
  std::vector<Library> libraries = {{.name = "onnx", .version = TRAINSCOPE_ONNX_VERSION},
                                    {.name = "protobuf", .version = TRAINSCOPE_PROTOBUF_VERSION}};
  const auto dnnl_version =
      reinterpret_cast<const DnnlVersion* (*)()>(dlsym(RTLD_DEFAULT, "dnnl_version"));
  if (dnnl_version != nullptr) {
    const DnnlVersion& version = *dnnl_version();
    libraries.push_back(
        {.name = "oneDNN",
         .version = fmt::format("{}.{}.{}", version.major, version.minor, version.patch)});
  }
  return libraries;
}

std::string cuda_absence(const CudaDriver& driver) {
  const std::string own = fmt::format("trainscope {} has no CUDA back end", program_version());
  return driver.problem.empty() ? own : fmt::format("{}; {}", own, driver.problem);
}

std::string_view program_version() { return TRAINSCOPE_VERSION; }

}  // namespace trainscope
