// What could run in parts, and which neighbours make chains; chains.cpp places them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/plan/chains.h"

namespace trainscope {

// A node as it runs on one of so many equal parts. It must outlive this.
class PartNode {
 public:
  PartNode(const Graph& graph, const Node& node, std::span<const PartOf> inputs,
           std::span<const PartOf> outputs, std::int64_t parts);

  OpArgs args() const;
  // Whether the op makes of such inputs what a part of its results should be.
  bool fits() const;
  // Shapes, without bytes.
  std::vector<TensorView> inputs() const { return views(node_.inputs, input_types_); }
  std::vector<TensorView> outputs() const { return views(node_.outputs, output_types_); }

 private:
  static std::vector<TensorView> views(const std::vector<ValueId>& values,
                                       const std::vector<TensorType>& types);

  const Node& node_;
  NodeArgs whole_;
  Attributes attributes_;
  std::vector<TensorType> input_types_;
  std::vector<TensorType> output_types_;
};

// An instruction that may be in a chain, and how.
struct Link {
  const Kernel* kernel = nullptr;
  Params params;
  std::vector<PartOf> inputs;
  std::vector<PartOf> outputs;
};

// Chains of the program's instructions, with as many parts as it has threads; in `links`, by
// instruction, what those in chains are.
std::vector<Chain> find_chains(const Program& program, const KernelTable& kernels,
                               const ChainOptions& options, std::vector<Link>& links);

}  // namespace trainscope
