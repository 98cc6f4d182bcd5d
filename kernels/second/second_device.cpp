// A second back end: host memory, no kernels.
#include <cstdlib>
#include <cstring>

#include "kernels/api/device.h"

namespace trainscope::second {
namespace {

constexpr MemorySpace kMemory{.name = "memory", .alignment_bytes = 64};
constexpr DeviceFacts kFacts{.name = "second", .device = kMemory, .host = kMemory};

class SecondDevice final : public Device {
 public:
  const DeviceFacts& facts() const override { return kFacts; }
  const KernelTable& kernels() const override { return kernels_; }
  DeviceStatus start_threads(int) override { return {}; }
  Fork fork() const override { return nullptr; }
  void watch_threads(const ThreadWatch*) override {}
  DeviceStatus allocate(Space, std::size_t bytes, std::byte** memory) override {
    *memory = static_cast<std::byte*>(std::calloc(bytes + 1, 1));
    return *memory == nullptr ? DeviceStatus{.code = DeviceStatus::Code::kOutOfMemory}
                              : DeviceStatus{};
  }
  void release(Space, std::byte* memory, std::size_t) override { std::free(memory); }
  DeviceStatus copy(Stream, std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
    return {};
  }
  DeviceStatus fill(Stream, std::byte* to, std::byte value, std::size_t bytes) override {
    std::memset(to, std::to_integer<int>(value), bytes);
    return {};
  }
  DeviceStatus launch(Stream, const Kernel& kernel, const RunArgs& args) override {
    kernel.run(args);
    return {};
  }
  Event record(Stream stream) override { return {.stream = stream}; }
  DeviceStatus wait(Stream, Event) override { return {}; }
  DeviceStatus synchronize(Event) override { return {}; }
  DeviceStatus begin_capture() override { return {.code = DeviceStatus::Code::kFailed}; }
  DeviceStatus end_capture(std::unique_ptr<CapturedWork>*) override { return begin_capture(); }
  DeviceStatus replay(const CapturedWork&) override { return begin_capture(); }
  DeviceStatus time(const Kernel& kernel, const RunArgs& args, double*) override {
    return launch(kComputeStream, kernel, args);
  }

 private:
  const KernelTable kernels_;
};

}  // namespace

DeviceHandle make_device() { return std::make_shared<SecondDevice>(); }

}  // namespace trainscope::second
