// Bytes that are no model, and a model whose bytes are nested too deep.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>

#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {

TEST_CASE("malformed models: bytes that are no model") {
  auto refusal = [](std::string_view bytes) {
    return error_of([bytes] { read_bytes(bytes); }).value_or(Error(ErrorCode::kRunFailed, "none"));
  };
  CHECK(refusal("").message() == "the model file is empty");
  CHECK(refusal("hello, I am a text file\n").message().find("not an ONNX model") !=
        std::string::npos);
  // Tag of the graph field with a length far beyond the end.
  CHECK(refusal(std::string("\x08\x08\x3a\xff\xff\xff\xff\x07")).message().find("cut short") !=
        std::string::npos);
  // A field of the graph with the wire type of a number.
  CHECK(refusal(std::string("\x08\x08\x38\x01")).code() == ErrorCode::kBadInput);
  // All fields unknown.
  CHECK(refusal(std::string("\xf8\x07\x01")).message().find("IR version 0") != std::string::npos);
}

TEST_CASE("malformed models: 5000 nested graphs end in a message, not in the stack") {
  onnx::ModelProto model = small_model();
  std::string inner = "\x0a\x00";  // an empty node
  inner.resize(2);
  // graph > node (1) > attribute (5) > g (6) > node ...
  for (int i = 0; i < 5000; ++i) {
    inner = embedded('\x0a', embedded('\x2a', embedded('\x32', inner)));
  }
  std::string bytes = bytes_of(model) + embedded('\x3a', inner);
  std::optional<Error> error = error_of([&bytes] { read_bytes(bytes); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
}

}  // namespace trainscope::test
