// Everything of a run that has a name, and how it is found: by letters in their order, by the shape
// or dtype of a value, by two ops one of which reads the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/views/model_nodes.h"
#include "gui/views/plan_links.h"

namespace trainscope::gui {

enum class FindKind : std::uint8_t { kCommand, kNode, kValue, kKernel, kStage, kModelNode };
std::string_view name_of(FindKind kind);  // "command", "node", "tensor", "kernel", "stage", "ONNX"

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
  void add(FindEntry entry) { entries_.push_back(std::move(entry)); }

  const std::vector<FindEntry>& entries() const { return entries_; }
  // The best first; an empty query finds commands. "A->B": nodes of op A with a reader of op B, *
  // for any; "[*,768]": values of this shape, * for any dimension; a dtype: values of it.
  std::vector<Found> find(std::string_view query, std::size_t most) const;

 private:
  std::vector<FindEntry> entries_;
  std::vector<std::string> dtypes_;                           // of the plan
  std::vector<std::pair<std::size_t, std::string>> readers_;  // entry of a node, op of a reader
};

// How well the letters of `query` are found in `text` in their order, upper and lower case alike: 0
// where they are not, more where they begin words or follow each other.
int fuzzy_score(std::string_view query, std::string_view text);
// "[*,768]" against "f32[8,768]".
bool matches_shape(std::string_view pattern, std::string_view type);

}  // namespace trainscope::gui
