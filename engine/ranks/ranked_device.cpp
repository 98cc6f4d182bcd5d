// The kernel of AllReduce over a channel, for any device.
#include "engine/ranks/ranked_device.h"

#include <string_view>
#include <utility>

#include "kernels/api/device_with_kernels.h"

namespace trainscope {
namespace {

constexpr std::string_view kOp = "AllReduce";

// What a prepared call keeps.
struct Channel {
  std::shared_ptr<Communicator> ranks;
};

Prepared prepare_all_reduce(const PrepareArgs& args) {
  const auto& ranks = *static_cast<const std::shared_ptr<Communicator>*>(args.context);
  return {.state = std::make_shared<const Channel>(Channel{ranks})};
}

// Each rank adds up its part.
Estimate estimate_all_reduce(const PrepareArgs& args, const Estimate& /*definition*/) {
  const auto& ranks = *static_cast<const std::shared_ptr<Communicator>*>(args.context);
  const TensorType& type = args.inputs[0].type;
  const auto bytes = static_cast<std::int64_t>(type.bytes());
  return {.flops = type.elements() * (ranks->size() - 1) / ranks->size(),
          .bytes_read = bytes,
          .bytes_written = bytes};
}

void run_all_reduce(const RunArgs& run) {
  const TensorView& x = run.inputs[0];
  DeviceStatus status = static_cast<const Channel*>(run.state)->ranks->all_reduce(
      run.call, x.data, run.outputs[0].data, x.type.elements(), x.type.dtype);
  if (!status.done()) run.call.fail(status.code, std::move(status.message));
}

}  // namespace

DeviceHandle ranked_device(const DeviceHandle& base, std::shared_ptr<Communicator> ranks) {
  // The kernels' context is the handle, so that a prepared call can share the channel.
  const auto context = std::make_shared<const std::shared_ptr<Communicator>>(std::move(ranks));
  KernelTable kernels;
  for (const KernelTable::Row& row : base->kernels().rows()) {
    if (row.op != kOp) kernels.add(row.op, row.dtype, row.kernel);
  }
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    kernels.add(kOp, dtype,
                {.name = "all_reduce.ranks",
                 .prepare = prepare_all_reduce,
                 .run = run_all_reduce,
                 .estimate = estimate_all_reduce,
                 .context = context.get()});
  }
  return device_with_kernels(base, std::move(kernels), context);
}

}  // namespace trainscope
