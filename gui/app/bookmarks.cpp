// Writes views down and finds them again.
#include "gui/app/bookmarks.h"

#include <fmt/format.h>

#include <utility>

#include "engine/core/any_error.h"
#include "engine/core/text.h"
#include "engine/core/timestamp.h"
#include "gui/app/workspaces.h"
#include "gui/panels/empty_state.h"

namespace trainscope::gui {
namespace {

// Notes are in the run's folder or nowhere: what cannot be written is not kept.
void keep(Workbench& workbench, Notes notes, std::string said) {
  if (workbench.run() == nullptr) return;
  try {
    write_notes(workbench.run()->path(), notes);
    workbench.notes = std::move(notes);
    workbench.tell(std::move(said));
  } catch (const std::exception& error) {
    workbench.complain(error_of(error).message());
  }
}

}  // namespace

std::string view_of(Workbench& workbench) {
  std::string view(main_panel_of(workbench.settings.layout).id);
  const std::string selected = workbench.selected_name();
  return selected.empty() ? view : view + "," + selected;
}

std::string fault_of_view(std::string_view view) {
  return fault_of_panel(view.substr(0, view.find(',')));
}

bool show_view(Workbench& workbench, std::string_view view) {
  std::string fault = fault_of_view(view);
  if (!fault.empty()) {
    workbench.complain(std::move(fault));
    return false;
  }
  const std::size_t comma = view.find(',');
  show_panel(workbench.settings.layout, view.substr(0, comma));
  return comma == std::string_view::npos || workbench.select_named(view.substr(comma + 1));
}

std::string command_of_view(Workbench& workbench) {
  return fmt::format("{} --at {}", twin_of_run(workbench, "gui"), shell_word(view_of(workbench)));
}

void add_note(Workbench& workbench, std::string_view text) {
  Notes notes = workbench.notes;
  notes.notes.push_back(
      {.text = std::string(text), .view = view_of(workbench), .time = utc_timestamp()});
  keep(workbench, std::move(notes), text.empty() ? "bookmarked" : "noted");
}

void remove_note(Workbench& workbench, std::size_t note) {
  Notes notes = workbench.notes;
  notes.notes.erase(notes.notes.begin() + static_cast<std::ptrdiff_t>(note));
  keep(workbench, std::move(notes), "removed");
}

}  // namespace trainscope::gui
