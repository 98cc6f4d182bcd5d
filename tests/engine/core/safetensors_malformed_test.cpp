// Malformed and hostile safetensors files: each is refused with its message.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>

#include "engine/core/safetensors.h"
#include "tests/engine/core/core_test_tools.h"
#include "tests/support/growth.h"

namespace trainscope {
namespace {

std::string length_text(std::uint64_t length) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text;
}

// A whole file of this header and so many bytes of data.
std::string file_of(std::string_view header, std::size_t data_bytes = 0) {
  return length_text(header.size()) + std::string(header) + std::string(data_bytes, '\0');
}

// One tensor "x" of these members, and data.
std::string tensor_of(std::string_view members, std::size_t data_bytes = 0) {
  return file_of("{\"x\":{" + std::string(members) + "}}", data_bytes);
}

// Two tensors of four bytes with these offsets.
std::string pair_of(std::string_view a, std::string_view b, std::size_t data_bytes) {
  const std::string type = R"({"dtype":"F32","shape":[1],"data_offsets":)";
  return file_of("{\"a\":" + type + std::string(a) + "},\"b\":" + type + std::string(b) + "}}",
                 data_bytes);
}

struct Case {
  std::string what;
  std::string bytes;
  const char* message;
};

std::vector<Case> header_cases() {
  return {
      {"empty file", "", "0 bytes are too few: the header's length alone takes 8"},
      {"seven bytes", std::string(7, '\0'), "7 bytes are too few"},
      {"length only, of zero", length_text(0), "the header does not begin with '{'"},
      {"length beyond the file", length_text(10) + "{}",
       "the header should have 10 bytes, 2 are left in the file"},
      {"length one beyond the file", length_text(3) + "{}",
       "the header should have 3 bytes, 2 are left"},
      {"length 2^63", length_text(std::uint64_t{1} << 63) + "{}",
       "a header of 9223372036854775808 bytes is beyond the format's limit of 100000000"},
      {"length 2^64-1", length_text(UINT64_MAX) + "{}", "a header of 18446744073709551615 bytes"},
      {"length just over 100 MB", length_text(100'000'001) + "{}",
       "a header of 100000001 bytes is beyond the format's limit"},
      {"an array", file_of("[]"), "the header does not begin with '{'"},
      {"blank first", file_of(" {}"), "the header does not begin with '{'"},
      {"no JSON", file_of("{hello}"), "JSON, line 1, column 2: "},
      {"cut short", file_of("{\"x\":{"), "JSON, line 1, column 6: "},
      {"text after the object", file_of("{}x"), "JSON, line 1, column 3: "},
      {"NUL padding", file_of(std::string("{}\0\0", 4)), "JSON, line 1, column 3: NUL character"},
      {"not UTF-8", file_of("{\"\xFF\":1}"), "ill-formed UTF-8"},
      {"deep", file_of("{\"x\":" + std::string(100'000, '[')), "nested deeper than 64 levels"},
      {"duplicate tensor", pair_of("[0,4]", "[4,8]},\"a\":{\"shape\":[0]", 8), "duplicate key 'a'"},
      {"duplicate member", tensor_of(R"("dtype":"F32","dtype":"F32")"), "duplicate key 'dtype'"},
      {"metadata no object", file_of(R"({"__metadata__":[]})"),
       "tensor '__metadata__': expected an object, found an array"},
      {"metadata with a number", file_of(R"({"__metadata__":{"k":1}})"),
       "key 'k': expected a string, found an integer"},
      {"trailing bytes, no tensors", file_of("{}", 1),
       "1 bytes after the last tensor belong to none"},
  };
}

std::vector<Case> tensor_cases() {
  return {
      {"a number", file_of(R"({"x":1})"), "tensor 'x': expected an object, found an integer (1)"},
      {"null", file_of(R"({"x":null})"), "tensor 'x': expected an object, found null"},
      {"no dtype", tensor_of(R"("shape":[],"data_offsets":[0,4])", 4),
       "tensor 'x': key 'dtype' is missing"},
      {"no shape", tensor_of(R"("dtype":"F32","data_offsets":[0,4])", 4),
       "tensor 'x': key 'shape' is missing"},
      {"no offsets", tensor_of(R"("dtype":"F32","shape":[1])", 4),
       "tensor 'x': key 'data_offsets' is missing"},
      {"dtype a number", tensor_of(R"("dtype":32,"shape":[1],"data_offsets":[0,4])", 4),
       "tensor 'x': key 'dtype': expected a string, found an integer (32)"},
      {"unknown dtype", tensor_of(R"("dtype":"F128","shape":[1],"data_offsets":[0,16])", 16),
       "tensor 'x': unknown dtype 'F128'"},
      {"dtype in small letters", tensor_of(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])", 4),
       "tensor 'x': unknown dtype 'f32'"},
      {"dtype with an escape", tensor_of(R"("dtype":"\u001b[2J","shape":[1],"data_offsets":[0,4])"),
       "unknown dtype '\\x1b[2J'"},
      {"shape a number", tensor_of(R"("dtype":"F32","shape":1,"data_offsets":[0,4])", 4),
       "tensor 'x': key 'shape': expected an array, found an integer (1)"},
      {"dimension a text", tensor_of(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])", 4),
       "tensor 'x': expected an integer, found a string (\"1\")"},
      {"dimension a fraction", tensor_of(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", 4),
       "tensor 'x': expected an integer, found a number (1.0)"},
      {"dimension true", tensor_of(R"("dtype":"F32","shape":[true],"data_offsets":[0,4])", 4),
       "tensor 'x': expected an integer, found true or false (true)"},
      {"dimension negative", tensor_of(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", 4),
       "tensor 'x': dimension -1 is negative"},
      {"two negative dimensions",
       tensor_of(R"("dtype":"F32","shape":[-1,-1],"data_offsets":[0,4])", 4),
       "tensor 'x': dimension -1 is negative"},
      {"dimension 2^63",
       tensor_of(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4])", 4),
       "tensor 'x': expected an integer, found a number"},
      {"product overflows",
       tensor_of(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
       "tensor 'x': the shape [4294967296,4294967296] is too large"},
      {"product overflows to the size of the data",
       tensor_of(R"("dtype":"U8","shape":[4294967297,4294967295,1],"data_offsets":[0,4])", 4),
       "tensor 'x': U8[4294967297,4294967295,1] takes 18446744073709551615 bytes"},
      {"elements fit, bytes overflow",
       tensor_of(R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0])"),
       "tensor 'x': the shape [2305843009213693952] is too large"},
      {"rank 9", tensor_of(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])", 4),
       "tensor 'x': rank 9 is beyond 8"},
      {"one offset", tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":[4])", 4),
       "tensor 'x': data_offsets has 1 numbers, expected 2"},
      {"three offsets", tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])", 4),
       "tensor 'x': data_offsets has 3 numbers, expected 2"},
      {"offsets an object", tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":{})", 4),
       "tensor 'x': key 'data_offsets': expected an array, found an object"},
      {"offset a text", tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":["0",4])", 4),
       "tensor 'x': expected an integer, found a string (\"0\")"},
      {"offset negative", tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", 4),
       "tensor 'x': data_offsets [-4,0] are not a range"},
      {"end before begin", tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", 4),
       "tensor 'x': data_offsets [4,0] are not a range"},
      {"end beyond the file", tensor_of(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", 7),
       "tensor 'x': data up to byte 8, but the file has 7 bytes of data"},
      {"end 2^63-1",
       tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":[0,9223372036854775807])", 4),
       "tensor 'x': data up to byte 9223372036854775807, but the file has 4 bytes of data"},
      {"data shorter than the shape",
       tensor_of(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4),
       "tensor 'x': F32[2] takes 8 bytes, data_offsets give 4"},
      {"data longer than the shape",
       tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])", 8),
       "tensor 'x': F32[1] takes 4 bytes, data_offsets give 8"},
      {"zero elements with data", tensor_of(R"("dtype":"F32","shape":[0],"data_offsets":[0,4])", 4),
       "tensor 'x': F32[0] takes 0 bytes, data_offsets give 4"},
      {"scalar without data", tensor_of(R"("dtype":"F32","shape":[],"data_offsets":[0,0])"),
       "tensor 'x': F32[] takes 4 bytes, data_offsets give 0"},
  };
}

std::vector<Case> layout_cases() {
  return {
      {"first offset not 0", tensor_of(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", 8),
       "bytes 0 to 4 before tensor 'x' belong to no tensor"},
      {"hole", pair_of("[0,4]", "[8,12]", 12),
       "bytes 4 to 8 before tensor 'b' belong to no tensor"},
      {"overlap", pair_of("[0,4]", "[2,6]", 6),
       "tensor 'b' overlaps the one before it: it begins at byte 2, that ends at 4"},
      {"the same data twice", pair_of("[0,4]", "[0,4]", 4), "overlaps the one before it"},
      {"trailing byte", pair_of("[0,4]", "[4,8]", 9),
       "1 bytes after the last tensor belong to none"},
      {"an empty tensor inside another",
       file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
               R"("e":{"dtype":"F32","shape":[0],"data_offsets":[2,2]}})",
               4),
       "tensor 'e' overlaps the one before it"},
      {"an empty tensor beyond the data",
       file_of(R"({"e":{"dtype":"F32","shape":[0],"data_offsets":[1,1]}})"),
       "tensor 'e': data up to byte 1, but the file has 0 bytes of data"},
      {"a name with an escape",
       file_of(R"({"\u001b[2J":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
       "before tensor '\\x1b[2J' belong"},
  };
}

void check_refused(const std::vector<Case>& cases) {
  const TemporaryFolder folder;
  for (const Case& c : cases) {
    CAPTURE(c.what);
    put(folder / "bad.safetensors", c.bytes);
    const Error error = error_of([&] { SafetensorsFile::open(folder / "bad.safetensors"); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), c.message));
    REQUIRE(error.context().size() == 1);
    CHECK(contains(error.context()[0], "bad.safetensors'"));
    CHECK_FALSE(error.hint().empty());
  }
}

TEST_CASE("safetensors: malformed headers are refused") { check_refused(header_cases()); }
TEST_CASE("safetensors: malformed tensors are refused") { check_refused(tensor_cases()); }
TEST_CASE("safetensors: malformed layouts are refused") { check_refused(layout_cases()); }

TEST_CASE("safetensors: a hundred thousand tensors take linear time, also to be refused") {
  const auto many = [](int tensors, int last_begin) {
    std::string header = "{";
    for (int i = 0; i < tensors; ++i) {
      const int begin = i + 1 == tensors ? last_begin : 4 * i;
      header += fmt::format(R"({}"t{}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})",
                            i == 0 ? "" : ",", i, begin, begin + 4);
    }
    return file_of(header + "}", 4 * static_cast<std::size_t>(tensors));
  };
  const TemporaryFolder folder;
  test::check_linear(100'000, [&](int tensors) {
    put(folder / "good", many(tensors, 4 * (tensors - 1)));
    put(folder / "bad", many(tensors, 0));
    return test::processor_seconds([&] {
      CHECK(std::ssize(SafetensorsFile::open(folder / "good").names()) == tensors);
      const Error error = error_of([&] { SafetensorsFile::open(folder / "bad"); });
      CHECK(error.code() == ErrorCode::kBadInput);
      CHECK(contains(error.message(), "overlaps the one before it"));
    });
  });
}

TEST_CASE("safetensors: a file cut short anywhere is refused") {
  const TemporaryFolder folder;
  const Tensor a = Tensor::of<float>({3}, std::vector<float>{1, 2, 3});
  const Tensor b = Tensor::ints(std::vector<std::int64_t>{4, 5});
  write_safetensors(folder / "good", std::vector<NamedTensor>{{"a", a.view()}, {"b", b.view()}},
                    {{"k", "v"}});
  const std::string good = get(folder / "good");
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    put(folder / "bad", good.substr(0, size));
    const Error error = error_of([&] { SafetensorsFile::open(folder / "bad"); });
    CHECK(error.code() == ErrorCode::kBadInput);
  }
}

TEST_CASE("safetensors: missing files and folders are kIo") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { SafetensorsFile::open(folder / "none"); }).code() == ErrorCode::kIo);
  CHECK(error_of([&] { SafetensorsFile::open(folder.path()); }).code() == ErrorCode::kIo);
  CHECK(error_of([&] { SafetensorsFile::open("/dev/zero"); }).code() == ErrorCode::kIo);
}

}  // namespace
}  // namespace trainscope
