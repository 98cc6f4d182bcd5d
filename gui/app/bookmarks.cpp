// Writes views down and finds them again.
#include "gui/app/bookmarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/any_error.h"
#include "engine/core/text.h"
#include "engine/core/timestamp.h"
#include "gui/app/workspaces.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/panels.h"
#include "gui/panels/runs_state.h"
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

// Of every panel: the session of the run, where it is not the newest.
constexpr std::string_view kSession = "session";

std::string session_now(const Workbench& workbench) {
  const RunData* run = workbench.run();
  return run == nullptr || run->shows_newest() ? std::string() : std::to_string(run->session());
}

// Empty: the newest.
bool show_session(Workbench& workbench, std::string_view value) {
  const std::int64_t newest = workbench.run() == nullptr ? 0 : workbench.run()->session_count();
  if (value.empty()) return newest == 0 || workbench.show_session(newest);
  const std::optional<std::int64_t> session = parse_int(value);
  return session && workbench.show_session(*session);
}

// A view taken apart: the session, each part of its panel that it names, and what is selected.
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
    const bool is_known =
        key == kSession || std::ranges::find(panel->view, key, &ViewPart::key) != panel->view.end();
    const bool is_part = key.size() < part.size() && is_known;
    if (!is_part) break;
    spoken.parts.emplace_back(key, part.substr(key.size() + 1));
    spoken.selected = rest;
  }
  return spoken;
}

// Empty: the view does not name this part.
std::string value_of(const SpokenView& spoken, std::string_view part) {
  std::string value;
  for (const auto& [key, text] : spoken.parts) {
    if (key == part) value = unescaped(text);
  }
  return value;
}

void complain_of(Workbench& workbench, const SpokenView& spoken, std::string_view part) {
  workbench.complain(fmt::format("{}: there is no {} '{}'", spoken.panel, part,
                                 printable(value_of(spoken, part))));
}

// Parts that the view does not name are as they are at first.
bool show_parts(Workbench& workbench, const SpokenView& spoken) {
  for (const ViewPart& part : panel_named(spoken.panel)->view) {
    const std::string value = value_of(spoken, part.key);
    // KIND:NAME said it.
    if (part.key == "stage" && value.empty() && spoken.selected.starts_with("stage:")) continue;
    Notice before = std::exchange(workbench.notice, {});
    if (part.show(workbench, value)) {
      if (workbench.notice.text.empty()) workbench.notice = std::move(before);
      continue;
    }
    if (!workbench.notice.is_error) complain_of(workbench, spoken, part.key);
    return false;
  }
  return true;
}

}  // namespace

std::string view_of(Workbench& workbench) {
  const Panel& panel = main_panel_of(workbench.settings.layout);
  std::string view(panel.id);
  if (const std::string session = session_now(workbench); !session.empty()) {
    view += fmt::format(",{}={}", kSession, session);
  }
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
  if (!show_session(workbench, value_of(spoken, kSession))) {
    complain_of(workbench, spoken, kSession);
    return false;
  }
  if (!spoken.selected.empty() && !workbench.select_named(spoken.selected)) return false;
  return show_parts(workbench, spoken);
}

namespace {

// With `verb`, gui or shot: the runs that the panel shows, what is opened last being the active
// one, and the view.
std::string command_with_view(Workbench& workbench, std::string_view verb) {
  const bool has_two = main_panel_of(workbench.settings.layout).id == "runs";
  const RunData* other = has_two ? other_run(workbench) : nullptr;
  const std::string opened =
      other == nullptr
          ? twin_of_run(workbench, verb)
          : fmt::format("trainscope {} {} {}", verb, other->words(), workbench.run()->words());
  return fmt::format("{} --at {}", opened, shell_word(view_of(workbench)));
}

}  // namespace

std::string command_of_view(Workbench& workbench) { return command_with_view(workbench, "gui"); }

std::string command_of_picture(Workbench& workbench) {
  const ThemeName theme = workbench.settings.theme;
  return fmt::format(
      "{}{} -o {}.png", command_with_view(workbench, "shot"),
      theme == ThemeName::kDark ? "" : fmt::format(" --theme {}", theme_of(theme).name),
      main_panel_of(workbench.settings.layout).id);
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
