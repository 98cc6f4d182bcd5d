// Initializers of types that are only stored: packed elements in each field, unpacked in the graph,
// packed again on export; the wider integers in theirs.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/onnx/tensor_file.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

onnx::TensorProto proto_of(int type, std::int64_t elements) {
  onnx::TensorProto proto;
  proto.set_name("w");
  proto.set_data_type(type);
  proto.add_dims(elements);
  return proto;
}

std::vector<std::int64_t> numbers_of(const onnx::TensorProto& proto) {
  ExternalFiles files;
  check_tensor(proto, "w", files);
  return as_ints(convert(read_tensor(proto, "w", files), DType::kI64));
}

}  // namespace

TEST_CASE("packed tensors: the first element is in the low bits, raw or as numbers") {
  struct Case {
    int type;
    std::string raw;
    std::vector<std::int64_t> numbers;
  };
  for (const Case& c :
       {Case{21, "\x21\x0f", {1, 2, 15}},  // uint4: packaged onnx.proto has no name for it
        Case{22, "\x98\x0f", {-8, -7, -1}}, Case{21, "\x21\xf3", {1, 2, 3, 15}},
        Case{25, "\xe4\x01", {0, 1, 2, 3, 1}},     // uint2
        Case{26, "\xe4\x02", {0, 1, -2, -1, -2}},  // int2
        Case{onnx::TensorProto::UINT8, "\x01\xff", {1, 255}},
        Case{onnx::TensorProto::INT8, "\x01\xff", {1, -1}}}) {
    CAPTURE(c.type);
    onnx::TensorProto raw = proto_of(c.type, std::ssize(c.numbers));
    raw.set_raw_data(c.raw);
    CHECK(numbers_of(raw) == c.numbers);
    onnx::TensorProto typed = proto_of(c.type, std::ssize(c.numbers));
    for (char byte : c.raw) typed.add_int32_data(static_cast<unsigned char>(byte));
    CHECK(numbers_of(typed) == c.numbers);
    ExternalFiles files;
    CHECK(tensor_proto("w", read_tensor(raw, "w", files)).raw_data() == c.raw);
  }
}

TEST_CASE("packed tensors: unsigned integers of 32 and 64 bits are in uint64_data") {
  onnx::TensorProto narrow = proto_of(onnx::TensorProto::UINT32, 2);
  narrow.add_uint64_data(7);
  narrow.add_uint64_data(4294967295);
  CHECK(numbers_of(narrow) == std::vector<std::int64_t>{7, 4294967295});
  onnx::TensorProto wide = proto_of(onnx::TensorProto::UINT64, 1);
  wide.add_uint64_data(std::uint64_t{1} << 62);
  CHECK(numbers_of(wide) == std::vector<std::int64_t>{std::int64_t{1} << 62});
}

TEST_CASE("packed tensors: as many bytes as the elements fill") {
  onnx::TensorProto proto = proto_of(22, 5);
  proto.set_raw_data("\x21\x43");
  ExternalFiles files;
  CHECK_THROWS_AS(check_tensor(proto, "w", files), Error);
  proto.set_raw_data("\x21\x43\x05");
  CHECK(numbers_of(proto) == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  onnx::TensorProto typed = proto_of(22, 5);
  for (int i = 0; i < 5; ++i) typed.add_int32_data(0x11);
  CHECK_THROWS_AS(check_tensor(typed, "w", files), Error);
}

}  // namespace trainscope::test
