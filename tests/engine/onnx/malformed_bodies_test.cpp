// Malformed bodies of If, Loop and Scan: each is refused with the documented code and a message
// that names the culprit.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

using onnx::AttributeProto;
using onnx::ModelProto;

const BrokenModel kBodyCases[] = {
    {"If without its second branch",
     [](ModelProto& m) {
       onnx::NodeProto& node = add_node(m, "If", {"x"}, {"z"}, "branch");
       add_attribute(node, "then_branch", AttributeProto::GRAPH).mutable_g()->set_name("then");
     },
     "node 'branch' (If of opset 17): there is no graph 'else_branch'"},
    {"Loop without a body", [](ModelProto& m) { add_node(m, "Loop", {"x"}, {"z1"}, "turn"); },
     "node 'turn' (Loop of opset 17): there is no graph 'body'"},
    {"Loop of another number of states",
     [](ModelProto& m) {
       onnx::NodeProto& node = add_node(m, "Loop", {"x", "x", "x"}, {"z1"}, "turn");
       add_attribute(node, "body", AttributeProto::GRAPH).mutable_g()->set_name("g");
     },
     "node 'turn' (Loop of opset 17): its graph has 0 inputs, 3 are expected"},
    {"Scan of more inputs than there are",
     [](ModelProto& m) {
       onnx::NodeProto& node = add_node(m, "Scan", {"x"}, {"z2"}, "sweep");
       add_attribute(node, "body", AttributeProto::GRAPH).mutable_g()->set_name("g");
       add_attribute(node, "num_scan_inputs", AttributeProto::INT).set_i(5);
     },
     "node 'sweep' (Scan of opset 17): its graph has 0 inputs, there are 1, of which 5 are "
     "scanned"},
    {"unknown ops in the bodies of nodes, in one report",
     [](ModelProto& m) {
       onnx::NodeProto& node = add_node(m, "If", {"x"}, {"z"}, "branch");
       for (const char* branch : {"then_branch", "else_branch"}) {
         onnx::GraphProto& body = *add_attribute(node, branch, AttributeProto::GRAPH).mutable_g();
         onnx::NodeProto& inner = *body.add_node();
         inner.set_op_type(std::string("Only_") + branch);
         inner.add_input("x");
         inner.add_output("y1");
         body.add_output()->set_name("y1");
       }
     },
     "Only_else_branch (opset 17, 1 node): there is no such op; branch/Only_else_branch_0"},
    {"a body that reads what nothing produces",
     [](ModelProto& m) {
       onnx::NodeProto& node = add_node(m, "If", {"x"}, {"z"}, "branch");
       onnx::GraphProto& body =
           *add_attribute(node, "then_branch", AttributeProto::GRAPH).mutable_g();
       body.add_output()->set_name("nowhere");
     },
     "node 'branch' (If): reads 'nowhere', which nothing produces"},
    {"a body that makes a value twice",
     [](ModelProto& m) {
       onnx::NodeProto& node = add_node(m, "If", {"x"}, {"z"}, "branch");
       onnx::GraphProto& body =
           *add_attribute(node, "then_branch", AttributeProto::GRAPH).mutable_g();
       for (int i = 0; i < 2; ++i) {
         onnx::NodeProto& inner = *body.add_node();
         inner.set_op_type("Relu");
         inner.add_input("x");
         inner.add_output("y1");
       }
     },
     "node 1 (Relu): produces 'y1', which node 0 (Relu) produces already"},
};

}  // namespace

TEST_CASE("malformed bodies: each is refused with its message and code") {
  check_refused(kBodyCases, small_model());
}

}  // namespace trainscope::test
