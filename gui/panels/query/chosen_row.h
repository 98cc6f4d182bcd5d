// Which row is chosen of a table whose rows are calls by node, kernel, op, ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/bundle/plan_record.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {

// The row that was chosen last, whatever it stands for, until another call is selected elsewhere or
// rows are by something else: then the one that has the selected call.
class ChosenRow {
 public:
  // In each frame, before it is asked.
  void follow(const PlanView& plan, std::uint32_t call, profiler::GroupBy by);
  // `call` is the one that is selected now.
  void choose(std::string_view name, bool is_call, std::uint32_t call);
  bool is(std::string_view name, bool is_call) const {
    return is_there_ && is_call_ == is_call && name_ == name;
  }

 private:
  bool is_there_ = false;
  std::string name_ = {};
  bool is_call_ = true;
  std::uint32_t call_ = kNoRow;
  std::string followed_ = {};  // the name of its row
  profiler::GroupBy by_ = profiler::GroupBy::kNode;
};

}  // namespace trainscope::gui
