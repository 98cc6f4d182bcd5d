// What a device is: memory, streams of work in order, events between them, and kernels.
//
// The engine reaches a device's memory through this interface alone. An address that allocate()
// gave belongs to the device: kernels and copies take it, the host never reads or writes through
// it, even where the device is the host's own processor.
//
// Scalars of a step (its number, the learning rate) are inputs like others: they are copied into
// the device's memory before the step, and kernels read them there. So a captured step can be
// replayed with other scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/api/kernel.h"

namespace trainscope {

// Raised when this header or device_tracer.h changes: the engine takes no back end that was built
// for another.
inline constexpr int kDeviceVersion = 8;

// Whose memory: kernels compute in the device's; offloaded values wait in the host's, which may be
// of a kind that the device copies from quickly.
enum class Space : std::uint8_t { kDevice, kHost };

struct MemorySpace {
  std::string_view name;             // "memory", "pinned host memory"
  std::int64_t alignment_bytes = 0;  // a power of two, of every offset in an arena
};

// What is known of a device before any work. Views live as long as the device.
struct DeviceFacts {
  int version = kDeviceVersion;  // that the back end was built for
  std::string_view name;         // "cpu", "cuda:0"
  MemorySpace device;
  MemorySpace host;
  // Whether a list of calls costs less when it is captured once and replayed.
  bool replays = false;
};

// Bytes of the device's own memory, by who has them at the moment. All zero: its memory is the
// host's.
struct DeviceMemory {
  std::int64_t total = 0;
  std::int64_t allocated = 0;  // by allocate(), with what aligns it
  // What was in use when the device was first asked for: by its driver for this process, and by
  // other processes.
  std::int64_t driver = 0;
  // What has come to be in use since, but for `allocated`: by libraries, for code and for lists of
  // work. Negative where another process has given memory back.
  std::int64_t libraries = 0;
};

// A list of work that was recorded instead of done. Ends with the last handle.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
};

// Work on a stream is done in its order; work on two streams in any, but for waits. Every function
// that gives a DeviceStatus may also report what earlier work of any stream failed with.
// Functions of one device are called by one thread at a time, but for launch() by the tiles of a
// fork. None allocates in a steady step.
class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const DeviceFacts& facts() const = 0;
  const MemorySpace& space(Space space) const {
    return space == Space::kDevice ? facts().device : facts().host;
  }
  virtual const KernelTable& kernels() const = 0;

  // Makes sure that calls which are divided among so many threads of the host find them.
  virtual DeviceStatus start_threads(int threads) = 0;
  // Runs the tiles of a section, each on a thread of its own; null: the device has no such threads.
  virtual Fork fork() const = 0;

  // Zeroed memory of at least a page's alignment; kOutOfMemory where there is none.
  virtual DeviceStatus allocate(Space space, std::size_t bytes, std::byte** memory) = 0;
  virtual void release(Space space, std::byte* memory, std::size_t bytes) = 0;
  virtual DeviceStatus memory(DeviceMemory* memory) = 0;

  // Queues the copy of `bytes` bytes. At most one of the two addresses may be the program's own
  // memory, which must stay as it is until the copy is done.
  virtual DeviceStatus copy(Stream stream, std::byte* to, const std::byte* from,
                            std::size_t bytes) = 0;
  // Queues the writing of `bytes` equal bytes.
  virtual DeviceStatus fill(Stream stream, std::byte* to, std::byte value, std::size_t bytes) = 0;
  // Queues a kernel. What `args` refers to must stay until it is done, and, when it is captured,
  // until the last replay is; but for the watch, which is told only of what is done at once: a
  // device whose kernels do not run on threads of the host has nothing to tell it. What the kernel
  // reports is the status of this call, or of a later one.
  virtual DeviceStatus launch(Stream stream, const Kernel& kernel, const RunArgs& args) = 0;

  // The moment when all that the stream was given so far is done.
  virtual Event record(Stream stream) = 0;
  // What the stream is given later starts after the event.
  virtual DeviceStatus wait(Stream stream, Event event) = 0;
  // The host waits for the event.
  virtual DeviceStatus synchronize(Event event) = 0;

  // What the streams are given between the two is recorded, not done.
  virtual DeviceStatus begin_capture() = 0;
  virtual DeviceStatus end_capture(std::unique_ptr<CapturedWork>* work) = 0;
  // Queues it again on the streams that it was recorded for.
  virtual DeviceStatus replay(const CapturedWork& work) = 0;

  // Runs the kernel a few times on operands of `args` and gives the least of the times in seconds,
  // for planners that choose among kernels by measuring. Waits for all earlier work.
  virtual DeviceStatus time(const Kernel& kernel, const RunArgs& args, double* seconds) = 0;
};

// Devices are shared by the programs that use them.
using DeviceHandle = std::shared_ptr<Device>;

}  // namespace trainscope
