// Arena memory straight from the kernel: zeroed, page-aligned, huge pages where there are any.
#include "engine/exec/arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::byte kGuard{0xC3};

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

Arena::Arena(std::int64_t bytes) : bytes_(bytes) {
  mapped_bytes_ = round_up(static_cast<std::size_t>(bytes) + kGuardBytes, kPageBytes);
  void* memory =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory,
                "no memory for an arena of " + human_bytes(static_cast<std::uint64_t>(bytes)))
        .hint("use a smaller batch or sequence, or more micro-batches (--accumulate)");
  }
  data_ = static_cast<std::byte*>(memory);
  if (mapped_bytes_ >= 4 * kHugePageBytes) madvise(memory, mapped_bytes_, MADV_HUGEPAGE);
  std::fill_n(data_ + bytes_, kGuardBytes, kGuard);
}

Arena::~Arena() { munmap(data_, mapped_bytes_); }

bool Arena::guard_intact() const {
  return std::all_of(data_ + bytes_, data_ + bytes_ + kGuardBytes,
                     [](std::byte b) { return b == kGuard; });
}

}  // namespace trainscope
