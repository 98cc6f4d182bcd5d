// Time and memory of stages before they are placed.
#include "engine/stage_estimate.h"

#include <doctest/doctest.h>

#include "engine/record.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

TEST_CASE("stage_estimate: live bytes are those of values between their maker and last reader") {
  // x of 16 bytes throughout; a and b of 16 bytes overlap, then b and y.
  const Graph chain = graph(
      "(float[4] x) => (float[4] y) {\n"
      "  a = Relu(x)\n"
      "  b = Relu(a)\n"
      "  y = Relu(b)\n"
      "}");
  CHECK(estimate_stage(chain, default_machine()).live_bytes == 16 * 3);
}

TEST_CASE("stage_estimate: a value that is read late is alive until then") {
  const Graph skip = graph(
      "(float[4] x) => (float[4] y) {\n"
      "  a = Relu(x)\n"
      "  b = Relu(a)\n"
      "  c = Relu(b)\n"
      "  y = Add(c, a)\n"
      "}");
  CHECK(estimate_stage(skip, default_machine()).live_bytes == 16 * 4);
}

TEST_CASE("stage_estimate: a view has the bytes of what it views") {
  const Graph view = graph(
      "(float[4] x) => (float[4,1] y) {\n"
      "  a = Relu(x)\n"
      "  b = Flatten<axis = 1>(a)\n"
      "  y = Relu(b)\n"
      "}");
  CHECK(estimate_stage(view, default_machine()).live_bytes == 16 * 3);
}

TEST_CASE("stage_estimate: more work takes more time") {
  const auto seconds_of = [](const std::string& width) {
    return estimate_stage(
               graph("(float[" + width + "] x) => (float[" + width + "] y) { y = Relu(x) }"),
               default_machine())
        .seconds;
  };
  CHECK(seconds_of("4") > 0.0);
  CHECK(seconds_of("4000000") > 10.0 * seconds_of("4"));
}

TEST_CASE("stage_estimate: a record of a stage without its graph does not know them") {
  Stage stage;
  stage.name = "x";
  stage.nodes = 3;
  const StageRecord record = stage_record(stage, nullptr);
  CHECK(!(record.seconds_after == record.seconds_after));
  CHECK(record.live_bytes_after == -1);
  const StageRecord read = stage_from([&] {
    Json json = to_json(record);
    json.set("file", "00-x.onnx");
    return json;
  }());
  CHECK(read.live_bytes_after == -1);
  CHECK(!(read.seconds_after == read.seconds_after));
}

}  // namespace
}  // namespace trainscope::test
