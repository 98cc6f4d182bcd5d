// Everything of a run that has a name, and how it is found: by letters in their order, by the shape
// or dtype of a value, by two ops one of which reads the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/views/model_nodes.h"
#include "gui/views/past_nodes.h"
#include "gui/views/plan_links.h"

namespace trainscope::gui {

// Of things that are found equally well the earlier kind comes first: of a node and a value with
// one name the node.
enum class FindKind : std::uint8_t {
  kCommand,
  kNode,
  kModelNode,  // of the ONNX model, and not of the plan as such
  kPastNode,   // see PastNode
  kValue,
  kKernel,
  kStage,
};
// "command", "node", "ONNX", "past node", "tensor", "kernel", "stage".
std::string_view name_of(FindKind kind);

struct FindEntry {
  FindKind kind = FindKind::kCommand;
  std::string name = {};
  std::string detail = {};  // "MatMul", "f32[8,64,128]"
  std::string target = {};  // a command, or a selection: "node:/h.0/attn/MatMul"
};

struct Found {
  std::size_t entry = 0;
  int score = 0;  // the greater the better
};

class PaletteIndex {
 public:
  // Of commands alone.
  explicit PaletteIndex(std::vector<FindEntry> commands = {}) : entries_(std::move(commands)) {}
  // Adds what the plan names.
  void add_plan(const PlanLinks& links);
  // Adds what the ONNX model names and the plan does not.
  void add_gone(std::vector<GoneNode> nodes);
  // ... and what only stages between the two have.
  void add_past(std::vector<PastNode> nodes, std::span<const StageFacts> stages);
  void add(FindEntry entry) { entries_.push_back(std::move(entry)); }

  const std::vector<FindEntry>& entries() const { return entries_; }
  // The best first; an empty query finds commands. "A->B": nodes of op A with a reader of op B, *
  // for any, of the plan, and of the ONNX model those that the plan does not have; "[*,768]":
  // values of this shape, * for any dimension; a dtype: values of it.
  std::vector<Found> find(std::string_view query, std::size_t most) const;

 private:
  // That a node is read by another.
  struct Reading {
    std::size_t entry = 0;  // of the node
    std::string op = {};
    std::string reader_op = {};
  };
  void find_readings(std::string_view from, std::string_view to, std::vector<Found>& found) const;

  std::vector<FindEntry> entries_;
  std::vector<std::string> dtypes_;  // of the plan
  std::vector<Reading> readings_;    // by entry
};

// How well the letters of `query` are found in `text` in their order, upper or lower case: 0 where
// they are not, more where they begin words, follow each other or have the same case.
int fuzzy_score(std::string_view query, std::string_view text);
// "[*,768]" against "f32[8,768]".
bool matches_shape(std::string_view pattern, std::string_view type);

}  // namespace trainscope::gui
