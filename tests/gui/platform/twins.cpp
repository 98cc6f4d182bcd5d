// Facts of items are pointers into what the command line of their panel, or their own, prints.
#include "tests/gui/platform/twins.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "engine/core/numbers.h"
#include "engine/core/text.h"
#include "gui/panels/graph/graph_state.h"
#include "tests/cli/program_runner.h"

namespace trainscope::gui::test {
namespace {

constexpr std::string_view kBlockPath = "main/graph/block/";

// A command line of our own panels as words: single quotes around what is no plain word.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      if (!word.empty()) words.push_back(std::exchange(word, {}));
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(word);
  if (!words.empty() && words[0] == "trainscope") words.erase(words.begin());
  return words;
}

// "/rows/3/ms".
const Json* at_pointer(const Json& json, std::string_view pointer) {
  const Json* now = &json;
  for (const std::string_view part : split(pointer.substr(1), '/')) {
    const auto position = parse_int(part);
    if (now->is_array()) {
      if (!position || static_cast<std::size_t>(*position) >= now->size()) return nullptr;
      now = &now->at(static_cast<std::size_t>(*position));
    } else {
      now = now->find(part);
      if (now == nullptr) return nullptr;
    }
  }
  return now;
}

// "/nodes_after - /nodes_before": pointers that are added up, a list is how many it has; not a
// number: there is none of one.
double sum_at(const Json& json, std::string_view pointers) {
  double sum = 0.0;
  double sign = 1.0;
  while (!pointers.empty()) {
    const std::size_t end = std::min(pointers.find(" + "), pointers.find(" - "));
    const Json* each = at_pointer(json, pointers.substr(0, end));
    if (each == nullptr || !(each->is_number() || each->is_array())) return std::nan("");
    sum += sign *
           (each->is_array() ? static_cast<double>(each->as_array().size()) : each->as_number());
    if (end == std::string_view::npos) break;
    sign = pointers[end + 1] == '-' ? -1.0 : 1.0;
    pointers.remove_prefix(end + 3);
  }
  return sum;
}

// What is drawn and printed by no command line: a step's predicted time is part of what `plan` says
// of recomputation, and the plan has none; what only the worker knows of itself.
bool is_printed_nowhere(const Item& item) {
  return item.path == "main/budget/facts/seconds" ||
         item.path == "main/budget/worker/step/measured" ||
         item.path.starts_with("main/budget/worker/resident/");
}

// What another run's row has more is drawn beside both, which are printed.
void check_difference(const WindowDriver& window, const Item& item) {
  const std::string row = item.path.substr(0, item.path.rfind('/') + 1);
  const auto number = [&](const char* name) {
    const Item* beside = window.items().find(row + name);
    return beside == nullptr ? 0.0 : beside->number;
  };
  CHECK(item.number == doctest::Approx(number("other_ms") - number("ms")).epsilon(1e-9));
}

// How many of a block's nodes stand in a column: blocks are the window's own, their nodes are those
// that the command line lists.
void check_block(WindowDriver& window, const Item& item, const Json& printed) {
  const auto& state = window.workbench().state<GraphState>();
  const std::size_t end = item.path.rfind('/');
  const std::string name = item.path.substr(kBlockPath.size(), end - kBlockPath.size());
  const auto block = std::ranges::find(state.layout.blocks, name, &LaidBlock::name);
  REQUIRE(block != state.layout.blocks.end());
  std::set<std::string_view> members;
  for (const std::uint32_t place : block->places) members.insert(state.picture.nodes[place].name);
  std::array<int, kColumns> counts = {};
  for (const Json& node : printed.at("nodes").as_array()) {
    if (!members.contains(node.at("name").as_string())) continue;
    const std::string phase = node.get<std::string>("phase");
    const bool repeats = node.contains("rematerialized_of");
    ++counts[phase == "update" ? 2 : phase == "backward" || repeats ? 1 : 0];
  }
  CHECK(item.number == counts[static_cast<std::size_t>(*parse_int(item.path.substr(end + 1)))]);
}

}  // namespace

const Json& Twins::answer(const std::string& line) {
  const auto [entry, is_new] = answers_.try_emplace(line);
  if (is_new) {
    std::vector<std::string> words = words_of(line);
    words.push_back("--json");
    const trainscope::test::Finished finished = trainscope::test::run(words);
    INFO(line, "\n", finished.err);
    REQUIRE(finished.exit_code == 0);
    entry->second = finished.json();
  }
  return entry->second;
}

int check_numbers(WindowDriver& window, const Panel& panel, Twins& twins, std::string_view below) {
  int paired = 0;
  for (const Item* item : window.items().below(below)) {
    if (item->kind != ItemKind::kNumber) continue;
    INFO(item->path, " ", item->label, " ", item->value);
    if (item->path.ends_with("/more_ms")) {
      check_difference(window, *item);
      continue;
    }
    if (item->path.starts_with(kBlockPath)) {
      check_block(window, *item, twins.answer(panel.twin(window.workbench())));
      ++paired;
      continue;
    }
    if (item->fact.empty()) {
      CHECK(is_printed_nowhere(*item));
      continue;
    }
    const std::size_t bar = item->fact.find(" | ");
    const bool has_own = bar != std::string::npos;
    const std::string line = has_own ? item->fact.substr(0, bar) : panel.twin(window.workbench());
    const std::string pointer = has_own ? item->fact.substr(bar + 3) : item->fact;
    INFO(line, " ", pointer);
    CHECK(item->number == doctest::Approx(sum_at(twins.answer(line), pointer)).epsilon(1e-9));
    CHECK_FALSE(item->value.empty());
    ++paired;
  }
  return paired;
}

}  // namespace trainscope::gui::test
