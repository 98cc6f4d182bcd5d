// Finds the PTX of the kernels that the emulator is asked to run, and runs it.
#include "tests/cuda/interpreter/interpreted_kernels.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

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
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    add(std::make_unique<Module>(entry.path().filename().string(), read_file(entry.path())));
  }
}

void InterpretedKernels::add(std::unique_ptr<Module> module) {
  for (const std::string_view kernel : module->kernel_names()) {
    // What several sources make of a header is the same: any of them will do.
    places_[common_name(kernel)] = {.module = module.get(), .name = kernel};
  }
  std::unique_ptr<Module>& place = modules_[module->name()];
  place = std::move(module);
}

const std::string& InterpretedKernels::text_of(std::string_view module) const {
  const auto found = modules_.find(module);
  if (found == modules_.end()) throw NoText("no PTX of " + std::string(module));
  return found->second->text();
}

void InterpretedKernels::replace(std::string_view module, std::string text) {
  add(std::make_unique<Module>(std::string(module), std::move(text)));
}

void InterpretedKernels::take_over() {
  cuda::emulator::run_grids_by([this](const cuda::emulator::GridOfThreads& grid) { run(grid); });
}

void InterpretedKernels::done() { cuda::emulator::run_grids_by({}); }

void InterpretedKernels::run(const cuda::emulator::GridOfThreads& grid) {
  const std::string_view name = symbols_.name_of(grid.kernel);
  const auto found = places_.find(common_name(name));
  if (found == places_.end()) throw NoText("no PTX of " + std::string(name));
  const Place& place = found->second;
  const std::vector<std::byte> arguments =
      laid_out(place.module->kernel(place.name), grid.arguments);
  machine_.run(*place.module, place.name,
               {.blocks = size_of(grid.blocks),
                .threads = size_of(grid.threads),
                .shared_bytes = grid.shared_bytes,
                .arguments = arguments});
}

}  // namespace trainscope::ptx
