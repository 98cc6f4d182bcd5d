// Writes the formats that readers take, by zlib and by hand.
#include "tests/datasets/archive_tools.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zlib.h>

namespace trainscope {
namespace {

std::string deflated(std::string_view content, int window_bits) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string number16(std::size_t value) { return little(static_cast<std::uint16_t>(value)); }
std::string number32(std::size_t value) { return little(static_cast<std::uint32_t>(value)); }

}  // namespace

std::string idx_header(const std::vector<std::uint32_t>& dims, int type) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) {
    const std::string reversed = little(dim);
    bytes.append(reversed.rbegin(), reversed.rend());
  }
  return bytes;
}

std::string idx_file(const std::vector<std::uint32_t>& dims, std::string_view content) {
  return idx_header(dims) + std::string(content);
}

std::string gzip(std::string_view content) { return deflated(content, 16 + MAX_WBITS); }

std::string npy(std::string_view header, std::string_view data, int version) {
  std::string text(header);
  const std::size_t before = version == 1 ? 10 : 12;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes += version == 1 ? number16(text.size()) : number32(text.size());
  return bytes + text + std::string(data);
}

std::string npy_dict(std::string_view descr, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
}

std::string zip(const std::vector<ZipMember>& members, const ZipLies& lies) {
  std::string out;
  std::string directory;
  for (const ZipMember& member : members) {
    const std::string stored =
        member.method == 8 ? deflated(member.content, -MAX_WBITS) : member.content;
    const auto* content = reinterpret_cast<const Bytef*>(member.content.data());
    std::size_t crc = crc32(0, content, static_cast<uInt>(member.content.size()));
    if (lies.crc) crc ^= 1;
    const std::size_t size =
        lies.size_bytes < 0 ? member.content.size() : static_cast<std::size_t>(lies.size_bytes);
    const std::size_t offset =
        lies.local_offset < 0 ? out.size() : static_cast<std::size_t>(lies.local_offset);
    const std::string shared = number16(20) + number16(static_cast<std::size_t>(lies.flags)) +
                               number16(static_cast<std::size_t>(member.method)) + number32(0) +
                               number32(crc) + number32(stored.size()) + number32(size) +
                               number16(member.name.size()) + number16(0);
    directory += "PK\x01\x02" + number16(20) + shared + number16(0) + number16(0) + number16(0) +
                 number32(0) + number32(offset) + member.name;
    out += "PK\x03\x04" + shared + member.name + stored;
  }
  const std::size_t entries = members.size() + (lies.entries ? 1 : 0);
  return out + directory + "PK\x05\x06" + number16(0) + number16(0) + number16(entries) +
         number16(entries) + number32(directory.size()) + number32(out.size()) + number16(0);
}

}  // namespace trainscope
