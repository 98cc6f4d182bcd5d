// Two stages side by side: what each node and value of one is in the other, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/passes/fate.h"

namespace trainscope {

struct DiffRow {
  // A FateKind's name; of what the second stage alone has "added" or "rematerialized"; of stages of
  // two compilations "same", "differs", "only in A" or "only in B".
  std::string_view kind;
  NamedThing thing;
  // Of what the first stage has: what it is in the second. Of what the second alone has: what it
  // was made of, in the first.
  std::vector<NamedThing> others = {};
  std::string changes = {};  // of what both have, or what it is that only one has
  std::string stage = {};    // label of the stage that decided the kind; empty: none
  std::string rule = {};
  std::string reason = {};
};

struct StageDiff {
  std::vector<DiffRow> rows;
  std::map<std::string, std::int64_t> nodes;  // how many rows there are of a kind
  std::map<std::string, std::int64_t> values;
  std::int64_t unexplained = 0;
};

// A graph of a compilation, and its place in the history.
struct StageGraph {
  std::size_t stage = 0;
  const Graph& graph;
};
// `a` comes before `b`, or is it.
StageDiff diff_stages(const std::shared_ptr<const History>& history, const StageGraph& a,
                      const StageGraph& b);

// Stages of two compilations, which share no serials: matched by names, then nodes by op and
// source, and values by the nodes that make them.
StageDiff compare_graphs(const Graph& a, const Graph& b);

}  // namespace trainscope
