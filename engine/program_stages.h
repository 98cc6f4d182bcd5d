// Program stages: rows of engine/passes/passes.def behind the passes. Each makes another program of
// one: it changes when nodes run, or on what slices, not what is computed, and needs the kernels'
// workspaces and the placed arena for it.
#pragma once

#include <span>
#include <string_view>

#include "engine/compile.h"

namespace trainscope {

struct ProgramStage {
  std::string_view name;
  std::string_view when;  // in words, as `doc` is: for docs/passes.md
  std::string_view doc;
  std::string_view page;  // of docs, that says more
  bool (*applies)(const Compiled&, const CompileOptions&);
  // Puts one more stage behind the compilation's, and its program in place of the one there.
  void (*run)(const ProgramStage& row, Compiled&, const CompileOptions&);
};

// In order.
std::span<const ProgramStage> program_stages();

// Runs those that apply and are not left out, to the one that is the last to run.
void run_program_stages(Compiled& compiled, const CompileOptions& options);

}  // namespace trainscope
