// Plans to start the search from.
#include "memplan/remat/seeds.h"

#include <vector>

#include "memplan/at.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;

BitRows no_holds(const RematGraph& graph) { return {graph.size(), graph.size() + 1}; }

// Both ends included; nothing if the last one is before the first.
void hold(BitRows& held, int32_t node, int32_t first, int32_t last) {
  if (first <= last) held.flip(node, first, last);
}

}  // namespace

BitRows hold_all(const RematGraph& graph) {
  BitRows held = no_holds(graph);
  for (int32_t node = 0; node < graph.size(); ++node) {
    hold(held, node, node + 1, graph.last_use(node));
  }
  return held;
}

BitRows hold_with_reruns(const RematGraph& graph, int32_t frontier,
                         std::span<const int32_t> dropped) {
  BitRows held = no_holds(graph);
  std::vector<bool> available(at(graph.size()), true);
  for (const int32_t node : dropped) available[at(node)] = false;
  for (int32_t node = 0; node < graph.size(); ++node) {
    int32_t last = graph.horizon(node);
    if (!available[at(node)]) {
      last = node;
      for (const int32_t reader : graph.consumers(node)) {
        if (reader <= frontier) last = reader;
      }
    }
    hold(held, node, node + 1, last);
  }
  std::vector<int32_t> missing;
  for (int32_t stage = frontier + 1; stage < graph.size(); ++stage) {
    missing.assign(1, stage);
    for (size_t i = 0; i < missing.size(); ++i) {
      for (const int32_t input : graph.inputs(missing[i])) {
        if (available[at(input)]) continue;
        available[at(input)] = true;
        hold(held, input, stage + 1, graph.horizon(input));
        missing.push_back(input);
      }
    }
  }
  return held;
}

BitRows holds_of(const RematGraph& graph, const RematPlan& plan) {
  BitRows held = no_holds(graph);
  std::vector<int32_t> made_in(at(graph.size()), -1);  // stage; -1: not in memory
  int32_t stage = 0;
  bool over = false;  // the stage's first execution was the last one
  for (const RematAction& each : plan.actions) {
    if (each.kind == RematActionKind::kCompute) {
      if (over) ++stage;
      over = each.node == stage;
      made_in[at(each.node)] = stage;
    } else {
      hold(held, each.node, made_in[at(each.node)] + 1, stage);
      made_in[at(each.node)] = -1;
    }
  }
  for (int32_t node = 0; node < graph.size(); ++node) {
    if (made_in[at(node)] >= 0) hold(held, node, made_in[at(node)] + 1, graph.size() - 1);
  }
  return held;
}

}  // namespace trainscope::memplan
