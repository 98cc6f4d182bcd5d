// The one block of memory that a program's tensors live in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainscope {

// Zeroed, page-aligned memory with guard bytes behind it. Pages cost memory only once touched.
class Arena {
 public:
  // Fails with kOutOfMemory.
  explicit Arena(std::int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  // Whether nothing has written behind the arena's end.
  bool guard_intact() const;

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace trainscope
