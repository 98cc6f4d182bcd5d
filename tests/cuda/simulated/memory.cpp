// Blocks end where their last page does, behind which nothing may be touched.
#include "tests/cuda/simulated/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace trainscope::simulated {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 256;  // of what cudaMalloc gives
constexpr std::size_t kDriverBytes = std::size_t{300} << 20;
constexpr std::size_t kCodeBytes = std::size_t{2} << 20;

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

void Memory::protect(const Block& block) const {
  if (block.kind != MemoryKind::kDevice) return;
  mprotect(block.mapped, block.mapped_bytes - kPage,
           open_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void* Memory::allocate(MemoryKind kind, std::size_t bytes) {
  if (kind == MemoryKind::kDevice && bytes > kDeviceBytes - used_device_bytes()) return nullptr;
  const std::size_t used = rounded(std::max<std::size_t>(bytes, 1), kAlignment);
  Block block{.bytes = bytes, .kind = kind, .mapped = nullptr, .mapped_bytes = 0};
  block.mapped_bytes = rounded(used, kPage) + kPage;
  void* mapped =
      mmap(nullptr, block.mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  block.mapped = static_cast<std::byte*>(mapped);
  std::memset(block.mapped, 0xFF, block.mapped_bytes - kPage);
  mprotect(block.mapped + block.mapped_bytes - kPage, kPage, PROT_NONE);
  std::byte* given = block.mapped + block.mapped_bytes - kPage - used;
  protect(block);
  blocks_.emplace(reinterpret_cast<std::uintptr_t>(given), block);
  if (kind == MemoryKind::kDevice) device_bytes_ += bytes;
  most_device_bytes_ = std::max(most_device_bytes_, device_bytes_);
  return given;
}

bool Memory::release(MemoryKind kind, void* block) {
  const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(block));
  if (found == blocks_.end() || found->second.kind != kind) return false;
  if (kind == MemoryKind::kDevice) device_bytes_ -= found->second.bytes;
  munmap(found->second.mapped, found->second.mapped_bytes);
  blocks_.erase(found);
  return true;
}

std::size_t Memory::used_device_bytes() const {
  return kDriverBytes + (code_is_loaded_ ? kCodeBytes : 0) + device_bytes_;
}

Memory::Blocks::const_iterator Memory::block_at(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto found = blocks_.upper_bound(at);
  if (found == blocks_.begin()) return blocks_.end();
  --found;
  return at - found->first < std::max<std::size_t>(found->second.bytes, 1) ? found : blocks_.end();
}

MemoryKind Memory::kind_of(const void* address) const {
  const auto found = block_at(address);
  return found == blocks_.end() ? MemoryKind::kPageable : found->second.kind;
}

bool Memory::holds(const void* address, std::size_t bytes) const {
  const auto found = block_at(address);
  if (found == blocks_.end()) return true;
  return reinterpret_cast<std::uintptr_t>(address) - found->first + bytes <= found->second.bytes;
}

std::vector<MemoryRange> Memory::blocks() const {
  std::vector<MemoryRange> ranges;
  for (const auto& [address, block] : blocks_) {
    ranges.push_back({.begin = reinterpret_cast<const void*>(address), .bytes = block.bytes});
  }
  return ranges;
}

void Memory::open() {
  if (open_++ > 0) return;
  for (const auto& [address, block] : blocks_) protect(block);
}

void Memory::close() {
  if (--open_ > 0) return;
  for (const auto& [address, block] : blocks_) protect(block);
}

}  // namespace trainscope::simulated
