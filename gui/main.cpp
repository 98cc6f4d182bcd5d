// trainscope-window: what `trainscope gui` and `trainscope shot` start.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "engine/core/any_error.h"
#include "engine/core/json.h"
#include "engine/plugin/plugin.h"
#include "gui/arguments.h"
#include "gui/data/truncated_files.h"
#include "gui/platform/process_memory.h"
#include "gui/platform/window.h"
#include "gui/shot.h"
#include "gui/start.h"

namespace trainscope::gui {
namespace {

// That these are kept, or are not, is no reason to end otherwise.
void keep(const Settings& settings, const std::filesystem::path& file) {
  if (file.empty()) return;
  try {
    keep_settings(settings, file);
  } catch (const std::exception& error) {
    fmt::print(stderr, "trainscope-window: settings are not kept: {}\n", error_of(error).message());
  }
}

void open_window(const Arguments& arguments) {
  const std::filesystem::path file = settings_file();
  const auto [settings, fault] = kept_settings(file);
  if (!fault.empty()) fmt::print(stderr, "trainscope-window: the usual settings: {}\n", fault);
  const AskedLook asked{.theme = arguments.theme, .scale = arguments.scale};
  // What is wrong with the command line is said before there is a window.
  if (!(arguments.sizes == SizeRequest{})) require_fitting_sizes(arguments);
  App app(with_look(settings, asked));
  start_app(app, arguments);
  try {
    run_window(app);
  } catch (Error& error) {
    if (error.code() == ErrorCode::kNoDevice) {
      error.hint("`trainscope shot RUN --panel overview -o overview.png` needs no display");
    }
    throw;
  }
  keep(without_look(app.workbench().settings, settings, asked), file);
}

void say(const Error& error, bool as_json) {
  if (as_json) {
    const Json json = Json::object({{"code", static_cast<int>(error.code())},
                                    {"message", error.message()},
                                    {"hint", error.hint()}});
    fmt::print(stderr, "{}\n", json.dump());
    return;
  }
  std::string text = fmt::format("error: {}", error.message());
  for (const std::string& where : error.context()) text += fmt::format(" (at {})", where);
  if (!error.hint().empty()) text += fmt::format("; {}", error.hint());
  fmt::print(stderr, "{}\n", text);
}

int run(const std::vector<std::string>& words) {
  const bool as_json = std::ranges::find(words, "--errors") != words.end();
  try {
    const Arguments arguments = arguments_from(words);
    for (const std::string& file : arguments.plugins) load_plugin(file);
    if (arguments.is_shot) {
      take_shot(arguments);
    } else {
      open_window(arguments);
    }
    return 0;
  } catch (const std::exception& caught) {
    const Error error = error_of(caught);
    say(error, as_json);
    return static_cast<int>(error.code());
  }
}

}  // namespace
}  // namespace trainscope::gui

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  trainscope::gui::keep_process_small();
  trainscope::gui::survive_truncated_files();
  return trainscope::gui::run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}
