// Host memory that poses as a device's, for tests of everything that must not touch a device's
// memory by itself: whoever reads or writes through an address of it is ended by a signal, and
// nothing is done before somebody waits for it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/api/device.h"

namespace trainscope::test {

// When a stream does what it was given. A missing wait shows under one of the two.
enum class Timing : std::uint8_t {
  kTransfersLate,   // each stream as late as can be: when somebody waits for it
  kTransfersEarly,  // ... but the transfer stream at once
};

struct CopyingOptions {
  Timing timing = Timing::kTransfersLate;
  bool replays = false;  // as DeviceFacts has it
  bool threads = true;   // whether tiles run on threads of the host
  std::int64_t alignment_bytes = 64;
  std::int64_t skipped_wait = -1;    // the wait between streams, counted from 0, that is left out
  std::int64_t failing_replay = -1;  // the replay, counted from 0, that does nothing and fails
};

// Runs the CPU's kernels, on one thread at a time.
class CopyingDevice final : public Device {
 public:
  explicit CopyingDevice(const CopyingOptions& options = {});
  ~CopyingDevice() override;

  // From now on the wait of this number, counted anew from 0, is left out; -1: none.
  void skip_wait(std::int64_t number) {
    options_.skipped_wait = number;
    waits_ = 0;
  }
  // Waits between streams that were asked for so far.
  std::int64_t waits() const { return waits_; }
  // Copies that read or write the host's own memory and are not done yet.
  std::int64_t pending_host_copies() const { return pending_host_copies_; }
  std::int64_t launches() const { return launches_; }
  std::int64_t replayed() const { return replayed_; }

  const DeviceFacts& facts() const override { return facts_; }
  const KernelTable& kernels() const override { return cpu_->kernels(); }
  DeviceStatus start_threads(int threads) override { return cpu_->start_threads(threads); }
  // Tiles in turn: of one there is nothing done yet when the next one begins.
  Fork fork() const override;
  DeviceStatus allocate(Space space, std::size_t bytes, std::byte** memory) override;
  void release(Space space, std::byte* memory, std::size_t bytes) override;
  DeviceStatus memory(DeviceMemory* memory) override { return cpu_->memory(memory); }
  DeviceStatus copy(Stream stream, std::byte* to, const std::byte* from,
                    std::size_t bytes) override;
  DeviceStatus fill(Stream stream, std::byte* to, std::byte value, std::size_t bytes) override;
  DeviceStatus launch(Stream stream, const Kernel& kernel, const RunArgs& args) override;
  Event record(Stream stream) override;
  DeviceStatus wait(Stream stream, Event event) override;
  DeviceStatus synchronize(Event event) override;
  DeviceStatus begin_capture() override;
  DeviceStatus end_capture(std::unique_ptr<CapturedWork>* work) override;
  DeviceStatus replay(const CapturedWork& work) override;
  DeviceStatus time(const Kernel& kernel, const RunArgs& args, double* seconds) override;

 private:
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
  struct Wait {
    Event event;
  };
  using Work = std::variant<Copy, Fill, Launch, Wait>;
  struct Queue {
    std::deque<Work> work;
    std::int64_t given = 0;  // pieces of work in all
    std::int64_t done = 0;
  };
  struct Captured final : CapturedWork {
    std::vector<std::pair<Stream, Work>> list;
    std::int64_t first_ticket[2] = {0, 0};  // of the streams when it began
  };

  // Where an address of this device really is; other addresses are the host's own.
  std::byte* real(const void* address) const;
  bool is_ours(const void* address) const;
  void give(Stream stream, Work work);
  void do_until(Event event);
  void execute(const Work& work);
  void run(const Launch& launch);
  RunArgs translated(const RunArgs& args, std::vector<TensorView>& views) const;
  Queue& queue(Stream stream) { return queues_[static_cast<std::size_t>(stream)]; }

  CopyingOptions options_;
  DeviceHandle cpu_;
  DeviceFacts facts_;
  struct Block {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
  };
  std::map<std::byte*, Block> blocks_;  // by the address given out, which cannot be read
  Queue queues_[2];
  std::unique_ptr<Captured> capturing_;
  DeviceStatus failed_;  // the first one that nobody has heard of
  std::int64_t waits_ = 0;
  std::int64_t pending_host_copies_ = 0;
  std::int64_t launches_ = 0;
  std::int64_t replayed_ = 0;
};

// What tests of the engine run on: the CPU, or with TRAINSCOPE_TEST_DEVICE=copying or
// copying-early a copying device.
DeviceHandle test_device();

// The CPU with these kernels instead of its own.
DeviceHandle cpu_with(KernelTable kernels);

}  // namespace trainscope::test
