// All that is known of the selection, as rows: names, numbers, links to what it has to do with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/views/plan_links.h"
#include "gui/views/selection.h"

namespace trainscope::gui {

enum class InspectionKind : std::uint8_t {
  kHeading,
  kText,  // label and text
  kLink,  // to what `target` names
  kNote,  // a sentence
  // Label and number, by what it is the number of.
  kFlops,
  kBytesRead,
  kBytesWritten,
  kWorkspace,
  kValueBytes,
  kBuffer,
  kOffset,
  kBufferBytes,
  kBirth,
  kDeath,
  kLife,
  kCall,
  kCallCount,
  kTime,
  kShare,
  kGigaflops,
  kGigabytes,
  kRoof,
};
constexpr bool is_number(InspectionKind kind) { return kind >= InspectionKind::kFlops; }
// What a number is, with its unit, in a sentence; empty: the kind is no number.
std::string_view meaning_of(InspectionKind kind);

struct InspectionRow {
  InspectionKind kind = InspectionKind::kText;
  std::string label = {};
  std::string text = {};    // of kText, kLink and kNote
  std::string detail = {};  // of kLink: type and bytes
  std::string target = {};  // of kLink: "value:NAME"; empty: it leads nowhere
  bool is_wide = false;     // of kLink: its list has no labels
  double number = 0.0;
  // Where a command line prints the same number: "ARGUMENTS | POINTER", both of `trainscope`; {run}
  // stands for the run.
  std::string fact = {};
};

struct Inspection {
  std::string what =
      {};  // "node", "tensor", "buffer", "kernel", "ONNX node"; empty: nothing is selected
  std::string name = {};
  std::string stage = {};  // the label of the one that has the node; empty: the plan has it
  std::vector<InspectionRow> rows = {};
};

// Of its subject; of a call its node.
Inspection inspection_of(const Selection& selection, RunData& run, const PlanLinks* links);

}  // namespace trainscope::gui
