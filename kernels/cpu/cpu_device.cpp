// Memory from the operating system, copies by memcpy, kernels by calls.
#include "kernels/cpu/cpu_device.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/support/pages.h"
#include "kernels/cpu/support/parallel_chunks.h"
#include "kernels/cpu/support/threads.h"

namespace trainscope::cpu {
namespace {

constexpr int kTimedRounds = 5;
constexpr MemorySpace kMemory{.name = "memory", .alignment_bytes = 64};
constexpr DeviceFacts kFacts{.name = "cpu", .device = kMemory, .host = kMemory, .replays = false};

struct Copy {
  std::byte* to;
  const std::byte* from;
  std::size_t bytes;
};
struct Fill {
  std::byte* to;
  std::byte value;
  std::size_t bytes;
};
struct Launch {
  const Kernel* kernel;
  RunArgs args;
};
using Work = std::variant<Copy, Fill, Launch>;

struct WorkList final : CapturedWork {
  std::vector<Work> list;
};

DeviceStatus run_kernel(const Kernel& kernel, const RunArgs& args) {
  CallFailure failure;
  RunArgs heard = args;
  heard.call.failure = &failure;
  const WatchScope watched(args.call.watch);
  kernel.run(heard);
  return failure.status();
}

DeviceStatus do_work(const Copy& copy) {
  if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
  return {};
}
DeviceStatus do_work(const Fill& fill) {
  std::fill_n(fill.to, fill.bytes, fill.value);
  return {};
}
DeviceStatus do_work(const Launch& launch) { return run_kernel(*launch.kernel, launch.args); }
DeviceStatus do_work(const Work& work) {
  return std::visit([](const auto& one) { return do_work(one); }, work);
}

void fork_tiles(int tiles, const ThreadWatch* watch, void* context,
                void (*body)(void* context, int tile)) {
  const WatchScope watched(watch);
  parallel_chunks(tiles, tiles, [&](std::int64_t tile) { body(context, static_cast<int>(tile)); });
}

// Of the one device that there is.
KernelTable& device_kernels() {
  static KernelTable table = cpu_kernels();
  return table;
}

class CpuDevice final : public Device {
 public:
  const DeviceFacts& facts() const override { return kFacts; }
  const KernelTable& kernels() const override { return device_kernels(); }

  DeviceStatus start_threads(int threads) override {
    const std::error_code failure = cpu::start_threads(threads);
    if (!failure) return {};
    return {.code = DeviceStatus::Code::kOutOfMemory, .message = failure.message()};
  }
  Fork fork() const override { return fork_tiles; }

  // Pages cost memory only once touched; huge pages where there are any.
  DeviceStatus allocate(Space, std::size_t bytes, std::byte** memory) override {
    *memory = map_pages(bytes);
    if (*memory == nullptr) {
      return {.code = DeviceStatus::Code::kOutOfMemory,
              .message = std::error_code(errno, std::generic_category()).message()};
    }
    return {};
  }
  void release(Space, std::byte* memory, std::size_t bytes) override { unmap_pages(memory, bytes); }
  DeviceStatus memory(DeviceMemory* memory) override {
    *memory = {};
    return {};
  }

  DeviceStatus copy(Stream, std::byte* to, const std::byte* from, std::size_t bytes) override {
    return add(Copy{to, from, bytes});
  }
  DeviceStatus fill(Stream, std::byte* to, std::byte value, std::size_t bytes) override {
    return add(Fill{to, value, bytes});
  }
  DeviceStatus launch(Stream, const Kernel& kernel, const RunArgs& args) override {
    if (capturing_ == nullptr) [[likely]]
      return run_kernel(kernel, args);
    return add(Launch{&kernel, args});
  }

  Event record(Stream stream) override { return {.stream = stream}; }
  DeviceStatus wait(Stream, Event) override { return {}; }
  DeviceStatus synchronize(Event) override { return {}; }

  DeviceStatus begin_capture() override {
    capturing_ = std::make_unique<WorkList>();
    return {};
  }
  DeviceStatus end_capture(std::unique_ptr<CapturedWork>* work) override {
    *work = std::move(capturing_);
    return {};
  }
  DeviceStatus replay(const CapturedWork& work) override {
    for (const Work& one : static_cast<const WorkList&>(work).list) {
      if (DeviceStatus status = do_work(one); !status.done()) return status;
    }
    return {};
  }

  DeviceStatus time(const Kernel& kernel, const RunArgs& args, double* seconds) override {
    using Clock = std::chrono::steady_clock;
    for (int round = 0; round < kTimedRounds; ++round) {
      const Clock::time_point start = Clock::now();
      DeviceStatus status = run_kernel(kernel, args);
      const double took = std::chrono::duration<double>(Clock::now() - start).count();
      if (!status.done()) return status;
      *seconds = round == 0 ? took : std::min(*seconds, took);
    }
    return {};
  }

 private:
  DeviceStatus add(const Work& work) {
    if (capturing_ == nullptr) return do_work(work);
    capturing_->list.push_back(work);
    return {};
  }

  std::unique_ptr<WorkList> capturing_;
};

}  // namespace

MadeDevice make_device(int number) {
  if (number == 0) return {.device = std::make_shared<CpuDevice>()};
  return {.device = nullptr, .why_not = "this machine's processors are one device, 'cpu'"};
}

MadeChannel make_channel(Device& /*device*/, std::shared_ptr<Communicator> hosts) {
  return {.channel = std::move(hosts)};
}

void add_kernel(std::string_view op, DType dtype, const Kernel& kernel) {
  device_kernels().add(op, dtype, kernel);
}

}  // namespace trainscope::cpu
