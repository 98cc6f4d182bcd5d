// Anonymous mappings that begin and end at huge pages.
#include "kernels/cpu/support/pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace trainscope::cpu {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

bool is_in_huge_pages(std::size_t bytes) { return bytes >= 4 * kHugePageBytes; }

std::size_t mapped_bytes(std::size_t bytes) {
  if (!is_in_huge_pages(bytes)) return std::max<std::size_t>(bytes, 1);
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

std::byte* map_new(std::size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

}  // namespace

// Huge pages begin at a multiple of their size: what lies before the first and behind the last is
// given back.
std::byte* map_pages(std::size_t bytes) {
  const std::size_t mapped = mapped_bytes(bytes);
  if (!is_in_huge_pages(bytes)) return map_new(mapped);
  std::byte* const pages = map_new(mapped + kHugePageBytes);
  if (pages == nullptr) return nullptr;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(pages) % kHugePageBytes;
  const std::size_t before = past == 0 ? 0 : kHugePageBytes - past;
  if (before > 0) munmap(pages, before);
  if (before < kHugePageBytes) munmap(pages + before + mapped, kHugePageBytes - before);
  madvise(pages + before, mapped, MADV_HUGEPAGE);
  return pages + before;
}

void unmap_pages(std::byte* pages, std::size_t bytes) { munmap(pages, mapped_bytes(bytes)); }

}  // namespace trainscope::cpu
