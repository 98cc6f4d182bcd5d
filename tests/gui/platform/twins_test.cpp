// Every number that a panel draws is the one that its twin on the command line prints.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "engine/core/text.h"
#include "gui/panels/panels.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

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

class Twins {
 public:
  const Json& answer(const std::string& line) {
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

 private:
  std::map<std::string, Json> answers_;
};

// How many numbers were paired.
int check_numbers(WindowDriver& window, const Panel& panel, Twins& twins) {
  int paired = 0;
  for (const Item& item : window.items().items()) {
    if (item.kind != ItemKind::kNumber || item.fact.empty()) continue;
    const std::size_t bar = item.fact.find(" | ");
    const bool has_own = bar != std::string::npos;
    const std::string line = has_own ? item.fact.substr(0, bar) : panel.twin(window.workbench());
    const std::string pointer = has_own ? item.fact.substr(bar + 3) : item.fact;
    const Json* printed = at_pointer(twins.answer(line), pointer);
    INFO(item.path, " ", line, " ", pointer);
    REQUIRE(printed != nullptr);
    CHECK(item.number == doctest::Approx(printed->as_number()).epsilon(1e-9));
    CHECK_FALSE(item.value.empty());
    ++paired;
  }
  return paired;
}

void check_run(const std::filesystem::path& run, int at_least) {
  WindowDriver window(run);
  Twins twins;
  int paired = 0;
  window.workbench().request("select call:3");
  for (const Panel& panel : all_panels()) {
    INFO(panel.id);
    window.app().show_only(panel.id);
    window.step(3);
    paired += check_numbers(window, panel, twins);
  }
  CHECK(paired >= at_least);
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("twins: numbers of all panels, of a text model") {
  check_run(test::text_run().folder(), 100);
}
TEST_CASE("twins: numbers of all panels, of an image model") {
  check_run(test::image_run().folder(), 60);
}
TEST_CASE("twins: numbers of all panels, of a run without a profile") {
  check_run(test::plain_run().folder(), 4);
}

TEST_CASE("twins: what is drawn is the number, rounded as its unit is") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.step();
  int numbers = 0;
  for (const Item& item : window.items().items()) {
    if (item.kind != ItemKind::kNumber || !item.value.ends_with(" ms")) continue;
    const auto shown = parse_number(item.value.substr(0, item.value.size() - 3));
    REQUIRE(shown.has_value());
    CHECK(std::abs(*shown - item.number) <= 0.0005 + 1e-12);
    ++numbers;
  }
  CHECK(numbers > 20);
}

TEST_CASE("twins: the command line of a sorted, filtered table prints the same rows") {
  WindowDriver window(test::text_run().folder());
  Twins twins;
  window.app().show_only("kernels");
  window.step();
  window.click("main/kernels/by/op");
  window.click("main/kernels/table/column/bytes");
  window.click("main/kernels/filter");
  window.type("phase==backward");
  window.step(2);
  CHECK(check_numbers(window, *panel_named("kernels"), twins) > 10);
  window.click("main/kernels/table/column/bytes");
  window.step(2);
  CHECK(check_numbers(window, *panel_named("kernels"), twins) > 10);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
