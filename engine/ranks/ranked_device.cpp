// Everything is the base device's but the table of kernels, which has some more.
#include "engine/ranks/ranked_device.h"

#include <utility>

namespace trainscope {
namespace {

// What a prepared call keeps.
struct Channel {
  std::shared_ptr<Communicator> ranks;
};

Prepared prepare_all_reduce(const PrepareArgs& args) {
  const auto& ranks = *static_cast<const std::shared_ptr<Communicator>*>(args.context);
  return {.state = std::make_shared<const Channel>(Channel{ranks})};
}

// Each rank adds up its share.
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

class RankedDevice final : public Device {
 public:
  RankedDevice(DeviceHandle base, std::shared_ptr<Communicator> ranks)
      : base_(std::move(base)), ranks_(std::move(ranks)), kernels_(base_->kernels()) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      kernels_.add("AllReduce", dtype,
                   {.name = "all_reduce.ranks",
                    .prepare = prepare_all_reduce,
                    .run = run_all_reduce,
                    .estimate = estimate_all_reduce,
                    .context = &ranks_});
    }
  }

  const DeviceFacts& facts() const override { return base_->facts(); }
  const KernelTable& kernels() const override { return kernels_; }
  DeviceStatus start_threads(int threads) override { return base_->start_threads(threads); }
  Fork fork() const override { return base_->fork(); }
  DeviceStatus allocate(Space space, std::size_t bytes, std::byte** memory) override {
    return base_->allocate(space, bytes, memory);
  }
  void release(Space space, std::byte* memory, std::size_t bytes) override {
    base_->release(space, memory, bytes);
  }
  DeviceStatus copy(Stream stream, std::byte* to, const std::byte* from,
                    std::size_t bytes) override {
    return base_->copy(stream, to, from, bytes);
  }
  DeviceStatus fill(Stream stream, std::byte* to, std::byte value, std::size_t bytes) override {
    return base_->fill(stream, to, value, bytes);
  }
  DeviceStatus launch(Stream stream, const Kernel& kernel, const RunArgs& args) override {
    return base_->launch(stream, kernel, args);
  }
  Event record(Stream stream) override { return base_->record(stream); }
  DeviceStatus wait(Stream stream, Event event) override { return base_->wait(stream, event); }
  DeviceStatus synchronize(Event event) override { return base_->synchronize(event); }
  DeviceStatus begin_capture() override { return base_->begin_capture(); }
  DeviceStatus end_capture(std::unique_ptr<CapturedWork>* work) override {
    return base_->end_capture(work);
  }
  DeviceStatus replay(const CapturedWork& work) override { return base_->replay(work); }
  DeviceStatus time(const Kernel& kernel, const RunArgs& args, double* seconds) override {
    return base_->time(kernel, args, seconds);
  }

 private:
  const DeviceHandle base_;
  const std::shared_ptr<Communicator> ranks_;
  KernelTable kernels_;
};

}  // namespace

DeviceHandle ranked_device(DeviceHandle base, std::shared_ptr<Communicator> ranks) {
  return std::make_shared<RankedDevice>(std::move(base), std::move(ranks));
}

}  // namespace trainscope
