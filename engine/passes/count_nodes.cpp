// count_nodes: counts the nodes that reach it.
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

bool count_nodes(Graph& graph, PassContext& context) {
  context.count("nodes", static_cast<std::int64_t>(graph.node_count()));
  return false;
}

}  // namespace

Pass count_nodes_pass() {
  return {.name = "count_nodes", .doc = "Count the nodes.", .run = count_nodes};
}

}  // namespace trainscope
