// Views of Runs: the run that the active one is held against.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"
#include "gui/panels/runs_state.h"
#include "gui/panels/view/view_parts.h"

namespace trainscope::gui {
namespace {

constexpr std::size_t kNames = 3;

// Its name, its path, and its number among the open runs: the first that is clear is used.
std::array<std::string, kNames> names_of(const Workbench& workbench, std::size_t run) {
  const RunData& source = workbench.source(run);
  return {source.name(), source.path().string(), std::to_string(run + 1)};
}

// The one other run that is called so; none where it is not clear which.
std::optional<std::size_t> run_called(const Workbench& workbench, std::string_view text) {
  for (std::size_t kind = 0; kind < kNames; ++kind) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < workbench.count(); ++i) {
      const bool is_called = names_of(workbench, i)[kind] == text;
      if (is_called && i != workbench.active()) found.push_back(i);
    }
    if (found.size() == 1) return found.front();
  }
  return std::nullopt;
}

std::string compared_run_now(Workbench& workbench) {
  if (other_run(workbench) == nullptr) return {};
  const std::size_t other = *workbench.state<RunsState>().other;
  const std::size_t first = workbench.active() == 0 ? 1 : 0;
  if (other == first) return {};
  for (const std::string& name : names_of(workbench, other)) {
    if (run_called(workbench, name) == other) return name;
  }
  return {};
}

bool compare_with_run(Workbench& workbench, std::string_view text) {
  std::optional<std::size_t>& other = workbench.state<RunsState>().other;
  other.reset();
  if (text.empty()) return true;
  other = run_called(workbench, text);
  if (!other) workbench.complain(fmt::format("no other open run is called '{}'", printable(text)));
  return other.has_value();
}

}  // namespace

std::span<const ViewPart> runs_view() {
  static constexpr ViewPart kParts[] = {
      {.key = "with", .now = compared_run_now, .show = compare_with_run}};
  return kParts;
}

}  // namespace trainscope::gui
