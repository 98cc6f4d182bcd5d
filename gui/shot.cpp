// Opens a run, shows a panel, writes PNG or SVG.
#include "gui/shot.h"

#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "gui/app/bookmarks.h"
#include "gui/app/commands.h"
#include "gui/app/workspaces.h"
#include "gui/platform/headless.h"
#include "gui/start.h"

namespace trainscope::gui {
namespace {

void check_source(const RunData& run) {
  const Message& message = run.message(Topic::kSource);
  require(message.empty(), ErrorCode::kBadInput, "{}", message.text);
}

std::string panel_of(const Arguments& arguments) {
  if (!arguments.panel.empty()) return arguments.panel;
  if (arguments.view.empty()) return "overview";
  return arguments.view.substr(0, arguments.view.find(','));
}

}  // namespace

void take_shot(const Arguments& arguments) {
  const float scale = arguments.scale.value_or(1.0F);
  Settings settings;
  settings.theme = arguments.theme.value_or(ThemeName::kDark);
  const Extent logical{arguments.size.width / scale, arguments.size.height / scale};
  Headless window(std::move(settings), {.size = logical, .scale = scale, .keeps_items = false});
  Workbench& workbench = window.workbench();
  require_fitting_sizes(arguments);
  open_paths(workbench, arguments);
  workbench.wait();
  require(workbench.run() != nullptr, ErrorCode::kBadInput, "{}", workbench.notice.text);
  check_source(*workbench.run());
  const std::string panel = panel_of(arguments);
  if (panel != "window") window.app().show_only(panel);
  const bool shows = arguments.view.empty() || show_view(workbench, arguments.view);
  require(shows, ErrorCode::kUsage, "--at: {}", workbench.notice.text);
  const bool selected = arguments.select.empty() || workbench.select_named(arguments.select);
  require(selected, ErrorCode::kUsage, "--select: {}", workbench.notice.text);
  for (const std::string& command : arguments.commands) {
    require(run_command(workbench, command), ErrorCode::kUsage, "--exec: {}",
            workbench.notice.text);
    workbench.wait();  // it may have opened a model
    window.settle();   // the next one finds drawn what this one shows
  }
  window.settle();
  const bool is_svg = arguments.out.extension() == ".svg";
  write_file_atomic(arguments.out,
                    std::string_view(is_svg ? window.svg() : png_bytes(window.picture())));
}

}  // namespace trainscope::gui
