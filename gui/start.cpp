// Looks at models before they are compiled, and opens what the command line names.
#include "gui/start.h"

#include <string>
#include <utility>

#include "engine/core/error.h"
#include "gui/app/bookmarks.h"

namespace trainscope::gui {

void require_fitting_sizes(const Arguments& arguments) {
  for (const std::filesystem::path& path : arguments.paths) {
    if (kind_of(path) == SourceKind::kModel) check_sizes(path, arguments.sizes);
  }
}

void open_paths(Workbench& workbench, const Arguments& arguments) {
  for (const std::filesystem::path& path : arguments.paths) workbench.open(path, arguments.sizes);
}

void start_app(App& app, const Arguments& arguments) {
  Workbench& workbench = app.workbench();
  if (arguments.paths.empty()) workbench.overlay = Overlay::kWelcome;
  open_paths(workbench, arguments);
  std::string view = arguments.view;
  const RunData* run = workbench.run();
  const bool is_there = run == nullptr || run->message(Topic::kSource).empty();
  if (!view.empty() && is_there) {
    require(show_view(workbench, view), ErrorCode::kUsage, "--at: {}", workbench.notice.text);
    view.clear();
  }
  app.start_with(std::move(view), arguments.commands);
}

}  // namespace trainscope::gui
