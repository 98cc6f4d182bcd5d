// Runs with a mistake planted in one node, pass or update of a step, and what bisecting says of
// them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bisect/run_replay.h"
#include "engine/bisect/step_recording.h"
#include "engine/ir/rewriter.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {

// A model, its step by definition, and the step in f32 that mistakes are planted in.
struct Subject {
  // One of tests/data/models.
  explicit Subject(std::string_view model, OptimizerKind optimizer = OptimizerKind::kAdamW,
                   StepPrecision precision = StepPrecision::kF32, int threads = 1,
                   KernelChoice kernels = KernelChoice::kFastest);
  Subject(const OnnxModel& model, CompileOptions of_training, std::vector<NamedTensors> of_steps);

  CompileOptions options;
  DefinedStep defined;
  UnfusedStep plain;
  Schedule schedule{.learning_rate = 1e-3};
  std::vector<NamedTensors> batches;  // of steps 1, 2 ..

 private:
  Subject(const ReferenceModel& reference, OptimizerKind optimizer, StepPrecision precision,
          int threads, KernelChoice kernels);
};

// Changes of a step's graph. Each value keeps its name, and with it its row in the trace.
class Planter {
 public:
  explicit Planter(const Subject& subject);

  Graph& graph() { return graph_; }
  // The nth node of an op in a phase, from 0.
  NodeId node(std::string_view op, int nth = 0, Phase phase = Phase::kForward) const;
  // ... that is a part of the gradient of a forward node.
  NodeId gradient_node(NodeId forward, std::string_view op) const;
  // The nth sum of two readers' contributions to a gradient.
  NodeId gradient_sum(int nth) const;
  ValueId gradient_of(std::string_view parameter) const;
  ValueId output(NodeId node) const { return graph_.node(node).outputs.front(); }
  std::string name(NodeId node) const { return model_node(graph_, graph_.node(node)).name; }

  void set(NodeId node, std::string attribute, Attribute value);
  void set_op(NodeId node, std::string_view op);
  void swap_inputs(NodeId node, int a, int b);
  // The node's first output is what `make` gives of its inputs.
  using Make = std::function<ValueId(Builder&, const std::vector<ValueId>& inputs)>;
  void remake(NodeId node, const Make& make);
  // The value is what `change` gives of it.
  using Change = std::function<ValueId(Builder&, ValueId value)>;
  void transform(ValueId value, const Change& change);
  // An input is what `change` gives of it, for this node alone.
  void change_input(NodeId node, int input, const Change& change);
  // After the step the state is as before.
  void forget_update(std::string_view state);

 private:
  void take_name(ValueId from, ValueId to);

  Graph graph_;
  Rewriter rewriter_;
};

ValueId times(Builder& b, ValueId value, double factor);

// What the replay of a graph's steps says.
struct ReplayOf {
  bool with_elements = true;
  std::int64_t steps = 2;
  std::int64_t from = 1;   // the first step that the graph runs; those before run the plain one
  NamedTensors kept = {};  // what the run begins with; the rest as the graph has it
  double rounding = 0.0;   // see StepReplay
};
RunReplay replayed(const Subject& subject, const Graph& graph, const ReplayOf& of = {});
// The same steps as a trace in a folder.
void record(const Subject& subject, const Graph& graph, const ReplayOf& of, const Folder& folder);

}  // namespace trainscope::test
