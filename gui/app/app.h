// The window without a window: takes input, draws frames on a canvas, runs commands.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gui/ui/ui.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

class App {
 public:
  explicit App(Settings settings, bool keeps_items = false)
      : workbench_(std::move(settings)), items_(keeps_items) {}

  Workbench& workbench() { return workbench_; }
  InputQueue& input() { return queue_; }
  UiMemory& memory() { return memory_; }
  const ItemRegistry& items() const { return items_; }

  // One frame of the whole canvas.
  void frame(Canvas& canvas, double seconds);
  // The same of one panel alone, for pictures of it.
  void show_only(std::string_view panel) { only_ = panel; }

 private:
  void run_keys(Input& input);

  Workbench workbench_;
  InputQueue queue_;
  UiMemory memory_;
  ItemRegistry items_;
  std::string only_;
};

}  // namespace trainscope::gui
