// What of a selection another run has too, or another session of the run: by names, since serials
// and rows are of one plan.
#pragma once

#include <cstddef>
#include <string>

#include "gui/data/run_data.h"
#include "gui/views/plan_links.h"
#include "gui/views/selection.h"

namespace trainscope::gui {

// A node by the ONNX node that it stems from: its own name may be a number that another plan gives
// to another one.
struct KeptNode {
  std::string source = {};  // empty: it stems from none, and is known by its name
  std::string name = {};
  std::string op = {};
  PlanPhase phase = PlanPhase::kForward;
  std::size_t position = 0;  // among those of this source, op and phase
};

struct KeptSelection {
  Subject subject = Subject::kNothing;  // a node, value, kernel, or node of the model
  std::string stage = {};               // its label; empty: the last
  std::string name = {};                // of what is no node
  KeptNode node = {};                   // or what makes the value
  bool is_made = false;                 // a value that a node makes
  std::size_t position = 0;             // of the value among those of its node
};

// A call is its node; buffers, steps and ranges have no names. `links` null: there is no plan.
KeptSelection kept_selection(const Selection& selection, const RunData& run,
                             const PlanLinks* links);
// Nothing is selected of what the run has not.
Selection selection_again(const KeptSelection& kept, RunData& run, const PlanLinks* links);

}  // namespace trainscope::gui
