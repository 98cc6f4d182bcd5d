// The window without a window: takes input, draws frames on a canvas, runs commands.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

  // What is shown once all that was opened is there: a view as `--at` has it, then commands.
  void start_with(std::string view, std::span<const std::string> commands);
  // What was dropped on the window is opened by the next frame, the first of it shown.
  void drop(std::span<const char* const> paths);

 private:
  void run_keys(Input& input);
  void begin_view();
  void open_dropped();

  Workbench workbench_;
  InputQueue queue_;
  UiMemory memory_;
  ItemRegistry items_;
  std::string only_;
  std::string first_view_;
  std::deque<std::string> first_commands_;
  std::vector<std::string> dropped_;
};

}  // namespace trainscope::gui
