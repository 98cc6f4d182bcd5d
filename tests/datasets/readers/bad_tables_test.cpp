// Twenty bad files of each kind of tables: csv, idx, npz, safetensors, images; what claims to be
// larger than it is takes no memory. Each is refused with one message, exit code 3.
#include <doctest/doctest.h>

#include "tests/datasets/archive_tools.h"
#include "tests/datasets/bad_file.h"
#include "tests/datasets/dataset_tools.h"
#include "tests/support/memory_peak.h"

namespace trainscope {
namespace {

using namespace std::string_literals;
namespace fs = std::filesystem;

const fs::path kImages = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/images";

// "x" [N,2] of floats and labels of three classes in npz form.
std::string npz_of(std::string_view descr, std::string_view shape, std::string_view data,
                   int method = 0, const ZipLies& lies = {}) {
  return zip({{.name = "x.npy", .content = npy(npy_dict(descr, shape), data), .method = method},
              {.name = "labels.npy",
               .content = npy(npy_dict("<i8", "(2,)"), bytes_of<std::int64_t>({0, 1})),
               .method = method}},
             lies);
}

std::string safetensors_of(std::string_view header, std::string_view data = "") {
  return little<std::uint64_t>(header.size()) + std::string(header) + std::string(data);
}

// A sanitizer's own memory comes on top.
#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kMostBytes = std::int64_t{500} << 20;
#else
constexpr std::int64_t kMostBytes = std::int64_t{32} << 20;
#endif

// Grey images of 9 x 7 pixels in classes "a" and "b".
DatasetOptions small_images() {
  DatasetOptions options;
  options.inputs = {{.name = "x", .dtype = DType::kF32, .dims = {{3, 9, 7}}}};
  options.labels = WantedField{.name = "labels", .dtype = DType::kI64, .dims = Ints{}, .bound = 2};
  return options;
}

}  // namespace

TEST_CASE("bad files: csv") {
  const std::vector<BadFile> files = {
      {"", "there is no header row"},
      {"\n\n\n", "there is no header row"},
      {"a,b,labels", "there are no rows below the header"},
      {"a,,labels\n1,2,0", "line 1: column 2 has no name"},
      {"a,a,labels\n1,2,0", "two columns are called 'a'"},
      {"a,b,labels\n1,2", "line 2 has 2 cells"},
      {"a,b,labels\n1,2,0,4", "line 2 has 4 cells"},
      {"a,b,labels\n1,\"2,0", "never ends"},
      {"a,b,labels\n1,\"2\"3,0", "expected a comma or a line end"},
      {"a,b,labels\n1,2\"3,0", "a quote within the cell"},
      {"a,b,labels\n1,2\r3,0", "expected a comma or a line end"},
      {"a,b,labels\n1,\0,0"s, "is 0: this is no text"},
      {"a,b,labels\n1,two,0", "row 1 (line 2), column 'b': 'two' is no number"},
      {"a,b,labels\n1,nan,0", "'nan' is no number"},
      {"a,b,labels\n1,inf,0", "'inf' is no number"},
      {"a,b,labels\n1,1e39,0", "'1e39' is no number"},
      {"a,b,labels\n1,0x10,0", "'0x10' is no number"},
      {"a,b,labels\n1,\"1,5\",0", "'1,5' is no number"},
      {"a,b,labels\n1,,0", "the cell is empty"},
      {"a,b,labels\n1,2,", "the cell is empty"},
      {"a,b,labels\n1,2,0.5", "'0.5' is no whole number"},
      {"a,b,labels\n1,2,3", "is 3: expected 0 to 2"},
      {"a,b,labels\n1,2,-1", "is -1: expected 0 to 2"},
      {"a,b,labels\n1,2,99999999999999999999", "is no whole number"},
      {"a,b,c,labels\n1,2,3,0", "has 3 columns besides the label"},
      {"a,labels\n1,0", "has 1 columns besides the label"},
      {"PAR1\x15\x04\0\0PAR1"s, "this is no text"},
  };
  check_bad_files("d.csv", files, [](const BadPlace& place) {
    return opening_error(source("csv", place.file, ",label=labels"), pair_options());
  });
}

TEST_CASE("bad files: npz") {
  const std::string four = bytes_of<float>({1, 2, 3, 4});
  const std::string zeros(1 << 20, '\0');
  const std::string good = npz_of("<f4", "(2, 2)", four);
  const std::vector<BadFile> files = {
      {"", "is no npz file: it does not begin as a zip archive does"},
      {"PK", "is no npz file: it does not begin as a zip archive does"},
      {good.substr(0, good.size() - 1), "no end record"},
      {good.substr(0, 60), "no end record"},
      {"x" + good, "is no npz file: it does not begin as a zip archive does"},
      {zip({{.name = "x.txt", .content = "x"}}), "without .npy arrays"},
      {zip({{.name = "x.npy", .content = "x"}, {.name = "labels.npy", .content = "x"}}),
       "is no .npy array"},
      {npz_of("<f4", "(2, 2)", four + "x"), "but 17 bytes follow"},
      {npz_of("<f4", "(2, 2)", four.substr(1)), "but 15 bytes follow"},
      {npz_of("<f4", "(1152921504606846976, 2)", four), "but 16 bytes follow"},
      {npz_of("<f4", "(4294967296, 4294967296, 4294967296)", four), "but 16 bytes follow"},
      {npz_of("<f4", "(9223372036854775807,)", four), "but 16 bytes follow"},
      {npz_of("<f4", "(99999999999999999999, 2)", four), "cannot be read at"},
      {npz_of("<f4", "(-2, 2)", four), "cannot be read at"},
      {npz_of("<f4", "(2, 2", four), "cannot be read at"},
      {npz_of("<f4", "(2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)", four), "dimensions"},
      {npz_of(">f4", "(2, 2)", four), "big-endian"},
      {npz_of("<c8", "(2, 1)", four), "which cannot be read"},
      {npz_of("|O", "(2, 1)", four), "which cannot be read"},
      {npz_of("<U2", "(2, 1)", four), "which cannot be read"},
      {npz_of("<f4", "(2, 2)", four, 0, {.flags = 1}), "is encrypted"},
      {npz_of("<f4", "(2, 2)", four, 12), "compressed by method 12"},
      {npz_of("<f4", "(2, 2)", four, 0, {.crc = true}), "CRC-32"},
      {npz_of("<f4", "(2, 2)", four, 0, {.entries = true}),
       "the zip archive's directory is damaged at byte 470"},
      {npz_of("<f4", "(2, 2)", four, 0, {.local_offset = 1 << 30}),
       "the zip archive is cut short or damaged: it has no bytes 1073741824 to"},
      {npz_of("<f4", "(2, 2)", four, 8, {.size_bytes = 0xFFFFFFF0}),
       "cannot have 4294967280 bytes"},
      {npz_of("<f4", "(131072, 2)", zeros, 8, {.size_bytes = (2 << 20)}),
       "cannot have 2097152 bytes"},
      {npz_of("<f4", "(2, 3)", bytes_of<float>({1, 2, 3, 4, 5, 6})), "expected [N,2]"},
      {npz_of("<f4", "(3, 2)", bytes_of<float>({1, 2, 3, 4, 5, 6})), "has 2 examples"},
      {npz_of("<f4", "(16777216, 2)", std::string(128 << 20, '\0'), 8),
       "has 2 examples"},  // a bomb
  };
  const test::MemoryPeak memory;  // the bomb has been made by now
  check_bad_files("d.npz", files, [](const BadPlace& place) {
    return opening_error(source("tensors", place.file), pair_options());
  });
  CHECK(memory.bytes() < kMostBytes);  // none took what it claimed to be
}

TEST_CASE("bad files: safetensors") {
  const std::string data(16, '\0');
  const auto x_of = [](std::string_view rest) {
    return R"({"x":{"dtype":"F32","shape":[2,2],)" + std::string(rest) + "}}";
  };
  const std::vector<BadFile> files = {
      {"", "0 bytes are too few: the header's length alone takes 8"},
      {"1234567", "7 bytes are too few: the header's length alone takes 8"},
      {little<std::uint64_t>(0), "the header does not begin with '{'"},
      {little<std::uint64_t>(~0ULL) + "{}",
       "a header of 18446744073709551615 bytes is beyond the format's limit of"},
      {little<std::uint64_t>(std::uint64_t{1} << 60) + "{}",
       "a header of 1152921504606846976 bytes is beyond the format's limit of"},
      {little<std::uint64_t>(100) + "{}",
       "the header should have 100 bytes, 2 are left in the file"},
      {safetensors_of("[]"), "the header does not begin with '{'"},
      {safetensors_of("{"), "JSON, line 1, column 1: syntax error while parsing object key -"},
      {safetensors_of("\xff{}"), "the header does not begin with '{'"},
      {safetensors_of(R"({"x":[]})"), "tensor 'x': expected an object, found an array"},
      {safetensors_of(R"({"x":{"dtype":"F32"}})"), "tensor 'x': key 'shape' is missing"},
      {safetensors_of(R"({"x":{"dtype":"F99","shape":[4],"data_offsets":[0,16]}})", data), "F99"},
      {safetensors_of(x_of(R"("data_offsets":[0,16])")),
       "tensor 'x': data up to byte 16, but the file has 0 bytes of data"},
      {safetensors_of(x_of(R"("data_offsets":[0,16])"), data + "x"),
       "1 bytes after the last tensor belong to none"},
      {safetensors_of(x_of(R"("data_offsets":[0,12])"), data),
       "tensor 'x': F32[2,2] takes 16 bytes, data_offsets give 12"},
      {safetensors_of(x_of(R"("data_offsets":[4,20])"), data + "xxxx"),
       "bytes 0 to 4 before tensor 'x' belong to no tensor"},
      {safetensors_of(x_of(R"("data_offsets":[16,0])"), data),
       "tensor 'x': data_offsets [16,0] are not a range"},
      {safetensors_of(x_of(R"("data_offsets":[0,-16])"), data),
       "tensor 'x': data_offsets [0,-16] are not a range"},
      {safetensors_of(x_of(R"("data_offsets":[0])"), data),
       "tensor 'x': data_offsets has 1 numbers, expected 2"},
      {safetensors_of(
           R"({"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}})", data),
       "tensor 'x': the shape [4294967296,4294967296] is too large"},
      {safetensors_of(
           R"({"x":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,16]}})", data),
       "tensor 'x': F32[1152921504606846976] takes 4611686018427387904 bytes,"},
      {safetensors_of(R"({"x":{"dtype":"F32","shape":[-2,-2],"data_offsets":[0,16]}})", data),
       "tensor 'x': dimension -2 is negative"},
      {safetensors_of(
           R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"x":{"dtype":"F32","shape":[0],"data_offsets":[16,16]}})",
           data),
       "JSON, line 1, column 58: duplicate key 'x'"},
      {safetensors_of(
           R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"y":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
           data),
       "tensor 'y' overlaps the one before it: it begins at byte 0, that ends at 16"},
      {safetensors_of(x_of(R"("data_offsets":[0,16])"), data), "'labels' is missing"},
  };
  const test::MemoryPeak memory;
  check_bad_files("d.safetensors", files, [](const BadPlace& place) {
    return opening_error(source("tensors", place.file), pair_options());
  });
  CHECK(memory.bytes() < kMostBytes);
}

TEST_CASE("bad files: idx") {
  const std::string good = idx_file({2, 1, 2}, "abcd");
  std::string crc = gzip(good);
  crc[crc.size() - 6] = static_cast<char>(crc[crc.size() - 6] ^ 1);
  const std::vector<BadFile> files = {
      {"", "ends within its IDX header"},
      {good.substr(0, 3), "ends within its IDX header"},
      {good.substr(0, 15), "ends within its IDX header"},
      {"text", "is no IDX file"},
      {idx_header({2, 1, 2}, 0x0D) + std::string(16, 'x'), "IDX type 0x0d"},
      {idx_header({2, 1, 2}, 0x09) + "abcd", "IDX type 0x09"},
      {idx_file({4}, "abcd"), "has 1 dimensions"},
      {idx_file({2, 1, 2, 1}, "abcd"), "has 4 dimensions"},
      {idx_header({}), "has 0 dimensions"},
      {idx_file({2, 1, 2}, "abc"), "but only 3 of 4 bytes follow"},
      {good + "x", "more than 4 bytes follow"},
      {idx_file({0, 1, 2}, ""), "dimension 0 is 0"},
      {idx_file({2, 0, 2}, ""), "dimension 1 is 0"},
      {idx_file({2, 1, 0}, ""), "dimension 2 is 0"},
      {idx_file({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, ""), "more than the 2 GiB"},
      {idx_file({0x80000000, 0x80000000, 4}, ""), "more than the 2 GiB"},
      {idx_file({1 << 20, 32, 32}, "abc"), "the file is too short for that"},
      {gzip(idx_file({1 << 20, 32, 32}, "abc")), "the file is too short for that"},
      {gzip(idx_file({4, 1, 2}, "abcd")), "but only 4 of 8 bytes follow"},
      {gzip(good + std::string(1 << 20, 'x')), "more than 4 bytes follow"},
      {gzip(good).substr(0, 12), "the compressed data end too early"},
      {gzip(good) + "x", "bytes follow the compressed data"},
      {crc, "the compressed data are damaged"},
      {"\x1f\x8b", "the compressed data end too early"},
      {idx_file({3, 1, 2}, "abcdef"), "has 3 images"},
      {idx_file({2, 2, 2}, "abcdefgh"), "has images of 2x2"},
  };
  check_bad_files("images.idx", files, [](const BadPlace& place) {
    put(place.folder / "labels.idx", idx_file({2}, "\x01\x02"));
    return opening_error(source("idx", place.file, "," + (place.folder / "labels.idx").string()),
                         pair_options());
  });
}

TEST_CASE("bad files: images") {
  const std::string png = get(kImages / "rgb.png");
  const std::string jpg = get(kImages / "rgb.jpg");
  // Width and height of a PNG lie at bytes 16 and 20, big end first.
  const auto sized = [&](std::string_view width, std::string_view height) {
    std::string bytes = png;
    bytes.replace(16, 4, width);
    return bytes.replace(20, 4, height);
  };
  const auto flipped = [](std::string bytes, std::size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    return bytes;
  };
  const std::vector<BadFile> files = {
      {"", "is empty"},
      {"text", "neither a PNG nor a JPEG"},
      {"GIF89a\x01\x01", "neither a PNG nor a JPEG"},
      {"BM\x01\x02\x03\x04", "neither a PNG nor a JPEG"},
      {"RIFF\x01\x02\x03\x04WEBP", "neither a PNG nor a JPEG"},
      {png.substr(0, 4), "is neither a PNG nor a JPEG file by its first bytes"},
      {png.substr(0, 8), "is a damaged PNG file: it ends within its header"},
      {png.substr(0, 20), "is a damaged PNG file: it ends within its header"},
      {png.substr(0, 33), "is a damaged PNG file: read beyond end of data"},
      {png.substr(0, png.size() / 2), "is a damaged PNG file: read beyond end of data"},
      {flipped(png, 25), "is a damaged PNG file: IHDR: CRC error"},
      {flipped(png, 30), "is a damaged PNG file: IHDR: CRC error"},
      {flipped(png, png.size() / 2), "is a damaged PNG file: IDAT: incorrect data check"},
      {sized("\0\0\0\0"s, "\0\0\0\x09"s), "has 9 x 0 pixels: expected 1 to 67108864"},
      {sized("\0\0\0\x07"s, "\0\0\0\0"s), "has 0 x 7 pixels: expected 1 to 67108864"},
      {sized("\x7f\xff\xff\xff"s, "\x7f\xff\xff\xff"s),
       "has 2147483647 x 2147483647 pixels: expected 1 to 67108864"},
      {sized("\0\x01\0\0"s, "\0\x01\0\0"s), "has 65536 x 65536 pixels: expected 1 to 67108864"},
      {jpg.substr(0, 2), "is neither a PNG nor a JPEG file by its first bytes"},
      {jpg.substr(0, 10), "is a damaged JPEG file: Premature end of JPEG file"},
      {jpg.substr(0, 30), "is a damaged JPEG file: Premature end of JPEG file"},
      {"\xff\xd8\xff\xd9", "is a damaged JPEG file: JPEG datastream contains no image"},
      {"\xff\xd8\xff\xe0\xff\xff", "is a damaged JPEG file: Premature end of JPEG file"},
      {get(kImages / "cmyk.jpg"), "CMYK"},
      {get(kImages / "wide.png"), "pixels, 'x' takes 9 x 7"},
  };
  const test::MemoryPeak memory;
  check_bad_files("1.png", files, [](const BadPlace& place) {
    fs::create_directories(place.folder / "set/a");
    fs::create_directories(place.folder / "set/b");
    fs::copy_file(kImages / "rgb.png", place.folder / "set/b/1.png");
    fs::rename(place.file, place.folder / "set/a/1.png");
    return error_of([&] {
      const auto data =
          open_dataset(source("images", place.folder / "set", ",validation=0"), small_images());
      read_batch(*data, Split::kTrain, 0, {0, 1});
    });
  });
  CHECK(memory.bytes() < kMostBytes);
}

}  // namespace trainscope
