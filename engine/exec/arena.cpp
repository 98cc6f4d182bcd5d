// Arena memory of a device.
#include "engine/exec/arena.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/core/byte_count.h"
#include "engine/core/error.h"
#include "engine/exec/device_work.h"

namespace trainscope {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::byte kGuard{0xC3};

}  // namespace

Arena::Arena(DeviceHandle device, Space space, std::int64_t bytes)
    : device_(std::move(device)), space_(space), bytes_(bytes) {
  const std::size_t with_guard = static_cast<std::size_t>(bytes) + kGuardBytes;
  const DeviceStatus status = device_->allocate(space, with_guard, &data_);
  if (!status.done()) {
    throw Error(ErrorCode::kOutOfMemory, "no memory for an arena of " + bytes_text(bytes))
        .hint("use a smaller batch or sequence, or more micro-batches (--accumulate)");
  }
  check(device_->fill(kComputeStream, data_ + bytes_, kGuard, kGuardBytes));
}

Arena::~Arena() { device_->release(space_, data_, static_cast<std::size_t>(bytes_) + kGuardBytes); }

bool Arena::guard_intact() const {
  std::array<std::byte, kGuardBytes> guard;
  copy_and_wait(*device_, guard.data(), data_ + bytes_, kGuardBytes);
  return std::ranges::all_of(guard, [](std::byte b) { return b == kGuard; });
}

}  // namespace trainscope
