// Bytes, and a share of what they lie in: a mapped file, or memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "engine/core/file.h"

namespace trainscope {

class SharedBytes {
 public:
  SharedBytes() = default;
  // All of a file.
  explicit SharedBytes(MappedFile file)
      : SharedBytes(std::make_shared<const MappedFile>(std::move(file))) {}
  explicit SharedBytes(const std::shared_ptr<const MappedFile>& file)
      : holder_(file), bytes_(file->bytes()) {}
  // A copy, which begins at a multiple of eight.
  static SharedBytes copy_of(std::span<const std::byte> bytes);
  static SharedBytes copy_of(std::string_view text) {
    return copy_of(std::as_bytes(std::span(text)));
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  const std::shared_ptr<const void>& holder() const { return holder_; }
  SharedBytes part(std::size_t offset, std::size_t count) const {
    SharedBytes result = *this;
    result.bytes_ = bytes_.subspan(offset, count);
    return result;
  }

 private:
  std::shared_ptr<const void> holder_;
  std::span<const std::byte> bytes_;
};

}  // namespace trainscope
