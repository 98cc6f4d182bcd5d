// Which block each node of a picture belongs to: a layer of the model with its gradients and
// updates, by the scopes in ONNX names, or else where ops repeat.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gui/views/graph/graph_picture.h"

namespace trainscope::gui {

// What blocks the nodes of earlier stages were in, by serial: nodes stay in theirs.
using BlockMemory = std::unordered_map<std::uint32_t, std::string>;

struct Blocks {
  std::vector<std::string> names = {};  // in the order of their first forward nodes
  std::vector<std::uint32_t> of = {};   // by place of the node: a position in `names`
};

// Adds the picture's nodes to the memory.
Blocks blocks_of(const GraphPicture& picture, BlockMemory& memory);

// The scope of an ONNX name that makes a block: up to its first level that is numbered ("h.3" of
// "/h.3/attn/MatMul"), or else its first level; empty: the name has no scope.
std::string_view block_scope(std::string_view name);

}  // namespace trainscope::gui
