// Where a step may be cut into the stages of a pipeline: between pieces.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"

namespace trainscope {

inline constexpr int kNoPiece = -1;

// A piece is a section of the step that cannot be cut: between two pieces one activation alone
// passes on, and its gradient comes back. A stage of a pipeline is one piece or several in a row.
// What backward makes belongs to the piece of the forward node that it is the gradient of.
struct Pieces {
  std::vector<int> of;                // by NodeId; kNoPiece: needs no parameter, runs anywhere
  std::vector<ValueId> passing;       // from each piece to the next one: one fewer
  std::vector<bool> with_parameters;  // by piece: whether one of its forward nodes reads any

  int count() const { return static_cast<int>(with_parameters.size()); }
};
Pieces find_pieces(const Graph& graph);

}  // namespace trainscope
