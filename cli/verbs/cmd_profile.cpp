// profile: trains as `train` does, and records what the steps after the first ones do.
#include <algorithm>

#include "cli/command.h"

namespace trainscope {
namespace {

constexpr std::string_view kSteps = "steps=+6:25";  // five that warm up, then twenty
constexpr std::string_view kLast = "25";

void set_fallback(Command& command, std::string_view flag, std::string_view fallback) {
  const auto found = std::ranges::find(command.flags, flag, &Flag::name);
  found->fallback = fallback;
}

}  // namespace

Command train_command();

Command profile_command() {
  Command command = train_command();
  command.name = "profile";
  command.summary = "Train as `train` does, and record where the time of its steps goes.";
  command.examples = {"trainscope profile model.onnx --data synthetic --run-dir runs/profiled",
                      "trainscope profile model.onnx --data synthetic --steps 75 --profile "
                      "steps=+6:25,every=25"};
  command.table = "train";
  command.essential.emplace_back("profile");
  set_fallback(command, "profile", kSteps);
  set_fallback(command, "steps", kLast);
  return command;
}

}  // namespace trainscope
