// Writes views down and finds them again.
#include "gui/app/bookmarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/any_error.h"
#include "engine/core/text.h"
#include "engine/core/timestamp.h"
#include "gui/app/workspaces.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/panels.h"
#include "gui/workbench/view_text.h"

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

// A view taken apart: each part of its panel that it names, and what is selected.
struct SpokenView {
  std::string_view panel = {};
  std::vector<std::pair<std::string_view, std::string_view>> parts =
      {};  // key, value as it is written
  std::string_view selected = {};
};

SpokenView spoken_view(std::string_view view) {
  SpokenView spoken;
  std::string_view rest;
  const auto cut = [&](std::string_view text) {
    const std::size_t comma = text.find(',');
    rest = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    return text.substr(0, comma);
  };
  spoken.panel = cut(view);
  const Panel* panel = panel_named(spoken.panel);
  spoken.selected = rest;
  while (panel != nullptr && !spoken.selected.empty()) {
    const std::string_view part = cut(spoken.selected);
    const std::string_view key = part.substr(0, part.find('='));
    const bool is_part = key.size() < part.size() &&
                         std::ranges::find(panel->view, key, &ViewPart::key) != panel->view.end();
    if (!is_part) break;
    spoken.parts.emplace_back(key, part.substr(key.size() + 1));
    spoken.selected = rest;
  }
  return spoken;
}

// Parts that the view does not name are as they are at first.
bool show_parts(Workbench& workbench, const SpokenView& spoken) {
  for (const ViewPart& part : panel_named(spoken.panel)->view) {
    std::string value;
    for (const auto& [key, text] : spoken.parts) {
      if (key == part.key) value = unescaped(text);
    }
    // KIND:NAME said it.
    if (part.key == "stage" && value.empty() && spoken.selected.starts_with("stage:")) continue;
    Notice before = std::exchange(workbench.notice, {});
    if (part.show(workbench, value)) {
      if (workbench.notice.text.empty()) workbench.notice = std::move(before);
      continue;
    }
    if (!workbench.notice.is_error) {
      workbench.complain(
          fmt::format("{}: there is no {} '{}'", spoken.panel, part.key, printable(value)));
    }
    return false;
  }
  return true;
}

}  // namespace

std::string view_of(Workbench& workbench) {
  const Panel& panel = main_panel_of(workbench.settings.layout);
  std::string view(panel.id);
  for (const ViewPart& part : panel.view) {
    const std::string value = part.now(workbench);
    if (!value.empty()) view += fmt::format(",{}={}", part.key, escaped(value, ","));
  }
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
  const SpokenView spoken = spoken_view(view);
  show_panel(workbench.settings.layout, spoken.panel);
  if (!spoken.selected.empty() && !workbench.select_named(spoken.selected)) return false;
  return show_parts(workbench, spoken);
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
