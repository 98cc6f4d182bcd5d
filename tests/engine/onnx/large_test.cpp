// Models of a size that breaks what is recursive or quadratic.
#include <doctest/doctest.h>

#include "tests/engine/onnx/onnx_test_tools.h"
#include "tests/support/growth.h"

namespace trainscope::test {
namespace {

// Relu after Relu, `count` of them.
onnx::ModelProto chain(int count) {
  onnx::ModelProto model = small_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.clear_node();
  graph.clear_initializer();
  *graph.mutable_output(0) = value_info("v" + std::to_string(count), {2, 3});
  for (int i = 0; i < count; ++i) {
    add_node(model, "Relu", {i == 0 ? "x" : "v" + std::to_string(i)},
             {"v" + std::to_string(i + 1)});
  }
  return model;
}

}  // namespace

TEST_CASE("large models: a chain of 100000 nodes") {
  Graph graph = to_graph(read_proto(chain(100'000)), all_ops());
  CHECK(graph.node_count() == 100'000);
  CHECK(graph.node(graph.last()).name == "Relu_99999");
}

TEST_CASE("large models: a cycle through 100000 nodes is found") {
  onnx::ModelProto model = chain(100'000);
  model.mutable_graph()->mutable_node(0)->set_input(0, "v100000");
  std::optional<Error> error = error_of([&model] { read_proto(model); });
  REQUIRE(error.has_value());
  CHECK(error->message().find("is part of a cycle") != std::string::npos);
}

TEST_SUITE("slow") {
  TEST_CASE("large models: a million nodes in linear time") {
    check_linear(1'000'000, [](int nodes) {
      const std::string bytes = bytes_of(chain(nodes));
      return processor_seconds(
          [&] { CHECK(to_graph(read_bytes(bytes), all_ops()).node_count() == nodes); });
    });
  }
}

}  // namespace trainscope::test
