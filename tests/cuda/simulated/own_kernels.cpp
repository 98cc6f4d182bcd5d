// The kernels by the names that nvcc gave them, for a simulated CUDA runtime: the emulator runs
// them, or, where TRAINSCOPE_SIMULATED_PTX names a folder of their texts, the interpreter of PTX.
#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/emulator/emulator.h"
#include "tests/cuda/interpreter/interpreted_kernels.h"
#include "tests/cuda/interpreter/kernel_symbols.h"
#include "tests/cuda/simulated/kernel_runner.h"

namespace trainscope::simulated {
namespace {

using cuda::emulator::KernelCaller;

std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : symbol;
}

// The same of "void scale<float>(float*, int)" and of "void (float*, int)": the parameters' types,
// read backwards. In a call all pointers are alike, and the symbol of a template may name what they
// point to by its arguments.
std::string parameters_of(std::string_view function) {
  std::string reversed;
  std::string parameter;
  int depth = 0;
  const auto end_parameter = [&] {
    reversed += parameter.starts_with('*') ? "*" : parameter;
    parameter.clear();
  };
  for (std::size_t i = function.size(); i-- > 0;) {
    const char c = function[i];
    if (c == ')' || c == '>' || c == ']') ++depth;
    const bool outside = depth == 1;
    if (c == '(' || c == '<' || c == '[') --depth;
    if (depth == 0) break;
    if (outside && c == ')') continue;
    if (outside && c == ',') {
      end_parameter();
      reversed += c;
    } else if (!outside || c != ' ') {
      parameter += c;
    }
  }
  end_parameter();
  return reversed;
}

// The order of threads and blocks is the seed's, as that of streams is.
std::uint64_t seed() {
  static const char* const text = std::getenv("TRAINSCOPE_SIMULATED_SEED");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

// Null: the emulator runs the kernels.
ptx::InterpretedKernels* interpreted() {
  static const auto kernels = []() -> std::unique_ptr<ptx::InterpretedKernels> {
    const char* folder = std::getenv("TRAINSCOPE_SIMULATED_PTX");
    if (folder == nullptr) return nullptr;
    return std::make_unique<ptx::InterpretedKernels>(folder);
  }();
  return kernels.get();
}

class OwnKernel final : public RunnableKernel {
 public:
  OwnKernel(const void* function, const KernelCaller& caller)
      : function_(function), caller_(caller) {}

  std::span<const std::size_t> argument_bytes() const override { return caller_.bytes; }

  void run(const LaunchSizes& sizes, void* const* arguments,
           std::span<const MemoryRange> memory) const override {
    std::vector<cuda::emulator::KernelArgument> values;
    for (std::size_t i = 0; i < caller_.bytes.size(); ++i) {
      values.push_back({.value = arguments[i], .bytes = caller_.bytes[i]});
    }
    Call call{.kernel = this, .arguments = arguments};
    const auto& [bx, by, bz] = sizes.blocks;
    const auto& [tx, ty, tz] = sizes.threads;
    const cuda::emulator::GridOfThreads grid{
        .blocks = dim3(bx, by, bz),
        .threads = dim3(tx, ty, tz),
        .shared_bytes = sizes.shared_bytes,
        .context = &call,
        .thread =
            [](void* context) {
              const Call& now = *static_cast<const Call*>(context);
              now.kernel->caller_.call(now.kernel->function_, now.arguments);
            },
        .kernel = function_,
        .arguments = values};
    if (ptx::InterpretedKernels* kernels = interpreted()) {
      interpret(*kernels, grid, memory);
    } else {
      cuda::emulator::set_seed(seed());
      cuda::emulator::run_grid(grid);
    }
  }

 private:
  struct Call {
    const OwnKernel* kernel;
    void* const* arguments;
  };

  static void interpret(ptx::InterpretedKernels& kernels, const cuda::emulator::GridOfThreads& grid,
                        std::span<const MemoryRange> memory) {
    kernels.machine().memory().forbid_all();
    for (const MemoryRange& range : memory) {
      kernels.machine().memory().allow(range.begin, range.bytes);
    }
    kernels.run(grid);
    for (const std::string& race : kernels.machine().races()) throw ptx::Fault(race);
  }

  const void* function_;
  const KernelCaller& caller_;
};

class OwnKernels {
 public:
  OwnKernels() {
    for (const KernelCaller& caller : cuda::emulator::kernel_callers()) {
      callers_.emplace(parameters_of(readable(caller.parameters)), &caller);
    }
  }

  const RunnableKernel* find(std::string_view name) {
    const std::string common = ptx::common_name(name);
    if (const auto known = kernels_.find(common); known != kernels_.end()) return &known->second;
    const auto* symbol = symbols_.named(common);
    if (symbol == nullptr) return nullptr;
    const auto caller = callers_.find(parameters_of(readable(symbol->name)));
    if (caller == callers_.end()) return nullptr;
    return &kernels_.try_emplace(common, symbol->address, *caller->second).first->second;
  }

 private:
  ptx::ProgramSymbols symbols_;
  std::map<std::string, const KernelCaller*, std::less<>> callers_;  // by their parameters
  std::map<std::string, OwnKernel> kernels_;                         // by their common names
};

}  // namespace
}  // namespace trainscope::simulated

extern "C" __attribute__((visibility("default"))) const trainscope::simulated::RunnableKernel*
trainscope_simulated_kernel(const char* name) {
  static trainscope::simulated::OwnKernels kernels;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  return kernels.find(name);
}
