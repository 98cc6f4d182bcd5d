// Memory for CUPTI's records: buffers that it fills, and that are used again once they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace trainscope::cuda {

// CUPTI asks for buffers and gives them back from threads of its own.
class ActivityBuffers {
 public:
  // 8 MiB hold some 38,000 kernels. There are at most `kMost` buffers: those that CUPTI fills, that
  // wait and that are read. Where none is left CUPTI drops records, which it counts.
  static constexpr std::size_t kBytes = std::size_t{8} << 20;
  static constexpr std::size_t kMost = 32;

  // An empty buffer of kBytes, aligned to eight bytes; null: there is none.
  std::uint8_t* request();
  // A buffer of request() with so many bytes of records. Keeps it.
  void complete(std::uint8_t* buffer, std::size_t valid_bytes);

  // Calls read(bytes) with the records of each buffer that was completed, in their order.
  template <typename Read>
  void take(const Read& read) {
    std::vector<Full> full = take_full();
    for (const Full& each : full) {
      const auto* bytes = reinterpret_cast<const std::byte*>(each.words.get());
      read(std::span<const std::byte>(bytes, each.bytes));
    }
    give_back(std::move(full));
  }

 private:
  using Words = std::unique_ptr<std::uint64_t[]>;
  struct Full {
    Words words;
    std::size_t bytes = 0;
  };
  std::vector<Full> take_full();
  void give_back(std::vector<Full> read);

  std::mutex mutex_;
  std::size_t made_ = 0;  // buffers so far, wherever they are
  std::vector<Words> free_;
  std::vector<Words> out_;  // CUPTI has them
  std::vector<Full> full_;  // in the order in which they came back
};

}  // namespace trainscope::cuda
