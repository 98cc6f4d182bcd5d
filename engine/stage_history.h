// The stages of a model's compilation or of a recorded run, to ask what became of nodes and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/compile.h"
#include "engine/passes/fate.h"        // IWYU pragma: export
#include "engine/passes/stage_diff.h"  // IWYU pragma: export

namespace trainscope {

// Which of the labels is meant by a pass ("loss"), number ("6", "06"), label ("06-loss") or file
// name; of several with the name the last. Empty: the last one. Throws kUsage with the nearest name
// when there is none. There must be a label.
std::size_t find_label(std::span<const std::string> labels, std::string_view stage);

// The graph of a stage of a run, without its rewrite log. Throws kIo and kBadInput.
Graph read_stage_graph(const RunReader& run, const StageRecord& stage,
                       std::int64_t session = kNewestSession);

class StageHistory {
 public:
  // Of stages with all their graphs (KeepGraphs::kAll).
  static StageHistory of(Stages stages);
  // Of a session of a run, whose graphs are read when they are asked for. Throws kUsage when there
  // was no such session, kBadInput when it has no stages, or a stage changed the graph and has no
  // rewrite log: an older program's.
  static StageHistory of(const RunReader& run, std::int64_t session = kNewestSession);

  const History& history() const { return *history_; }
  const std::shared_ptr<const History>& shared_history() const { return history_; }
  // See find_label.
  std::size_t find(std::string_view stage) const;
  Graph graph(std::size_t stage) const { return graph_(stage); }

 private:
  std::shared_ptr<const History> history_;
  std::function<Graph(std::size_t)> graph_;
};

// The fates of the ONNX model's nodes and values to the last stage, of all or of those with a name:
// a node and a value may have the same. Throws kUsage with the nearest name when nothing has it.
std::vector<Fate> imported_fates(const StageHistory& stages, std::string_view name = {});
// The same, of graphs that have been read: of the imported stage and of the last.
std::vector<Fate> imported_fates(const std::shared_ptr<const History>& history,
                                 const Graph& imported, const Graph& last,
                                 std::string_view name = {});

}  // namespace trainscope
