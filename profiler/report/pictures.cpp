// Pictures of the window within the page: each an SVG whose names are its own.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "profiler/report/html.h"
#include "profiler/report/sections.h"

namespace trainscope::profiler {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (;;) {
    const std::size_t at = text.find(from);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    result += to;
    text.remove_prefix(at + from.size());
  }
}

constexpr std::array<std::string_view, 14> kShapes = {
    "svg",  "g",     "defs",   "clipPath", "rect",           "line", "path",
    "text", "tspan", "circle", "polyline", "linearGradient", "stop", "polygon"};

// Names of what is drawn have their < escaped, so that each < begins an element, or ends one.
bool has_shapes_alone(std::string_view svg) {
  for (std::size_t at = svg.find('<'); at != std::string_view::npos; at = svg.find('<', at + 1)) {
    std::string_view rest = svg.substr(at + 1);
    if (rest.starts_with('/')) rest.remove_prefix(1);
    const std::string_view name = rest.substr(0, rest.find_first_of(" />\n"));
    if (std::ranges::find(kShapes, name) == kShapes.end()) return false;
  }
  return true;
}

}  // namespace

std::string inline_svg(std::string_view document, std::string_view prefix) {
  const std::size_t begin = document.find("<svg ");
  const std::size_t end = document.rfind("</svg>");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  const std::string_view svg = document.substr(begin, end + 6 - begin);
  if (!has_shapes_alone(svg)) return {};
  const std::string own = replaced(replaced(svg, " id=\"", " id=\"" + std::string(prefix)), "url(#",
                                   "url(#" + std::string(prefix));
  return "<svg class=\"window\" " + own.substr(5);
}

std::string pictures_section(const ReportInput& input) {
  if (input.pictures.empty()) {
    return input.no_pictures.empty()
               ? std::string()
               : element("p", {{"class", "soft"}}, escaped(input.no_pictures));
  }
  std::string text;
  for (const ReportPicture& picture : input.pictures) {
    const std::string svg = inline_svg(picture.svg, picture.name + "-");
    text += element("h3", {}, escaped(picture.name));
    text += svg.empty() ? element("p", {{"class", "soft"}}, "Left out: it is no picture.")
                        : element("figure", {}, element("div", {{"class", "scroll"}}, svg));
  }
  return text;
}

}  // namespace trainscope::profiler
