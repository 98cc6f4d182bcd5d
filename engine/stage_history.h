// The stages of a model's compilation or of a recorded run, to ask what became of nodes and values.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/compile.h"
#include "engine/passes/fate.h"        // IWYU pragma: export
#include "engine/passes/stage_diff.h"  // IWYU pragma: export

namespace trainscope {

class StageHistory {
 public:
  // Of stages with all their graphs (KeepGraphs::kAll).
  static StageHistory of(Stages stages);
  // Of a run's newest session, whose graphs are read when they are asked for. Throws kBadInput when
  // it has no stages, or a stage changed the graph and has no rewrite log: an older program's. The
  // reader must outlive it.
  static StageHistory of(const RunReader& run);

  const History& history() const { return history_; }
  // By pass ("loss"), label ("06-loss") or file name; of several with the name the last. Empty: the
  // last stage. Throws kUsage when there is none.
  std::size_t find(std::string_view stage) const;
  Graph graph(std::size_t stage) const { return graph_(stage); }

 private:
  History history_;
  std::function<Graph(std::size_t)> graph_;
};

// The fates of the ONNX model's nodes and values to the last stage, of all or of those with a name:
// a node and a value may have the same. Throws kUsage with the nearest name when nothing has it.
std::vector<Fate> imported_fates(const StageHistory& stages, std::string_view name = {});

}  // namespace trainscope
