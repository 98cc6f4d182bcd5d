// What the window is about at one moment: open runs, the selection, settings, and what is on top.
// Without drawing; panels read and change it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "gui/data/run_data.h"
#include "gui/views/plan_links.h"
#include "gui/views/selection.h"
#include "gui/workbench/kept_selection.h"
#include "gui/workbench/notes.h"
#include "gui/workbench/settings.h"

namespace trainscope::gui {

// What lies over the regions.
enum class Overlay : std::uint8_t {
  kNone,
  kWelcome,
  kPalette,
  kHelp,
  kTour,
  kOpen,
  kOpenModel,
  kSizes,
  kNote,
  kSettings,
  kLayouts
};

// A line at the bottom: what happened.
struct Notice {
  std::string text = {};
  bool is_error = false;
  double until = 0.0;  // seconds of the program; 0: it has not been shown yet
};

class Workbench {
 public:
  explicit Workbench(Settings settings_in = {}) : settings(std::move(settings_in)) {}

  // Opens a run, a model with these sizes, or all runs of a folder; it becomes the active one.
  void open(const std::filesystem::path& path, const SizeRequest& sizes = {});
  // Compiles the active model anew. False where a run is active, or nothing.
  bool compile_with(SizeRequest sizes);
  void close(std::size_t source);
  std::size_t count() const { return sources_.size(); }
  RunData& source(std::size_t i) { return *sources_[i]; }
  const RunData& source(std::size_t i) const { return *sources_[i]; }
  std::size_t active() const { return active_; }
  // What is selected stays so, where this one has it too.
  void activate(std::size_t source);
  // Of the active run, from 1; what is selected as above. False where there is no such session.
  bool show_session(std::int64_t session);
  // The next one, or the one before (-1); says which one it is.
  void step_session(std::int64_t by);
  // The active one; null where none is open.
  RunData* run() { return sources_.empty() ? nullptr : sources_[active_].get(); }
  const RunData* run() const { return sources_.empty() ? nullptr : sources_[active_].get(); }
  // Reads what runs have written since; true where something is new.
  bool refresh();
  // Of the active run, on threads: see RunData::read_ahead. It begins where somebody looks.
  void read_ahead();
  // What selections ask for is on its way, or will be after this frame: who does not want to wait
  // for it draws again soon.
  bool is_reading_ahead();
  // Whether models are being compiled, which takes a while; until they are.
  bool is_opening() const;
  void wait();
  // Of the active run's plan; null where there is none.
  const PlanLinks* links();

  const Selection& selection() const { return history_.now(); }
  void select(Selection selection) { history_.select(std::move(selection)); }
  SelectionHistory& history() { return history_; }
  const SelectionHistory& history() const { return history_; }
  // Names what is selected: "node:/h.0/attn/MatMul"; empty where nothing is.
  std::string selected_name();
  // KIND:NAME of kinds node, value, kernel, call, buffer, stage, step, model, or a name alone.
  // False where there is none of it, and a notice says so.
  bool select_named(std::string_view name);

  // The panel's own state, made when it is first asked for.
  template <typename State>
  State& state() {
    std::shared_ptr<void>& kept = states_[std::type_index(typeid(State))];
    if (kept == nullptr) kept = std::make_shared<State>();
    return *static_cast<State*>(kept.get());
  }

  // Runs the command when the frame is drawn.
  void request(std::string command) { requested_.push_back(std::move(command)); }
  std::vector<std::string> take_requests() { return std::exchange(requested_, {}); }
  void tell(std::string text) { notice = {.text = std::move(text)}; }
  void complain(std::string text) { notice = {.text = std::move(text), .is_error = true}; }

  Settings settings;
  Overlay overlay = Overlay::kNone;
  Notice notice;
  Notes notes;             // of the active run
  std::string region;      // that has the keys: "main", "strip", "inspector", "stages"
  int region_steps = 0;    // regions that the keys shall go on by, below 0: back
  bool maximized = false;  // the region that has the keys, alone
  bool asks_menu = false;  // for the menu of the panel that has the keys
  bool is_narrow = false;  // the window: regions open over each other, or not at all
  bool quit = false;
  bool under_way = false;  // something that is shown changes soon: draw again without input
  bool moves = false;      // something that is shown moves: as often as if somebody did something
  // Whether panels start by themselves what takes a while: for somebody who looks, not for a
  // picture.
  bool works_ahead = false;
  std::string copied;  // for the clipboard, once the frame is drawn

 private:
  KeptSelection selection_to_keep();
  void select_again(const KeptSelection& kept);
  void read_active();

  std::vector<std::unique_ptr<RunData>> sources_;
  std::size_t active_ = 0;
  SelectionHistory history_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> states_;
  std::vector<std::string> requested_;
  PlanLinks links_;
  const RunData* links_of_ = nullptr;
  std::uint64_t links_version_ = 0;
};

}  // namespace trainscope::gui
