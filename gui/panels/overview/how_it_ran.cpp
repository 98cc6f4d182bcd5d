// Texts and numbers of a line, one behind the other.
#include "gui/panels/overview/how_it_ran.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"

namespace trainscope::gui {
namespace {

// Drawn with all of it or not at all; without a name it is a text alone.
struct Part {
  std::string before = {};
  std::string_view name = {};  // of the number
  double number = 0.0;
  std::string fact = {};
  std::string after = {};
};

QuantityText number_of(const Part& part) { return text_of({part.number, Unit::kCount}); }

float width_of(const Ui& ui, const Part& part) {
  const float number =
      part.name.empty() ? 0.0F : std::ceil(ui.width(number_of(part).whole(), Face::kNumber));
  return std::ceil(ui.width(part.before)) + number + std::ceil(ui.width(part.after));
}

void draw_part(Ui& ui, const Part& part, Rect rect) {
  const Color ink = ui.theme().soft_ink;
  ui.text(take_left(rect, std::ceil(ui.width(part.before))), part.before, {.color = ink});
  if (part.name.empty()) return;
  const float number = std::ceil(ui.width(number_of(part).whole(), Face::kNumber));
  ui.number(part.name, take_left(rect, number), {part.number, Unit::kCount}, part.fact,
            {.face = Face::kNumber, .color = ink});
  if (!part.after.empty()) ui.text(rect, part.after, {.color = ink});
}

std::string file_of(const Json& object) {
  if (!object.is_object()) return "-";
  const Json* file = object.find("file");
  if (file == nullptr || !file->is_string()) return object.get_or("kind", "-");
  return std::filesystem::path(file->as_string()).filename().string();
}

// "model.onnx on synthetic".
std::string what_ran(const RunManifest& manifest) {
  const std::string data = file_of(manifest.data);
  const bool has_model = manifest.model.is_object() && !manifest.model.as_object().empty();
  if (has_model) return fmt::format("{} on {}", file_of(manifest.model), data);
  return fmt::format("a trace of {}, {}", manifest.data.get_or("tool", "another tool"), data);
}

// "cuda:0, NVIDIA H100": the driver's name tells one GPU from another.
std::string device_of(const RunSession& session) {
  const std::string name = printable(session.device_name, 60);
  const std::string device = printable(session.device, 60);
  return name.empty() || device.empty() ? device + name : fmt::format("{}, {}", device, name);
}

constexpr std::string_view kBetween = "  ·  ";

std::vector<Part> parts_of(const RunData& run) {
  const RunSession& session = *run.session_record();
  std::vector<Part> parts;
  const auto add = [&](std::string text) -> Part& {
    return parts.emplace_back(Part{.before = fmt::format("{}{}", kBetween, text)});
  };
  add(std::string(trainscope::name_of(session.status)));
  if (run.session_count() > 1) {
    Part& sessions = add(fmt::format("session {} of ", run.session()));
    sessions.name = "sessions";
    sessions.number = static_cast<double>(run.session_count());
    sessions.fact = "/manifest/sessions";
  }
  if (const std::string device = device_of(session); !device.empty()) add(device);
  if (session.threads > 0) {
    Part& threads = add({});
    threads.name = "threads";
    threads.number = static_cast<double>(session.threads);
    threads.fact = fmt::format("/manifest/sessions/{}/threads", run.session() - 1);
    threads.after = session.threads == 1 ? " thread" : " threads";
    if (!session.isa.empty()) threads.after += ", " + printable(session.isa, 60);
  }
  return parts;
}

}  // namespace

void draw_how_it_ran(Ui& ui, const RunData& run, Rect row) {
  if (run.session_record() == nullptr) {
    return ui.fitting_text(row, {"an ONNX model, not trained yet", "an ONNX model"},
                           {.color = ui.theme().soft_ink});
  }
  const Scope scope(ui, "how");
  const std::vector<Part> parts = parts_of(run);
  float wanted = 0.0F;
  for (const Part& part : parts) wanted += width_of(ui, part);
  const std::string names = what_ran(*run.manifest());
  constexpr float kLeastShare = 0.35F;  // of the row, for names that are longer
  const float width =
      std::min(std::ceil(ui.width(names)), std::max(row.width - wanted, kLeastShare * row.width));
  ui.text(take_left(row, width), names, {.color = ui.theme().soft_ink, .fit = Fit::kEnd});
  for (const Part& part : parts) {
    const float needed = width_of(ui, part);
    if (needed > row.width) continue;
    draw_part(ui, part, take_left(row, needed));
  }
}

}  // namespace trainscope::gui
