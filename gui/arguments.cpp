// Reads words into arguments.
#include "gui/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "gui/app/bookmarks.h"
#include "gui/app/commands.h"
#include "gui/panels/panels.h"
#include "gui/workbench/settings.h"

namespace trainscope::gui {
namespace {

constexpr float kLeastPixels = 64.0F;
constexpr float kMostPixels = 16384.0F;

float side_from(std::string_view text) {
  const std::optional<std::int64_t> pixels = parse_int(text);
  const auto side = static_cast<float>(pixels.value_or(0));
  require(pixels && side >= kLeastPixels && side <= kMostPixels, ErrorCode::kUsage,
          "--size: '{}' is no number of pixels from 64 to 16384", printable(text));
  return side;
}

Extent size_from(std::string_view text) {
  const std::vector<std::string_view> sides = split(text, 'x');
  require(sides.size() == 2, ErrorCode::kUsage, "--size takes WIDTHxHEIGHT, as 1280x720");
  return {side_from(sides[0]), side_from(sides[1])};
}

float scale_from(std::string_view text) {
  const std::optional<double> scale = parse_number(text);
  require(scale && *scale >= kLeastScale && *scale <= kGreatestScale, ErrorCode::kUsage,
          "--scale takes a number from 0.75 to 3, not '{}'", printable(text));
  return static_cast<float>(*scale);
}

std::string panel_from(const std::string& name) {
  if (name == "window" || panel_named(name) != nullptr) return name;
  std::vector<std::string_view> names = {"window"};
  for (const Panel& panel : all_panels()) names.push_back(panel.id);
  throw Error(ErrorCode::kUsage, fmt::format("there is no panel '{}'", printable(name)))
      .hint("panels: " + join(std::span<const std::string_view>(names), ", "));
}

void set(Arguments& arguments, const std::string& flag, const std::string& value) {
  if (flag == "--at") {
    const std::string fault = fault_of_view(value);
    require(fault.empty(), ErrorCode::kUsage, "--at: {}", fault);
    arguments.view = value;
  } else if (flag == "--exec") {
    const std::string fault = fault_of_command(value);
    require(fault.empty(), ErrorCode::kUsage, "--exec: {}", fault);
    arguments.commands.push_back(value);
  } else if (flag == "--plugin") {
    arguments.plugins.push_back(value);
  } else if (flag == "--scale") {
    arguments.scale = scale_from(value);
  } else if (flag == "--theme") {
    arguments.theme = theme_named(value);
    require(arguments.theme.has_value(), ErrorCode::kUsage,
            "--theme takes dark, light or color-blind, not '{}'", printable(value));
  } else if (flag == "--panel") {
    arguments.panel = panel_from(value);
  } else if (flag == "--select") {
    arguments.select = value;
  } else if (flag == "--size") {
    arguments.size = size_from(value);
  } else if (flag == "-o" || flag == "--out") {
    arguments.out = value;
  } else if (flag == "--errors") {
    arguments.json_errors = value == "json";
  } else {
    add_size(arguments.sizes, flag.substr(std::min<std::size_t>(2, flag.size())), value);
  }
}

}  // namespace

Arguments arguments_from(std::span<const std::string> words) {
  require(!words.empty() && (words[0] == "gui" || words[0] == "shot"), ErrorCode::kUsage,
          "trainscope-window is started by `trainscope gui` and `trainscope shot`");
  Arguments arguments{.is_shot = words[0] == "shot"};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) {
      arguments.paths.emplace_back(words[i]);
      continue;
    }
    require(i + 1 < words.size(), ErrorCode::kUsage, "{} needs a value", printable(words[i]));
    set(arguments, words[i], words[i + 1]);
    ++i;
  }
  if (arguments.is_shot) {
    require(!arguments.paths.empty(), ErrorCode::kUsage, "shot takes a run or a model");
    const std::string ending = arguments.out.extension().string();
    require(ending == ".png" || ending == ".svg", ErrorCode::kUsage,
            "shot needs -o FILE.png or -o FILE.svg");
  }
  return arguments;
}

}  // namespace trainscope::gui
