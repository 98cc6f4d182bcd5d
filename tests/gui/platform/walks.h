// Questions that a researcher has as walks through the window: from opening a run to the answer, in
// at most six actions.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/advise/reasons.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui::test {

inline constexpr int kMostActions = 6;

// Counts what a user does: a chord, a click, a typed word each.
class Walk : public WindowDriver {
 public:
  using WindowDriver::WindowDriver;
  void press(std::string_view chord);
  bool pick(std::string_view path);
  void write(std::string_view text);
  void turn(std::string_view path, float turns);
  // Whether the inspector says this.
  bool tells(std::string_view part) const;
  // The same of a sentence, which may be broken into lines.
  bool explains(std::string_view sentence) const;
  // To a node of the ONNX model that is not in the program any more, by its name: a tensor may have
  // the same, which is found before it.
  void find_model_node(std::string_view name);

  int actions = 0;
};

// "Which op holds the peak?"
void walk_to_peak(const std::filesystem::path& run);
// "Which pass made this node?"
void walk_to_pass(const std::filesystem::path& run);
// "Where did this node of the model go?": what the inspector and the graph say of it is its fate;
// the op that does its work now, empty where no node does.
std::string walk_to_fate(const std::filesystem::path& run, const std::string& model_node);
// "Where did my Gelu go?": of every node that the first Gelu of the model was spelled out by; their
// ops.
std::vector<std::string> walk_to_gelu(const std::filesystem::path& run);
// One node of the model of each fate that there is, by name.
std::vector<std::string> nodes_of_each_fate(const std::filesystem::path& run);
// "Why is this op slow?", of the node that takes longest: the window tells all that is known of
// each of its calls, these.
std::vector<profiler::RoofReason> walk_to_slowest(const std::filesystem::path& run);

}  // namespace trainscope::gui::test
