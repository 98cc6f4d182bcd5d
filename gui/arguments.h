// The command line of trainscope-window: `gui` or `shot`, and their flags.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gui/data/model_opening.h"
#include "gui/draw/geometry.h"
#include "gui/draw/theme.h"

namespace trainscope::gui {

struct Arguments {
  bool is_shot = false;
  std::vector<std::filesystem::path> paths = {};
  SizeRequest sizes = {};                  // of the models among them
  std::string view = {};                   // --at
  std::vector<std::string> commands = {};  // --exec
  std::vector<std::string> plugins = {};
  std::optional<float> scale = {};
  std::optional<ThemeName> theme = {};
  std::string panel = {};  // "window": all of it; empty: that of the view, else overview
  std::string select = {};
  Extent size = {1280.0F, 720.0F};  // pixels
  std::filesystem::path out = {};
  bool json_errors = false;  // for the program that started this one
};

// Throws kUsage.
Arguments arguments_from(std::span<const std::string> words);

}  // namespace trainscope::gui
