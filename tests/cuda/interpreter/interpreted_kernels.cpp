// Finds the PTX of the kernels that the emulator is asked to run, and runs it.
#include "tests/cuda/interpreter/interpreted_kernels.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace trainscope::ptx {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Size3 size_of(const dim3& size) { return {.x = size.x, .y = size.y, .z = size.z}; }

// As the kernel's parameters lie, each as wide as its argument.
std::vector<std::byte> laid_out(const Kernel& kernel,
                                std::span<const cuda::emulator::KernelArgument> arguments) {
  if (arguments.size() != kernel.parameters.size()) {
    throw Fault(kernel.name + ": called with another number of arguments");
  }
  std::vector<std::byte> bytes(kernel.parameter_bytes, std::byte{0xFF});
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].bytes != kernel.parameters[i].bytes) {
      throw Fault(kernel.name + ": argument " + std::to_string(i) + " has another size");
    }
    std::memcpy(bytes.data() + kernel.parameters[i].offset, arguments[i].value, arguments[i].bytes);
  }
  return bytes;
}

}  // namespace

InterpretedKernels::InterpretedKernels(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".ptx") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const std::filesystem::path& path : paths) {
    modules_.push_back(std::make_unique<Module>(path.filename().string(), read_file(path)));
    Module& module = *modules_.back();
    for (const std::string_view kernel : module.kernel_names()) {
      // What several sources make of a header is the same: any of them will do.
      places_[common_name(kernel)] = {.module = &module, .name = kernel};
    }
  }
}

std::string InterpretedKernels::common_name_of(const void* kernel) const {
  return common_name(symbols_.name_of(kernel));
}

void InterpretedKernels::take_over() {
  cuda::emulator::run_grids_by([this](const cuda::emulator::GridOfThreads& grid) { run(grid); });
}

void InterpretedKernels::change_grids(std::string_view kernel, int more_blocks) {
  changed_kernel_ = kernel;
  more_blocks_ = more_blocks;
  changed_grids_ = 0;
}

void InterpretedKernels::done() { cuda::emulator::run_grids_by({}); }

void InterpretedKernels::run(const cuda::emulator::GridOfThreads& grid) {
  const std::string name = common_name_of(grid.kernel);
  const auto found = places_.find(name);
  if (found == places_.end()) throw NoText("no PTX of " + name);
  const Place& place = found->second;
  const std::vector<std::byte> arguments = laid_out(place.kernel(), grid.arguments);
  Size3 blocks = size_of(grid.blocks);
  if (name == changed_kernel_) {
    blocks.x =
        static_cast<unsigned>(std::max(std::int64_t{1}, std::int64_t{blocks.x} + more_blocks_));
    if (blocks.x != grid.blocks.x) ++changed_grids_;
  }
  machine_.run(*place.module, place.name,
               {.blocks = blocks,
                .threads = size_of(grid.threads),
                .shared_bytes = grid.shared_bytes,
                .arguments = arguments});
}

}  // namespace trainscope::ptx
