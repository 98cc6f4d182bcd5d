// PNG (ISO/IEC 15948): three chunks, rows as differences to the pixel before, deflated by zlib.
#include "gui/draw/picture.h"

#include <zlib.h>

#include <string_view>

namespace trainscope::gui {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string chunk(std::string_view kind, std::string_view data) {
  const std::string checked = std::string(kind).append(data);
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + checked +
         big_endian(static_cast<std::uint32_t>(sum));
}

std::string filtered_rows(const Picture& picture) {
  std::string rows;
  rows.reserve(static_cast<std::size_t>(picture.height) *
               (1 + 3 * static_cast<std::size_t>(picture.width)));
  for (int y = 0; y < picture.height; ++y) {
    rows += '\1';  // filter "Sub"
    Color before{0, 0, 0};
    for (int x = 0; x < picture.width; ++x) {
      const Color c = picture.at(x, y);
      rows += static_cast<char>(c.red - before.red);
      rows += static_cast<char>(c.green - before.green);
      rows += static_cast<char>(c.blue - before.blue);
      before = c;
    }
  }
  return rows;
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string result(size, '\0');
  compress2(reinterpret_cast<Bytef*>(result.data()), &size,
            reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 3);
  result.resize(size);
  return result;
}

}  // namespace

std::string png_bytes(const Picture& picture) {
  std::string header = big_endian(static_cast<std::uint32_t>(picture.width)) +
                       big_endian(static_cast<std::uint32_t>(picture.height));
  header += std::string("\x08\x02\0\0\0", 5);  // eight bits of red, green and blue
  return std::string("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", header) +
         chunk("IDAT", deflated(filtered_rows(picture))) + chunk("IEND", {});
}

}  // namespace trainscope::gui
