// Copies of bytes.
#include "engine/core/shared_bytes.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace trainscope {

SharedBytes SharedBytes::copy_of(std::span<const std::byte> bytes) {
  using Words = std::vector<std::uint64_t>;
  const auto words =
      std::make_shared<Words>((bytes.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  if (!bytes.empty()) std::memcpy(words->data(), bytes.data(), bytes.size());
  SharedBytes copy;
  copy.bytes_ = std::as_bytes(std::span(*words)).first(bytes.size());
  copy.holder_ = words;
  return copy;
}

}  // namespace trainscope
