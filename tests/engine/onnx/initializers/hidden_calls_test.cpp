// Calls that the exporter left out or merged: files of PyTorch's exporter, as they are and with
// other texts of their calls.
#include "engine/onnx/initializers/hidden_calls.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/onnx/parameters.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

// The choices of an exported file in which a text was replaced by one of the same size.
ParameterChoices choices_of(const std::string& name, const std::string& old_text = "",
                            const std::string& new_text = "") {
  std::ifstream file(std::string(TRAINSCOPE_SOURCE_DIR) + "/tests/data/exporters/" + name,
                     std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(old_text.size() == new_text.size());
  if (!old_text.empty()) {
    const std::size_t at = bytes.find(old_text);
    REQUIRE(at != std::string::npos);
    bytes.replace(at, old_text.size(), new_text);
  }
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(bytes));
  return choose_parameters(read_proto(proto), {});
}

}  // namespace

TEST_CASE("hidden calls: a merged call is a note, unless the file shows what is detached") {
  const ParameterChoices merged = choices_of("merged.onnx");
  CHECK(merged.faults.empty());
  REQUIRE(merged.notes.size() == 1);
  CHECK(merged.notes[0].message.find("'tanh_1', which 'node_mul' read") != std::string::npos);
  const ParameterChoices told = choices_of("merged.onnx", "(%tanh, %tanh_1)", "(%tanh, %detach)");
  CHECK(told.notes.empty());
  CHECK(told.faults.empty());
  REQUIRE(told.remarks.size() == 1);
  CHECK(told.remarks[0].find("detaches, at 'node_mul'") != std::string::npos);
}

TEST_CASE("hidden calls: a call that is there under its name hides nothing") {
  for (const std::string name : {"twoln.onnx", "bn_shared.onnx", "cube.onnx", "padded.onnx",
                                 "detached.onnx", "detached-noopt.onnx", "padded-noopt.onnx"}) {
    CAPTURE(name);
    CHECK(choices_of(name).notes.empty());
    CHECK(choices_of(name).faults.empty());
  }
}

TEST_CASE("hidden calls: behind a copy of what may be detached nothing can be told") {
  const ParameterChoices cloned = choices_of("cloned.onnx");
  REQUIRE(cloned.faults.size() == 1);
  CHECK(cloned.faults[0].stays);
  CHECK(cloned.faults[0].message.find("'clone', which 'node_linear_1' read") != std::string::npos);
}

TEST_CASE("hidden calls: parameters of a merged call are a fault of those that it stands for") {
  const ParameterChoices norms = choices_of("norms.onnx");
  REQUIRE(norms.faults.size() == 1);
  CHECK(norms.faults[0].parameters ==
        std::vector<std::string>{"a.bias", "a.weight", "m.bias", "m.weight", "n.bias", "n.weight"});
}

TEST_CASE("hidden calls: names of what detach() returned") {
  CHECK(is_detached("detach"));
  CHECK(is_detached("detach_12"));
  CHECK(!is_detached("detached_1"));
}

}  // namespace trainscope::test
