// Traces are read event by event; where they break, the place is named.
#include "profiler/import/trace_reader.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "profiler/import/aten_ops.h"

namespace trainscope::profiler::test {
namespace {

ByteSource source_of(const std::string& text) { return byte_source(SharedBytes::copy_of(text)); }

std::string gzip(const std::string& text) {
  std::string packed(::compressBound(static_cast<uLong>(text.size())) + 64, '\0');
  z_stream z = {};
  REQUIRE(::deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string in = text;
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(::deflate(&z, Z_FINISH) == Z_STREAM_END);
  packed.resize(z.total_out);
  ::deflateEnd(&z);
  return packed;
}

std::vector<std::string> events_of(const std::string& text, TraceFrame* frame = nullptr) {
  std::vector<std::string> events;
  TraceFrame read = read_trace(source_of(text), [&](const Json& event, const EventPlace& place) {
    events.push_back(event.dump() + "@" + std::to_string(place.byte) + ":" +
                     std::to_string(place.line));
  });
  if (frame != nullptr) *frame = std::move(read);
  return events;
}

std::string error_of(const std::string& text) {
  try {
    events_of(text);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    return error.message();
  }
  return {};
}

TEST_CASE("trace reader: events of an array and of an object, with their places") {
  CHECK(events_of("[]").empty());
  CHECK(events_of(" [ {\"a\": 1} ,\n 2, \"}]\\\"\" ]\n") ==
        std::vector<std::string>{"{\"a\":1}@3:1", "2@15:2", "\"}]\\\"\"@18:2"});
  TraceFrame frame;
  const std::string text =
      R"({"schemaVersion": 1, "x": [1, {"traceEvents": 3}], "traceEvents": [{}], "traceName": "n"})";
  CHECK(events_of(text, &frame) == std::vector<std::string>{"{}@67:1"});
  CHECK(frame.is_object);
  CHECK(frame.has_events);
  CHECK(frame.members.get<std::string>("traceName") == "n");
  CHECK(frame.members.at("x").size() == 2);
}

TEST_CASE("trace reader: every cut of a trace is refused") {
  const std::string text = R"([{"ph": "X", "args": {"d": [1, "]"]}}, {"ph": "M"}])";
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK(error_of(text.substr(0, size)).find("ends in the middle") != std::string::npos);
  }
  CHECK(error_of(text).empty());
  CHECK(error_of(text + "\n \t").empty());
  CHECK(error_of(text + "\n x").find("text behind the end of the trace, at byte 53 (line 2)") == 0);
}

TEST_CASE("trace reader: a value beyond the limit is refused, one at it is read") {
  const std::string at_limit = "[\"" + std::string(kMostEventBytes - 2, 'x') + "\"]";
  CHECK(error_of(at_limit).empty());
  CHECK(error_of("[\"" + std::string(kMostEventBytes - 1, 'x') + "\"]").find("longer than") !=
        std::string::npos);
}

TEST_CASE("byte source: gzip in one or several streams gives what went in; every cut is refused") {
  std::string text = "[";
  for (int i = 0; i < 20'000; ++i) text += "{\"n\": " + std::to_string(i * 7919) + "},";
  text += "{}]";
  const std::string packed = gzip(text);
  CHECK(events_of(packed).size() == 20'001);
  const std::string two = gzip(text.substr(0, 1000)) + gzip(text.substr(1000));
  CHECK(events_of(two) == events_of(text));
  for (std::size_t size = 2; size < packed.size(); size += packed.size() / 50) {
    CAPTURE(size);
    CHECK(error_of(packed.substr(0, size)).find("ends in the middle") != std::string::npos);
  }
}

TEST_CASE("byte source: what expands beyond any trace is refused") {
  const std::string bomb = gzip("[" + std::string(std::size_t{80} << 20, ' ') + "]");
  CHECK(error_of(bomb).find("expand beyond") != std::string::npos);
}

TEST_CASE("aten ops: forward, in place, gradients, the engine's spans, optimizers") {
  CHECK(onnx_op_of("aten::linear") == "Gemm");
  CHECK(onnx_op_of("aten::add_") == "Add");
  CHECK(onnx_op_of("aten::add__") == "");
  CHECK(onnx_op_of("AddmmBackward0") == "GemmGrad");
  CHECK(onnx_op_of("autograd::engine::evaluate_function: GeluBackward0") == "GeluGrad");
  CHECK(onnx_op_of("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad") ==
        "Accumulate");
  CHECK(onnx_op_of("Optimizer.step#AdamW.step") == "AdamWStep");
  CHECK(onnx_op_of("Optimizer.step#SGD.step") == "SgdStep");
  CHECK(onnx_op_of("onnx::BatchMatMul") == "BatchMatMul");
  CHECK(onnx_op_of("mine::op") == "");
  CHECK(onnx_op_of("aten::no_such_op") == "");
}

TEST_CASE("aten ops: FLOPs of matmuls by the shapes of their inputs") {
  CHECK(matmul_flops("aten::mm", {{3, 5}, {5, 7}}) == 2 * 3 * 5 * 7);
  CHECK(matmul_flops("aten::addmm", {{7}, {3, 5}, {5, 7}, {}, {}}) == 2 * 3 * 5 * 7);
  CHECK(matmul_flops("aten::bmm", {{4, 3, 5}, {4, 5, 7}}) == 2 * 4 * 3 * 5 * 7);
  CHECK(matmul_flops("aten::baddbmm", {{1}, {4, 3, 5}, {4, 5, 7}}) == 2 * 4 * 3 * 5 * 7);
  CHECK(matmul_flops("aten::linear", {{3, 5}, {7, 5}}) == 0);
  CHECK(matmul_flops("aten::mm", {}) == 0);
  CHECK(matmul_flops("aten::mm", {{3, 5}}) == 0);
  CHECK(matmul_flops("aten::mm", {{3, 5}, {6, 7}}) == 0);
  CHECK(matmul_flops("aten::mm", {{3}, {3, 7}}) == 0);
  CHECK(matmul_flops("aten::mm", {{-3, 5}, {5, 7}}) == 0);
  CHECK(matmul_flops("aten::mm", {{1'000'000'000'000, 5}, {5, 1'000'000'000'000}}) == 0);
}

}  // namespace
}  // namespace trainscope::profiler::test
