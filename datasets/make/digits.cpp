// Draws digits: small glyphs, each moved, stretched, slanted and covered with noise.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "datasets/make/make.h"
#include "engine/core/file.h"
#include "engine/train/data.h"  // random numbers

namespace trainscope {
namespace {

constexpr std::int64_t kSide = 28;
constexpr int kRows = 7;
constexpr int kColumns = 5;

using Glyph = std::array<std::string_view, kRows>;

constexpr std::array<Glyph, 10> kGlyphs = {{
    {".###.", "#...#", "#...#", "#...#", "#...#", "#...#", ".###."},
    {"..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###."},
    {".###.", "#...#", "....#", "...#.", "..#..", ".#...", "#####"},
    {"####.", "....#", "....#", ".###.", "....#", "....#", "####."},
    {"#..#.", "#..#.", "#..#.", "#####", "...#.", "...#.", "...#."},
    {"#####", "#....", "####.", "....#", "....#", "#...#", ".###."},
    {".###.", "#....", "#....", "####.", "#...#", "#...#", ".###."},
    {"#####", "....#", "...#.", "...#.", "..#..", "..#..", "..#.."},
    {".###.", "#...#", "#...#", ".###.", "#...#", "#...#", ".###."},
    {".###.", "#...#", "#...#", ".####", "....#", "....#", ".###."},
}};

double ink(const Glyph& glyph, int row, int column) {
  const bool inside = row >= 0 && row < kRows && column >= 0 && column < kColumns;
  return inside && glyph[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] == '#'
             ? 1.0
             : 0.0;
}

// Between the dots of the glyph.
double blended_ink(const Glyph& glyph, double row, double column) {
  const int r = static_cast<int>(std::floor(row));
  const int c = static_cast<int>(std::floor(column));
  const double fr = row - r;
  const double fc = column - c;
  return (1 - fr) * ((1 - fc) * ink(glyph, r, c) + fc * ink(glyph, r, c + 1)) +
         fr * ((1 - fc) * ink(glyph, r + 1, c) + fc * ink(glyph, r + 1, c + 1));
}

// How one digit is drawn.
struct Drawing {
  double row_step;  // dots of the glyph for each pixel
  double column_step;
  double slant;
  double row_centre;
  double column_centre;
  double darkness;
};

// A number of [low, high), one of a few of each image.
double between(double low, double high, std::uint32_t word) {
  return low + (high - low) * static_cast<double>(unit_float(word));
}

Drawing drawing_of(std::uint64_t seed, std::uint64_t image) {
  const auto a = random_block(seed, kMakeStreams, 2 * image);
  const auto b = random_block(seed, kMakeStreams, 2 * image + 1);
  return {.row_step = 1.0 / between(2.4, 3.4, a[0]),
          .column_step = 1.0 / between(2.4, 3.8, a[1]),
          .slant = between(-0.25, 0.25, a[2]),
          .row_centre = between(11.5, 15.5, a[3]),
          .column_centre = between(11.5, 15.5, b[0]),
          .darkness = between(170.0, 250.0, b[1])};
}

void draw_glyph(const Glyph& glyph, const Drawing& how, std::uint64_t first_noise,
                std::uint64_t seed, std::span<std::byte> pixels) {
  for (std::int64_t row = 0; row < kSide; ++row) {
    for (std::int64_t column = 0; column < kSide; ++column) {
      const double down = static_cast<double>(row) - how.row_centre;
      const double right = static_cast<double>(column) - how.column_centre + how.slant * down;
      const double dark = how.darkness * blended_ink(glyph, 3.0 + down * how.row_step,
                                                     2.0 + right * how.column_step);
      const auto place = static_cast<std::uint64_t>(row * kSide + column);
      const std::uint32_t noise = random_u32(seed, kMakeStreams + 1, first_noise + place) >> 28;
      pixels[place] = static_cast<std::byte>(std::min(255.0, dark + noise));
    }
  }
}

// Header of an IDX file of unsigned bytes.
std::vector<std::byte> idx_header(std::initializer_list<std::int64_t> dims) {
  std::vector<std::byte> bytes = {std::byte{0}, std::byte{0}, std::byte{8},
                                  static_cast<std::byte>(dims.size())};
  for (const std::int64_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<std::byte>(dim >> shift));
  }
  return bytes;
}

struct DigitSet {
  std::string_view name;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

void write_set(const MakeOptions& options, const DigitSet& set, MadeData& made) {
  constexpr std::int64_t kPixels = kSide * kSide;
  std::vector<std::byte> images = idx_header({set.count, kSide, kSide});
  std::vector<std::byte> labels = idx_header({set.count});
  for (std::int64_t i = set.first; i < set.first + set.count; ++i) {
    const auto image = static_cast<std::uint64_t>(i);
    const std::uint64_t digit = random_below(options.seed, kMakeStreams + 2, image, 10);
    images.resize(images.size() + kPixels);
    draw_glyph(kGlyphs[digit], drawing_of(options.seed, image), image * kPixels, options.seed,
               std::span(images).last(kPixels));
    labels.push_back(static_cast<std::byte>(digit));
  }
  const auto write = [&](std::string_view ending, const std::vector<std::byte>& bytes) {
    made.files.push_back(options.folder / (std::string(set.name) + std::string(ending)));
    write_file_atomic(made.files.back(), bytes);
  };
  write("-images-idx3-ubyte", images);
  write("-labels-idx1-ubyte", labels);
}

}  // namespace

// A fifth as many are made to test on.
MadeData make_digits(const MakeOptions& options) {
  MadeData made;
  const std::int64_t test = std::max<std::int64_t>(1, options.examples / 5);
  write_set(options, {.name = "train", .first = 0, .count = options.examples}, made);
  write_set(options, {.name = "t10k", .first = options.examples, .count = test}, made);
  made.source = "idx:" + made.files[0].string() + "," + made.files[1].string();
  return made;
}

}  // namespace trainscope
