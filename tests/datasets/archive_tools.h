// Files in the formats that readers take, made in memory: IDX, gzip, zip, .npy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

// Little end first.
template <typename T>
std::string little(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes += static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xFF);
  }
  return bytes;
}

// The bytes of numbers as they lie in memory.
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Header of an IDX file of type `type`.
std::string idx_header(const std::vector<std::uint32_t>& dims, int type = 8);
std::string idx_file(const std::vector<std::uint32_t>& dims, std::string_view content);

std::string gzip(std::string_view content);

// An .npy array; `header` is the Python dictionary.
std::string npy(std::string_view header, std::string_view data, int version = 1);
// The dictionary of a plain array: shape as in Python, "(2, 3)".
std::string npy_dict(std::string_view descr, std::string_view shape);

struct ZipMember {
  std::string name;
  std::string content;
  int method = 0;  // 0 stored, 8 deflated
};

// What a damaged archive says in place of the truth; nothing: the truth.
struct ZipLies {
  std::int64_t size_bytes = -1;  // of each member, decompressed
  std::int64_t local_offset = -1;
  int flags = 0;
  bool crc = false;
  bool entries = false;
};

std::string zip(const std::vector<ZipMember>& members, const ZipLies& lies = {});

}  // namespace trainscope
