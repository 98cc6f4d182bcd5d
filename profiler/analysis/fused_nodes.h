// ONNX nodes that one of two runs computes in one call, and the other in several: a row of both.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/bundle/plan_record.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::profiler {

// Where a forward call of either plan computes several nodes, all of them have one name: that of
// the first. A node that several such calls share, as a mask of all layers, stays by itself.
class FusedNodes {
 public:
  FusedNodes(const PlanView& a, const PlanView& b);

  // The name of the row that the node's time stands in: often its own.
  std::string name_of(std::string_view node) const;
  // Rows by node become rows by these names: times and counts of one name are added up.
  void merge(Breakdown& by_node) const;

 private:
  void add(const PlanView& plan);
  void unite(std::string_view first, std::string_view other);

  std::map<std::string, std::string, std::less<>> into_;  // a node, and the one it counts for
};

}  // namespace trainscope::profiler
