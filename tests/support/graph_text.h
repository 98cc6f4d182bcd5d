// Graphs from text, passes over them, and their results on given inputs: what graph tests are made
// of.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/core/tensor.h"
#include "engine/exec/reference.h"
#include "engine/ir/graph.h"

namespace trainscope::test {

// ONNX's text form without its header: "(float[2,3] x) => (float[2] y) <float[3] w = {1, 2, 3}>
// { a = Relu(x)  y = ... }". Opset 17, graph name "g".
OnnxModel model(std::string_view text);
// The imported graph; values known at compile time are computed.
Graph graph(std::string_view text, const ImportOptions& options = {});
Graph graph(const OnnxModel& model, const ImportOptions& options = {});
// All stages of the default pipeline.
Stages stages(std::string_view text, const CompileOptions& options = {});
// The graph after the named passes of the default pipeline, each verified by the pass manager.
Graph passed(Graph graph, const std::vector<std::string>& passes,
             const TrainingOptions& options = {});
// Whether the pass says that it changes the graph.
bool changes(Graph graph, std::string_view pass, const TrainingOptions& options = {});

// The lines of print() that are about nodes and ends: without inputs, parameters and constants.
std::string node_lines(const Graph& graph);
// How many nodes of an op there are.
int count_ops(const Graph& graph, std::string_view op);

using Tensors = std::map<std::string, Tensor>;
// Random elements for every input and parameter; integers are in [0, 10), the scalars of a training
// step are 1. The same names and types give the same elements.
Tensors random_inputs(const Graph& graph, std::uint64_t seed);
// What the graph's outputs hold, by name, computed node by node with the reference kernels.
Tensors outputs_of(const Graph& graph, const Tensors& inputs);
// Outputs, loss, gradients ("d NAME") and next states ("next NAME"), by name.
Tensors results_of(const Graph& graph, const Tensors& inputs);
// The largest |a - b| / max(1, |b|) over elements; infinite when types differ or one is NaN.
double difference(const Tensor& a, const Tensor& b);
// The same over two sets; infinite when the names differ.
double difference(const Tensors& a, const Tensors& b);

Tensor floats(Shape shape, const std::vector<float>& values);
Tensor doubles(Shape shape, const std::vector<double>& values);

// The error that `action` throws; none when it throws nothing.
std::optional<Error> error_of(const std::function<void()>& action);
// Message, context and hint in one text; empty when nothing is thrown.
std::string refusal_of(const std::function<void()>& action);
bool contains(std::string_view text, std::string_view part);

}  // namespace trainscope::test
