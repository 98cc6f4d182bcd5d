// PNG and JPEG files beside what Pillow reads of them, other sizes and channels, and damaged files.
#include "datasets/image/decode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "datasets/tensor_archive.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

const fs::path kImages = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/images";

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Image read_image(const char* name) {
  const std::string content = get(kImages / name);
  const Image image = decode_image(bytes_of(content), name);
  CHECK(image_size(bytes_of(content), name) ==
        ImageSize{.height = image.height, .width = image.width});
  return image;
}

// The largest difference to the array of that name, [H,W,C] of bytes.
int difference(const Image& image, const char* name) {
  const Tensor expected = open_tensor_archive((kImages / "expected.npz").string())->tensor(name);
  REQUIRE(expected.shape() == Shape{image.height, image.width, image.channels});
  const std::span<const std::int64_t> values = expected.values<std::int64_t>();
  REQUIRE(values.size() == image.pixels.size());
  int most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    most = std::max(most, std::abs(static_cast<int>(values[i]) - int{image.pixels[i]}));
  }
  return most;
}

std::string message_of(std::string_view content) {
  const std::string text(content);
  return error_of([&] { decode_image(bytes_of(text), "a.img"); }).message();
}

// A PNG header that says so many pixels.
std::string png_header(std::string_view width, std::string_view height) {
  return std::string("\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16) + std::string(width) +
         std::string(height) + std::string("\x08\x02\0\0\0", 5);
}

}  // namespace

TEST_CASE("images: PNG of each kind, as Pillow reads it") {
  for (const char* name : {"rgb.png", "grey.png", "palette.png", "alpha.png", "wide.png"}) {
    CAPTURE(name);
    CHECK(difference(read_image(name), name) == 0);
  }
  // 16 bits become 8 by rounding.
  CHECK(difference(read_image("grey16.png"), "grey16.png") <= 1);
}

TEST_CASE("images: JPEG, baseline, progressive and grey, as Pillow reads it") {
  for (const char* name : {"rgb.jpg", "progressive.jpg", "grey.jpg"}) {
    CAPTURE(name);
    CHECK(difference(read_image(name), name) <= 2);  // decoders round in their own ways
  }
}

TEST_CASE("images: channels") {
  const Image wide = read_image("wide.png");
  CHECK(difference(with_channels(wide, 1), "wide.png grey") <= 1);
  const Image grey = read_image("grey.png");
  const Image thrice = with_channels(grey, 3);
  REQUIRE(thrice.pixels.size() == 3 * grey.pixels.size());
  for (std::size_t i = 0; i < thrice.pixels.size(); ++i) {
    CHECK(thrice.pixels[i] == grey.pixels[i / 3]);
  }
}

TEST_CASE("images: other sizes, as Pillow's BILINEAR") {
  const Image wide = read_image("wide.png");  // 41 x 33
  const Image less = resized(wide, {.height = 12, .width = 10}, Resize::kStretch);
  CHECK(difference(less, "wide.png 12x10") <= 1);
  const Image more = resized(wide, {.height = 50, .width = 60}, Resize::kStretch);
  CHECK(difference(more, "wide.png 50x60") <= 1);

  // The middle 33 rows are as wide as they are high.
  const Image square = resized(wide, {.height = 33, .width = 33}, Resize::kCover);
  for (std::size_t i = 0; i < square.pixels.size(); ++i) {
    REQUIRE(square.pixels[i] == wide.pixels[i + std::size_t{4} * 33 * 3]);
  }
  // A line becomes any size without more memory than that takes.
  const Image line{
      .height = 1, .width = 100000, .channels = 1, .pixels = std::vector<std::uint8_t>(100000, 7)};
  Image pole = line;
  std::swap(pole.height, pole.width);
  for (const Image* thin : {&line, &std::as_const(pole)}) {
    for (const Resize how : {Resize::kCover, Resize::kStretch}) {
      const Image small = resized(*thin, {.height = 8, .width = 8}, how);
      CHECK(small.pixels == std::vector<std::uint8_t>(64, 7));
    }
  }
}

TEST_CASE("images: what is no image says so") {
  CHECK(contains(message_of(""), "empty"));
  CHECK(contains(message_of("GIF89a"), "neither a PNG nor a JPEG"));
  CHECK(contains(message_of("\x89PNG\r\n\x1A\n"), "ends within its header"));
  CHECK(contains(message_of(png_header(std::string("\0\0\0\0", 4), std::string("\0\0\0\1", 4))),
                 "1 x 0 pixels"));
  CHECK(contains(message_of(get(kImages / "cmyk.jpg")), "four colours (CMYK)"));
  const std::string cmyk = get(kImages / "cmyk.jpg");
  const Error on_opening = error_of([&] { image_size(bytes_of(cmyk), "a.jpg"); });
  CHECK(contains(on_opening.message(), "four colours (CMYK)"));
  std::string two = get(kImages / "grey.jpg");
  const std::size_t frame = two.find("\xFF\xC0");
  REQUIRE(frame != std::string::npos);
  two.replace(frame + 2, 2, std::string("\x00\x0E", 2));   // the frame's bytes
  two.replace(frame + 9, 1, std::string("\x02", 1));       // its colours
  two.insert(frame + 13, std::string("\x02\x11\x00", 3));  // the second one
  CHECK(contains(message_of(two), "a JPEG file of 2 colours"));
  CHECK(contains(message_of("\xFF\xD8\xFF"), "damaged JPEG"));
}

TEST_CASE("images: a header of more pixels than may be is refused before they have memory") {
  const std::string bomb =
      png_header(std::string("\0\1\0\0", 4), std::string("\0\1\0\0", 4)) + "crc!";
  CHECK(contains(message_of(bomb), "65536 x 65536 pixels"));
  std::string jpeg = get(kImages / "rgb.jpg");
  const std::size_t frame = jpeg.find("\xFF\xC0");
  REQUIRE(frame != std::string::npos);
  jpeg.replace(frame + 5, 4, "\xFD\xE8\xFD\xE8");
  CHECK(contains(message_of(jpeg), "65000 x 65000 pixels"));
}

TEST_CASE("images: cut anywhere or with a changed byte, they are read or refused") {
  for (const char* name : {"rgb.png", "palette.png", "rgb.jpg", "progressive.jpg"}) {
    const std::string good = get(kImages / name);
    int refused = 0;
    for (std::size_t length = 0; length < good.size(); ++length) {
      const std::string cut = good.substr(0, length);
      try {
        decode_image(bytes_of(cut), name);
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kBadInput);
        ++refused;
      }
      std::string changed = good;
      changed[length] = static_cast<char>(changed[length] ^ (1 << (length % 8)));
      try {
        decode_image(bytes_of(changed), name);
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kBadInput);
      }
    }
    CAPTURE(name);
    // All but those that lack no more than what ends a file.
    CHECK(refused >= static_cast<int>(good.size()) - 16);
  }
}

}  // namespace trainscope
