// Frames by hand: no display, no graphics card, no clock.
#include "gui/platform/headless.h"

#include <imgui.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "gui/draw/code_points.h"
#include "gui/draw/imgui_canvas.h"
#include "gui/draw/raster.h"
#include "gui/draw/svg_writer.h"

namespace trainscope::gui {
namespace {

constexpr double kFrameSeconds = 1.0 / 60.0;

}  // namespace

Headless::Headless(Settings settings, const Look& look)
    : fonts_(settings.fonts(look.scale)),
      context_(ImGui::CreateContext(fonts_.atlas())),
      app_(std::move(settings), look.keeps_items),
      size_(look.size),
      screen_scale_(look.scale) {
  ImGui::SetCurrentContext(context_);
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  ImGui::GetStyle().AntiAliasedLinesUseTex = false;
}

Headless::~Headless() { ImGui::DestroyContext(context_); }

void Headless::draw(bool as_picture) {
  ImGui::SetCurrentContext(context_);
  fonts_.resize(workbench().settings.fonts(screen_scale_));
  ImGuiIO& io = ImGui::GetIO();
  io.Fonts = fonts_.atlas();
  const float scale = fonts_.sizes().scale;
  // A window of so many pixels has fewer logical ones when its user wants all larger.
  const Extent logical{size_.width * screen_scale_ / scale, size_.height * screen_scale_ / scale};
  io.DisplaySize = ImVec2(std::round(logical.width * scale), std::round(logical.height * scale));
  io.DeltaTime = static_cast<float>(kFrameSeconds);
  ImGui::NewFrame();
  ImGuiCanvas canvas(*ImGui::GetBackgroundDrawList(), fonts_,
                     {0.0F, 0.0F, logical.width, logical.height});
  seconds_ += kFrameSeconds;
  app_.frame(canvas, seconds_);
  ImGui::Render();
  if (as_picture) {
    picture_ = rasterized(*ImGui::GetDrawData(), *fonts_.atlas(),
                          theme_of(workbench().settings.theme).background);
  }
}

void Headless::step(int frames) {
  const bool has_input = !app_.input().empty();
  for (int i = 0; i < frames; ++i) draw(false);
  while (!app_.input().empty()) draw(false);
  if (has_input) draw(false);  // what the input has changed is seen
}

void Headless::settle() {
  constexpr int kMostFrames = 8;
  step(2);
  for (int i = 0; i < kMostFrames && fonts_.settle(); ++i) step();
  // Threads and processes whose results are drawn take their time.
  constexpr auto kMostWait = std::chrono::seconds(60);
  const auto end = std::chrono::steady_clock::now() + kMostWait;
  while (workbench().under_way && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    step();
  }
  if (fonts_.settle()) step();
}

Picture Headless::picture() {
  draw(true);
  return picture_;
}

std::string Headless::svg() {
  const float scale = fonts_.sizes().scale;
  const Extent logical{size_.width * screen_scale_ / scale, size_.height * screen_scale_ / scale};
  SvgWriter writer(fonts_, logical);
  seconds_ += kFrameSeconds;
  app_.frame(writer, seconds_);
  return writer.file();
}

const Item* Headless::reachable(std::string_view path) {
  const Item* item = items().find(path);
  return item != nullptr && item->enabled && !item->seen.empty() ? item : nullptr;
}

void Headless::press(const Item& item, MouseButton button) {
  using Kind = InputEvent::Kind;
  const Point at = item.seen.center();
  app_.input().push({.kind = Kind::kMove, .at = at});
  app_.input().push({.kind = Kind::kPress, .at = at, .button = button});
  app_.input().push({.kind = Kind::kRelease, .at = at, .button = button});
}

bool Headless::click(std::string_view path) {
  const Item* item = reachable(path);
  if (item == nullptr) return false;
  // Far from the click before: two of them are no double click.
  seconds_ += 1.0;
  press(*item, MouseButton::kLeft);
  step();
  return true;
}

bool Headless::double_click(std::string_view path) {
  const Item* item = reachable(path);
  if (item == nullptr) return false;
  seconds_ += 1.0;
  const Item copy = *item;
  press(copy, MouseButton::kLeft);
  press(copy, MouseButton::kLeft);
  step();
  return true;
}

bool Headless::right_click(std::string_view path) {
  const Item* item = reachable(path);
  if (item == nullptr) return false;
  press(*item, MouseButton::kRight);
  step();
  return true;
}

bool Headless::hover(std::string_view path) {
  const Item* item = reachable(path);
  if (item == nullptr) return false;
  app_.input().push({.kind = InputEvent::Kind::kMove, .at = item->seen.center()});
  step();
  seconds_ += 1.0;  // long enough for its tooltip
  step();
  return true;
}

void Headless::drag_from(Point from, Point to, const Chord& modifiers) {
  using Kind = InputEvent::Kind;
  seconds_ += 1.0;
  app_.input().push({.kind = Kind::kMove, .at = from});
  app_.input().push({.kind = Kind::kPress, .at = from, .chord = modifiers});
  step();
  app_.input().push({.kind = Kind::kMove, .at = to});
  step();
  app_.input().push({.kind = Kind::kRelease, .at = to});
  step();
}

bool Headless::drag(std::string_view path, Point by) {
  const Item* item = reachable(path);
  if (item == nullptr) return false;
  const Point from = item->seen.center();
  drag_from(from, from + by, {});
  return true;
}

bool Headless::drag_within(std::string_view path, Point from, Point to, const Chord& modifiers) {
  const Item* item = reachable(path);
  if (item == nullptr) return false;
  const Rect seen = item->seen;
  const auto at = [&](Point shares) {
    return Point{seen.x + shares.x * seen.width, seen.y + shares.y * seen.height};
  };
  drag_from(at(from), at(to), modifiers);
  return true;
}

bool Headless::wheel(std::string_view path, float turns) {
  const Item* item = reachable(path);
  if (item == nullptr) return false;
  app_.input().push({.kind = InputEvent::Kind::kMove, .at = item->seen.center()});
  app_.input().push({.kind = InputEvent::Kind::kWheel, .at = {0.0F, turns}});
  step();
  return true;
}

void Headless::key(std::string_view name) {
  const std::optional<Chord> chord = chord_named(name);
  const bool is_typed = name.size() == 1;
  if (is_typed) {
    type(name);
  } else if (chord) {
    app_.input().push({.kind = InputEvent::Kind::kChord, .chord = *chord});
    step();
  }
}

void Headless::type(std::string_view text) {
  app_.input().push({.kind = InputEvent::Kind::kText, .text = std::string(text)});
  step();
}

}  // namespace trainscope::gui
