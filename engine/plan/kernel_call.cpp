// What a library throws, turned into our errors.
#include "engine/plan/kernel_call.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <stdexcept>

#include "engine/core/text.h"

namespace trainscope {
namespace {

template <class F>
decltype(auto) with_our_errors(const Kernel& kernel, F call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::logic_error&) {  // a mistake of our own
    throw;
  } catch (const std::exception& error) {
    fail_unsupported("the kernel {} cannot compute this: {}", kernel.name, printable(error.what()));
  }
}

PrepareArgs with_context(const Kernel& kernel, const PrepareArgs& args) {
  PrepareArgs asked = args;
  asked.context = kernel.context;
  return asked;
}

}  // namespace

ErrorCode code_of(const DeviceStatus& status) {
  switch (status.code) {
    case DeviceStatus::Code::kOutOfMemory:
      return ErrorCode::kOutOfMemory;
    case DeviceStatus::Code::kBadInput:
      return ErrorCode::kBadInput;
    default:
      return ErrorCode::kRunFailed;
  }
}

Support supports(const Kernel& kernel, const PrepareArgs& args) {
  if (kernel.supports == nullptr) return {};
  return with_our_errors(kernel, [&] { return kernel.supports(with_context(kernel, args)); });
}

Prepared prepared_for(const Kernel& kernel, const PrepareArgs& args) {
  if (kernel.prepare == nullptr) return {};
  return with_our_errors(kernel, [&] { return kernel.prepare(with_context(kernel, args)); });
}

Cost cost_of(const Kernel& kernel, const PrepareArgs& args, const Cost& definition) {
  if (kernel.estimate == nullptr) return definition;
  const Estimate done = with_our_errors(kernel, [&] {
    return kernel.estimate(with_context(kernel, args), {.flops = definition.flops,
                                                        .bytes_read = definition.bytes_read,
                                                        .bytes_written = definition.bytes_written});
  });
  return {.flops = done.flops, .bytes_read = done.bytes_read, .bytes_written = done.bytes_written};
}

void check_done(const Kernel& kernel, const DeviceStatus& status) {
  if (status.done()) return;
  fail(code_of(status), "the kernel {} could not compute this: {}", kernel.name,
       printable(status.message));
}

DeviceStatus run_kernel(const Kernel& kernel, const RunArgs& args) {
  CallFailure failure;
  RunArgs heard = args;
  heard.call.failure = &failure;
  kernel.run(heard);
  return failure.status();
}

void launch(Device& device, Stream stream, const Kernel& kernel, const RunArgs& args) {
  check_done(kernel, device.launch(stream, kernel, args));
}

void add_node(Error& error, const Node& node) {
  error.at(fmt::format("node '{}' ({})", printable(node.name), node.op->name));
}

}  // namespace trainscope
