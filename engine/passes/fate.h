// What became of a node or value, stage by stage, and what one stage has and another has not: from
// the rewrite logs of the stages between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/rewrite_log.h"

namespace trainscope {

struct HistoryStage {
  std::string label;    // "07-fuse_gelu"
  RewriteLog rewrites;  // since the stage before; of the first one: since the ONNX model
};
using History = std::vector<HistoryStage>;

enum class FateKind : std::uint8_t {
  kKept,
  kRenamed,      // it, or a value that always equals it, under another name
  kReplaced,     // a node without effect: its readers read a value that no node makes
  kInside,       // of one node, which does its work with that of others
  kSplit,        // into several nodes
  kFolded,       // to a constant, which may have been used up since; of a split, in all its parts
  kDead,         // nobody read it
  kUnexplained,  // it, or a part of it, is gone, and no log says why
};
inline constexpr int kFateKinds = 8;
// "kept", "renamed", "replaced", "inside", "split", "folded", "dead", "unexplained".
std::string_view name_of(FateKind kind);

// An entry of a stage's log, about something that a fate went through.
struct FateStep {
  std::size_t stage = 0;                           // a position in the history
  std::shared_ptr<const RewriteEntry> entry = {};  // with a share of the history
};

struct Fate {
  NamedThing thing;
  FateKind kind = FateKind::kKept;
  std::vector<NamedThing> now;  // what it is, or what is in its place, in the last stage
  std::vector<FateStep> steps;
  // Of a value whose gradient is there in the last stage: that; else without a name.
  NamedThing gradient;
  // The one that made its kind what it is; null: nothing did (kKept), or nothing said so
  // (kUnexplained).
  const FateStep* decided() const {
    return decision < 0 ? nullptr : &steps[static_cast<std::size_t>(decision)];
  }
  std::ptrdiff_t decision = -1;
};

// Why a fate is what it is: a sentence.
std::string reason_of(const History& history, const Fate& fate);
// The rule of a step.
const RewriteRule& rule_of(const History& history, const FateStep& step);

// What an entry says of its thing: "inside '/gelu/Gelu'", where `others` names its others.
std::string text_of(const RewriteEntry& entry, std::string_view others);
// What it says of one of its others: "does the work of '/gelu/Mul'"; empty: nothing.
std::string text_beside(const RewriteEntry& entry);
// What a step did to the fate's thing; `others` names the others of its entry.
std::string text_of(const FateStep& step, std::string_view others);

class Fates {
 public:
  // For what is in stage `from` of the history, or, where that is kModel, in the ONNX model, up to
  // stage `to`, whose graph is `end`.
  static constexpr std::ptrdiff_t kModel = -1;
  Fates(std::shared_ptr<const History> history, std::ptrdiff_t from, std::size_t to,
        const Graph& end);

  Fate of(const NamedThing& thing) const;

  // The entry that added a node or value after stage `from`; null: it was there, or is not known.
  const FateStep* added(Serial serial) const;

 private:
  // Entries of one stage of the history by what they are about, in order.
  struct Index {
    std::unordered_map<Serial, std::vector<const RewriteEntry*>> by_serial;
    std::unordered_map<std::string, std::vector<const RewriteEntry*>> of_model;  // by kind and name
    std::unordered_map<Serial, std::vector<const RewriteEntry*>> copies;         // by the original
  };
  struct Course;  // a fate on its way to the last stage
  static Index index_of(const RewriteLog& log);
  const std::vector<const RewriteEntry*>* entries_about(std::size_t stage,
                                                        const NamedThing& thing) const;
  void advance(Course& course, std::size_t stage) const;
  void find_gradient(Fate& fate) const;
  void settle(Course& course) const;

  FateStep step(std::size_t stage, const RewriteEntry& entry) const {
    return {.stage = stage, .entry = {history_, &entry}};
  }

  std::shared_ptr<const History> history_;
  std::size_t first_;  // the first log that counts
  std::size_t to_;
  std::unordered_map<Serial, bool> is_node_at_end_;
  std::vector<Index> stages_;  // from first_
  std::unordered_map<Serial, FateStep> added_;
  std::unordered_map<Serial, NamedThing> gradients_;  // by what they are of
};

// All nodes and values of the ONNX model, in the order of the import log and the imported graph.
std::vector<NamedThing> imported_things(const History& history, const Graph& imported);
// All nodes and values of a graph, nodes in their order first.
std::vector<NamedThing> things_of(const Graph& graph);

}  // namespace trainscope
