// Runs ops one node at a time on tensors of their own, without a plan: for constant folding,
// comparisons and tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/builder.h"
#include "engine/ir/graph.h"
#include "engine/plan/lower.h"
#include "kernels/api/kernel.h"

namespace trainscope {

// What the calls of one evaluator may cost. A few nodes of a model can ask for years of work.
struct WorkLimit {
  std::int64_t tensor_bytes = 0;  // of each tensor and workspace
  std::int64_t work = 0;          // of all calls but small ones: FLOPs, and bytes read and written
};

// For values that are known when a graph is built: a second or so, and less than 1 GiB.
inline constexpr WorkLimit kKnownValuesLimit{.tensor_bytes = std::int64_t{1} << 28,
                                             .work = std::int64_t{1} << 29};

struct ReferenceOptions {
  KernelChoice kernels = KernelChoice::kFastest;
  int threads = 1;
  std::optional<WorkLimit> limit = {};
};

// What Builder::set_evaluate takes. An op without a kernel is computed by its decomposition, a view
// by copying; without either the result is empty, and so it is for a call beyond the limit. The
// function has copies of both tables. With a limit it must not be called by two threads.
Evaluate evaluator(const OpTable& ops, const KernelTable& kernels,
                   const ReferenceOptions& options = {});
// ... or a share of them: of many evaluators, each with a limit of its own.
Evaluate evaluator(std::shared_ptr<const OpTable> ops, std::shared_ptr<const KernelTable> kernels,
                   const ReferenceOptions& options);

// What the values of a graph hold after reference_run.
struct ReferenceValues {
  Graph graph;                      // a copy, which shares the nodes of the one that was run
  std::vector<SharedTensor> by_id;  // null: no such value

  const Tensor& at(ValueId value) const;
  const Tensor& at(std::string_view value_name) const;  // fails with kUsage when there is none
};

// Computes every value of the graph, node by node. `inputs` holds tensors by value name: of every
// graph input, and of the parameters, states and constants that shall not have their initial
// elements. States are not updated. Fails with kBadInput when an input is missing or of another
// type, or when a node has no kernel.
ReferenceValues reference_run(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                              const Evaluate& evaluate);

// What reference_run begins with, by ValueId: inputs, parameters, states and constants; null for
// what nodes compute.
std::vector<SharedTensor> given_values(const Graph& graph,
                                       const std::map<std::string, Tensor>& inputs);
// One node: its outputs from its inputs, which are in `values`. The node is of this graph, or one
// of its nodes with other attributes or inputs, and outputs of the same types. Fails as
// reference_run.
void compute_node(const Graph& graph, const Node& node, const Evaluate& evaluate,
                  std::vector<SharedTensor>& values);

// Sees what a node computed, as soon as it has; the tensor is there during the call alone.
using SeeValue = std::function<void(ValueId value, const Tensor& tensor)>;
// ... and forgets each value behind its last reader, so that it takes the memory of a step, not of
// all values.
void reference_run(const Graph& graph, const std::map<std::string, Tensor>& inputs,
                   const Evaluate& evaluate, const SeeValue& see);

}  // namespace trainscope
