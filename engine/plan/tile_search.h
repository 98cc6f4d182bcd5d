// Which calls can run tile by tile, and which neighbours make sections; batch_tiles.cpp places
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/plan/batch_tiles.h"
#include "engine/plan/program_builder.h"

namespace trainscope {

// A call that may be in a section, and how.
struct TiledCall {
  const Kernel* kernel = nullptr;
  OtherKernels others;
  Params params;
  std::vector<TileSlice> inputs;
  std::vector<TileSlice> outputs;
};

// A view of a graph's node as it runs on one of so many equal batch tiles.
class TileNode {
 public:
  TileNode(const Graph& graph, const Node& node, const TiledCall& call, std::int64_t tiles);

  OpArgs args() const;
  // Whether the op makes of such inputs what the tile's slice of its results should be.
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

// The tiled sections of a program, with as many tiles as it has threads; in `calls`, by time, how
// those in sections run.
std::vector<TimeSection> find_tiled_sections(const Program& program,
                                             const BatchTileOptions& options,
                                             std::vector<TiledCall>& calls);

}  // namespace trainscope
