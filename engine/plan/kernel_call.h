// Calls of a kernel's functions, and what goes wrong inside them as an error that says where.
#pragma once

#include "engine/core/error.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "kernels/api/device.h"

namespace trainscope {

// Kernels throw nothing themselves: what comes out of one is of a library below, which cannot do
// the case. It becomes an error of a model that is not supported.
Support supports(const Kernel& kernel, const PrepareArgs& args);
Prepared prepared_for(const Kernel& kernel, const PrepareArgs& args);
void run_kernel(const Kernel& kernel, const RunArgs& args);
// What a call of the kernel does, of an op whose own cost is `definition`.
Cost cost_of(const Kernel& kernel, const PrepareArgs& args, const Cost& definition);
// On a device, whose failures become errors too.
void launch(Device& device, Stream stream, const Kernel& kernel, const RunArgs& args);

// Calls f, and adds the node to what fails there: "node 'conv1' (Conv)".
void add_node(Error& error, const Node& node);
template <class F>
decltype(auto) at_node(const Node& node, F f) {
  try {
    return f();
  } catch (Error& error) {
    add_node(error, node);
    throw;
  }
}

}  // namespace trainscope
