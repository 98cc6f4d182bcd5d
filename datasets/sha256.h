// SHA-256: what pins the content of downloaded files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace trainscope {

// FIPS 180-4.
class Sha256 {
 public:
  Sha256& bytes(std::span<const std::byte> bytes);
  // 64 lower-case hexadecimal digits; nothing may follow.
  std::string digest();

 private:
  void block(std::span<const std::byte> bytes);

  std::array<std::uint32_t, 8> state_ = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                         0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
  std::array<std::byte, 64> open_{};  // what does not fill a block yet
  std::size_t open_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

// Of a whole file. Throws kIo.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace trainscope
