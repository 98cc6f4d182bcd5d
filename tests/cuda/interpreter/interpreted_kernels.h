// The project's kernels through the PTX that nvcc makes of them: what the emulator would run, the
// interpreter runs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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

  struct Place {
    Module* module = nullptr;
    std::string_view name;  // as the text has it

    Kernel& kernel() const { return module->kernel(name); }
  };
  // Of every kernel that there is PTX of, by a name that g++ gives it too.
  const std::map<std::string, Place, std::less<>>& places() const { return places_; }
  // The common name of a function that the emulator would call.
  std::string common_name_of(const void* kernel) const;

  // From now on the emulator's grids run here, until done() is called; those that no PTX is there
  // for throw NoText.
  void take_over();
  static void done();
  // One grid.
  void run(const cuda::emulator::GridOfThreads& grid);

  // From now on grids of the kernel of this common name have so many blocks more along x, or fewer
  // down to one. How many grids became others since is counted.
  void change_grids(std::string_view kernel, int more_blocks);
  int changed_grids() const { return changed_grids_; }

 private:
  std::string changed_kernel_;
  int more_blocks_ = 0;
  int changed_grids_ = 0;
  Machine machine_;
  ProgramSymbols symbols_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::map<std::string, Place, std::less<>> places_;
};

}  // namespace trainscope::ptx
