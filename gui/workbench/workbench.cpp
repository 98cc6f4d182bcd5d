// Opens, closes and selects.
#include "gui/workbench/workbench.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/any_error.h"
#include "engine/core/text.h"
#include "gui/workbench/select_by_name.h"

namespace trainscope::gui {

void Workbench::open(const std::filesystem::path& path, const SizeRequest& sizes) {
  std::vector<std::filesystem::path> paths = {path};
  if (kind_of(path) == SourceKind::kFolder) {
    paths.clear();
    for (const RunListing& run : runs_in(path)) paths.push_back(run.path);
    if (paths.empty()) {
      complain(fmt::format("no runs in {}", printable(path.string())));
      return;
    }
  }
  const std::size_t first = sources_.size();
  for (const std::filesystem::path& one : paths) sources_.push_back(RunData::begin(one, sizes));
  settings.remember(path);
  activate(first);
  if (overlay != Overlay::kTour) overlay = Overlay::kNone;  // the tour lies beside what it shows
}

bool Workbench::compile_with(SizeRequest sizes) {
  if (run() == nullptr || run()->kind() != SourceKind::kModel) return false;
  run()->compile_with(std::move(sizes));
  states_.clear();
  history_.clear();  // what was selected has other numbers, or is gone
  return true;
}

void Workbench::close(std::size_t source) {
  const KeptSelection kept = selection_to_keep();
  // What panels keep of a run is known by its address, which another one may get.
  states_.clear();
  sources_.erase(sources_.begin() + static_cast<std::ptrdiff_t>(source));
  links_of_ = nullptr;
  active_ = std::min(active_ > source ? active_ - 1 : active_,
                     sources_.empty() ? 0 : sources_.size() - 1);
  select_again(kept);
  read_active();
}

void Workbench::activate(std::size_t source) {
  const KeptSelection kept = selection_to_keep();
  active_ = source;
  select_again(kept);
  read_active();
}

bool Workbench::show_session(std::int64_t session) {
  if (run() == nullptr || session < 1 || session > run()->session_count()) return false;
  if (session == run()->session()) return true;
  const KeptSelection kept = selection_to_keep();
  run()->show_session(session);
  select_again(kept);
  return true;
}

void Workbench::step_session(std::int64_t by) {
  if (run() == nullptr) return;
  if (show_session(run()->session() + by)) {
    tell(fmt::format("session {} of {}", run()->session(), run()->session_count()));
  } else {
    tell(by < 0 ? "this is the first session" : "this is the newest session");
  }
}

KeptSelection Workbench::selection_to_keep() {
  return run() == nullptr ? KeptSelection() : kept_selection(selection(), *run(), links());
}

void Workbench::select_again(const KeptSelection& kept) {
  history_.clear();
  if (run() == nullptr || run()->is_opening()) return;
  history_.select(selection_again(kept, *run(), links()));
}

void Workbench::read_active() {
  notes = {};
  if (run() == nullptr || run()->kind() != SourceKind::kRun) return;
  try {
    notes = read_notes(run()->path());
  } catch (const std::exception& error) {
    complain(line_of(error_of(error)));
  }
}

bool Workbench::refresh() {
  bool changed = false;
  for (const std::unique_ptr<RunData>& source : sources_) changed |= source->refresh();
  return changed;
}

void Workbench::read_ahead() {
  if (works_ahead && run() != nullptr) run()->read_ahead();
}

bool Workbench::is_reading_ahead() {
  if (run() == nullptr) return false;
  const bool will_begin = works_ahead && !run()->has_begun_to_read_ahead();
  return run()->is_reading_ahead() || will_begin;
}

bool Workbench::is_opening() const {
  return std::ranges::any_of(
      sources_, [](const std::unique_ptr<RunData>& source) { return source->is_opening(); });
}

void Workbench::wait() {
  for (const std::unique_ptr<RunData>& source : sources_) source->wait();
}

const PlanLinks* Workbench::links() {
  const RunData* now = run();
  if (now == nullptr || now->plan() == nullptr) return nullptr;
  if (links_of_ != now || links_version_ != now->version()) {
    links_ = PlanLinks(*now->plan());
    links_of_ = now;
    links_version_ = now->version();
  }
  return &links_;
}

std::string Workbench::selected_name() {
  const PlanLinks* known = links();
  return run() == nullptr ? std::string() : name_of_selection(selection(), known);
}

bool Workbench::select_named(std::string_view name) {
  const PlanLinks* known = links();
  const std::optional<Selection> found =
      run() == nullptr ? std::nullopt : selection_named(name, selection(), *run(), known);
  if (!found) {
    complain(fmt::format("nothing here is called '{}'", printable(name)));
    return false;
  }
  select(*found);
  return true;
}

}  // namespace trainscope::gui
