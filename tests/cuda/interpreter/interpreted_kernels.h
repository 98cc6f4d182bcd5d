// The project's kernels through the PTX that nvcc makes of them: what the emulator would run, the
// interpreter runs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/cuda/emulator/emulator.h"
#include "tests/cuda/interpreter/kernel_symbols.h"
#include "tests/cuda/interpreter/machine.h"

namespace trainscope::ptx {

// What no PTX is there for was asked to run.
struct NoText : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class InterpretedKernels {
 public:
  // Reads the files of the folder that end in .ptx.
  explicit InterpretedKernels(const std::filesystem::path& folder);

  Machine& machine() { return machine_; }
  // Of a module, "softmax.ptx", and another in its place.
  const std::string& text_of(std::string_view module) const;
  void replace(std::string_view module, std::string text);

  // From now on the emulator's grids run here, until done() is called; those that no PTX is there
  // for throw NoText.
  void take_over();
  static void done();
  // One grid.
  void run(const cuda::emulator::GridOfThreads& grid);

 private:
  struct Place {
    Module* module = nullptr;
    std::string_view name;
  };
  void add(std::unique_ptr<Module> module);

  Machine machine_;
  ProgramSymbols symbols_;
  std::map<std::string, std::unique_ptr<Module>, std::less<>> modules_;
  std::map<std::string, Place, std::less<>> places_;
};

}  // namespace trainscope::ptx
