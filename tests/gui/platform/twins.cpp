// Facts of items are pointers into what the command line of their panel, or their own, prints.
#include "tests/gui/platform/twins.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/core/numbers.h"
#include "engine/core/text.h"
#include "gui/panels/graph/graph_state.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/drawn_numbers.h"

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

struct Exception {
  std::string_view where = {};
  std::string_view why = {};
};

// Numbers that no command line prints, by the begin of their paths.
constexpr Exception kPrintedNowhere[] = {
    {"main/budget/worker/resident/predicted", "nothing predicts the memory of a process: a dash"},
    {"main/budget/worker/resident/measured",
     "of a process that has ended, as it has told its owner alone: another one has another"},
};

// Places of texts that have numbers with units and are paired with nothing, by a part of the path.
constexpr Exception kPlacesOfTexts[] = {
    {"/axis/", "ticks: round numbers that nobody has measured"},
    {"tooltip/", "is there where the mouse is, and says again what is drawn elsewhere"},
    {"status/", "notices, and names of what is selected"},
};

// Texts, by their begin.
constexpr Exception kTexts[] = {
    {"planned in ", "how long this window's own planner took"},
};

// What controls say, and fields that are typed into: a budget is what the user asks for.
bool is_of_control(const WindowDriver& window, const Item& text) {
  return std::ranges::any_of(window.items().items(), [&](const Item& item) {
    return is_control(item.kind) && (item.label == text.label || item.value == text.label) &&
           !item.rect.intersected(text.rect).empty();
  });
}

bool is_exception(std::span<const Exception> list, std::string_view path) {
  return std::ranges::any_of(list,
                             [&](const Exception& each) { return path.starts_with(each.where); });
}

// A number whose unit is left out stands in a column that has it in its head.
bool has_unit_in_head(const WindowDriver& window, const Item& item, std::string_view unit) {
  const std::size_t row = item.path.find("/row/");
  if (row == std::string::npos) return false;
  const std::string column =
      item.path.substr(0, row) + "/column" + item.path.substr(item.path.rfind('/'));
  const Item* head = window.items().find(column);
  return head != nullptr && head->label.find(unit) != std::string::npos;
}

// Equal but for the last bits, however small they are.
bool is_same(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// What another run's row has more is drawn beside both, which are printed.
void check_difference(const WindowDriver& window, const Item& item) {
  const std::string row = item.path.substr(0, item.path.rfind('/') + 1);
  const auto number = [&](const char* name) {
    const Item* beside = window.items().find(row + name);
    return beside == nullptr ? 0.0 : beside->number;
  };
  CHECK(std::abs(item.number - (number("other_ms") - number("ms"))) <= 1e-9);
  check_drawn(window, item, "/ms", item.number);
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
  const int count = counts[static_cast<std::size_t>(*parse_int(item.path.substr(end + 1)))];
  CHECK(item.number == count);
  check_drawn(window, item, "", count);
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

void check_drawn(const WindowDriver& window, const Item& item, std::string_view pointer,
                 double printed) {
  const std::optional<DrawnNumber> drawn = drawn_number(item.value);
  REQUIRE_MESSAGE(drawn.has_value(), item.path, " ", item.value);
  const NumberUnit unit = unit_of_fact(pointer);
  INFO(item.path, " ", item.value, " is ", printed, " at ", pointer);
  CHECK(drawn->unit.counted_in == unit.counted_in);
  const double exact = printed * unit.size;
  CHECK(std::abs(drawn->value - exact) <=
        drawn->half_digit * (1.0 + 1e-6) + 1e-12 * std::abs(exact));
  if (item.label == item.value) return;
  CHECK(item.value == item.label + " " + std::string(drawn->unit.name));
  CHECK(has_unit_in_head(window, item, drawn->unit.name));
}

void check_texts(const WindowDriver& window) {
  for (const Item& item : window.items().items()) {
    if (item.kind != ItemKind::kLabel || !says_quantity(item.label)) continue;
    const bool has_place = std::ranges::any_of(kPlacesOfTexts, [&](const Exception& each) {
      return item.path.find(each.where) != std::string::npos;
    });
    if (has_place || is_exception(kTexts, item.label) || is_of_control(window, item)) continue;
    FAIL_CHECK("a number that is paired with nothing: ", item.path, " '", item.label, "'");
  }
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
      CHECK(is_exception(kPrintedNowhere, item->path));
      continue;
    }
    const std::size_t bar = item->fact.find(" | ");
    const bool has_own = bar != std::string::npos;
    const std::string line = has_own ? item->fact.substr(0, bar) : panel.twin(window.workbench());
    const std::string pointer = has_own ? item->fact.substr(bar + 3) : item->fact;
    INFO(line, " ", pointer);
    const double printed = sum_at(twins.answer(line), pointer);
    CHECK(is_same(item->number, printed));
    check_drawn(window, *item, pointer, printed);
    ++paired;
  }
  return paired;
}

}  // namespace trainscope::gui::test
