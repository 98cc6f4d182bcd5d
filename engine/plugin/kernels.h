// The kernels of a plugin as rows of the processor's kernel table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/ir/op_def.h"
#include "include/trainscope/plugin.h"
#include "kernels/api/kernel.h"

namespace trainscope {

struct PluginKernel {
  std::string_view op;
  DType dtype = DType::kF32;
  Kernel kernel;
};

// `own` are the rows of the plugin's ops, `ops` those that there are besides. What the kernels
// refer to is kept until the process ends. Throws kBadInput for a kernel with a fault: an op that
// there is not, no function ..., and for an op without any kernel of f32 and f64.
std::vector<PluginKernel> plugin_kernels(const plugin::Plugin& plugin, std::span<const OpDef> own,
                                         const OpTable& ops);

}  // namespace trainscope
