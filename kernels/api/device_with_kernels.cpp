// Passes every call on.
#include "kernels/api/device_with_kernels.h"

#include <cstddef>
#include <utility>

namespace trainscope {
namespace {

class DeviceWithKernels final : public Device {
 public:
  DeviceWithKernels(DeviceHandle base, KernelTable kernels, std::shared_ptr<const void> context)
      : base_(std::move(base)), context_(std::move(context)), kernels_(std::move(kernels)) {}

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
  DeviceStatus memory(DeviceMemory* memory) override { return base_->memory(memory); }
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
  const std::shared_ptr<const void> context_;
  const KernelTable kernels_;
};

}  // namespace

DeviceHandle device_with_kernels(DeviceHandle base, KernelTable kernels,
                                 std::shared_ptr<const void> context) {
  return std::make_shared<DeviceWithKernels>(std::move(base), std::move(kernels),
                                             std::move(context));
}

}  // namespace trainscope
