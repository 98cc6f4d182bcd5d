// Asks the processor, the file system and the dynamic linker.
#include "cli/machine.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "engine/compile.h"
#include "engine/core/text.h"

namespace trainscope {

namespace fs = std::filesystem;

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
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
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

std::string cuda_absence(const CudaDriver& driver, std::string_view why_no_device) {
  constexpr std::size_t kMostBytes = 1024;
  const std::string own = printable(why_no_device, kMostBytes);
  return own.empty() || driver.problem.empty() ? own : fmt::format("{}; {}", own, driver.problem);
}

std::string_view program_version() { return TRAINSCOPE_VERSION; }

}  // namespace trainscope
