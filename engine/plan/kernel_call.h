// Calls of a kernel's functions, and what goes wrong inside them as an error that says where.
#pragma once

#include "engine/core/error.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "kernels/api/device.h"

namespace trainscope {

// What comes out of the first two and the last is of a library below, which cannot do the case: an
// error of a model that is not supported. A kernel that runs throws nothing but std::bad_alloc;
// what it reports through its call context becomes kBadInput, kOutOfMemory or kRunFailed.
Support supports(const Kernel& kernel, const PrepareArgs& args);
Prepared prepared_for(const Kernel& kernel, const PrepareArgs& args);
// What a call of the kernel does, of an op whose own cost is `definition`.
Cost cost_of(const Kernel& kernel, const PrepareArgs& args, const Cost& definition);
// The code of an error for work that was not done.
ErrorCode code_of(const DeviceStatus& status);
// Throws what the kernel reported, if it did.
void check_done(const Kernel& kernel, const DeviceStatus& status);
// At once, on the calling thread.
DeviceStatus run_kernel(const Kernel& kernel, const RunArgs& args);
// On a device; throws where the call, or earlier work, has failed.
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
