// Reads JPEG by libjpeg, whose errors leave by longjmp: the functions with setjmp hold no object
// that must be destroyed.
#include "datasets/image/jpeg.h"

#include <csetjmp>
#include <cstdint>
#include <cstdio>  // before jpeglib.h, which uses FILE
#include <optional>
#include <string>

// jpeglib.h defines what other headers do.
#include <jerror.h>
#include <jpeglib.h>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr int kMostScans = 500;  // of a progressive file, each of which goes over all pixels

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  (*info->err->format_message)(info, errors->text);
  std::longjmp(errors->back, 1);
}

// Warnings are of what can be read all the same, but for the end of the file: what comes after it
// would be grey.
void warn(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) leave(info);
}

void count_scans(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->text, sizeof(errors->text), "more than %d scans", kMostScans);
  std::longjmp(errors->back, 1);
}

// A decoder of these bytes.
class Jpeg {
 public:
  explicit Jpeg(std::span<const std::byte> bytes) : bytes_(bytes) {
    decoder_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = leave;
    errors_.base.emit_message = warn;
    errors_.text[0] = '\0';
  }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;
  ~Jpeg() { jpeg_destroy_decompress(&decoder_); }

  // False: text() says what is wrong.
  bool read_header() {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_create_decompress(&decoder_);
    jpeg_mem_src(&decoder_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&decoder_, TRUE);
    return true;
  }

  // After the header. `pixels`: as many as width * height * channels().
  bool read_pixels(std::uint8_t* pixels) {
    if (setjmp(errors_.back) != 0) return false;
    progress_.progress_monitor = count_scans;
    decoder_.progress = &progress_;
    decoder_.out_color_space = channels() == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&decoder_);
    const std::size_t row_bytes = static_cast<std::size_t>(decoder_.output_width) * channels();
    while (decoder_.output_scanline < decoder_.output_height) {
      JSAMPROW row = pixels + decoder_.output_scanline * row_bytes;
      jpeg_read_scanlines(&decoder_, &row, 1);
    }
    jpeg_finish_decompress(&decoder_);
    return true;
  }

  std::int64_t height() const { return decoder_.image_height; }
  std::int64_t width() const { return decoder_.image_width; }
  bool is_grey_or_rgb() const {
    return decoder_.num_components == 1 || decoder_.num_components == 3;
  }
  int colours() const { return decoder_.num_components; }
  unsigned channels() const { return decoder_.num_components == 1 ? 1 : 3; }

  [[noreturn]] void fail(std::string_view name) const {
    throw Error(ErrorCode::kBadInput, fmt::format("'{}' is a damaged JPEG file: {}",
                                                  printable(name), printable(errors_.text)));
  }

 private:
  std::span<const std::byte> bytes_;
  jpeg_decompress_struct decoder_ = {};
  jpeg_progress_mgr progress_ = {};
  JpegErrors errors_ = {};
};

ImageSize checked_size(const Jpeg& jpeg, std::string_view name) {
  const std::int64_t height = jpeg.height();
  const std::int64_t width = jpeg.width();
  if (!jpeg.is_grey_or_rgb()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' is a JPEG file of {}: expected grey or RGB", printable(name),
                            jpeg.colours() == 4 ? "four colours (CMYK)"
                                                : fmt::format("{} colours", jpeg.colours())))
        .hint("convert it to RGB");
  }
  require(height > 0 && width > 0 && height * width <= kMostPixels, ErrorCode::kBadInput,
          "'{}' has {} x {} pixels: expected 1 to {}", printable(name), height, width, kMostPixels);
  return {.height = static_cast<int>(height), .width = static_cast<int>(width)};
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xFF} && bytes[1] == std::byte{0xD8} &&
         bytes[2] == std::byte{0xFF};
}

ImageSize jpeg_size(std::span<const std::byte> bytes, std::string_view name) {
  Jpeg jpeg(bytes);
  if (!jpeg.read_header()) jpeg.fail(name);
  return checked_size(jpeg, name);
}

Image decode_jpeg(std::span<const std::byte> bytes, std::string_view name) {
  Jpeg jpeg(bytes);
  if (!jpeg.read_header()) jpeg.fail(name);
  const ImageSize size = checked_size(jpeg, name);
  const auto channels = static_cast<int>(jpeg.channels());
  Image image{.height = size.height,
              .width = size.width,
              .channels = channels,
              .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(size.height) *
                                                  static_cast<std::size_t>(size.width) *
                                                  static_cast<std::size_t>(channels))};
  if (!jpeg.read_pixels(image.pixels.data())) jpeg.fail(name);
  return image;
}

}  // namespace trainscope
