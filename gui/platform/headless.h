// Drives the window without a window: for pictures and tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gui/app/app.h"
#include "gui/draw/fonts.h"
#include "gui/draw/picture.h"

struct ImGuiContext;

namespace trainscope::gui {

class Headless {
 public:
  struct Look {
    Extent size = {1280.0F, 720.0F};  // logical pixels
    float scale = 1.0F;               // of the screen
    bool keeps_items = true;
  };
  Headless(Settings settings, const Look& look);
  ~Headless();
  Headless(const Headless&) = delete;
  Headless& operator=(const Headless&) = delete;

  App& app() { return app_; }
  Workbench& workbench() { return app_.workbench(); }
  const ItemRegistry& items() const { return app_.items(); }
  Fonts& fonts() { return fonts_; }
  void resize(Extent size) { size_ = size; }
  void rescale(float screen_scale) { screen_scale_ = screen_scale; }

  // Frames of 1/60 s; at least one, and all input is taken.
  void step(int frames = 1);
  // One frame alone, which takes as much of the input as a frame does.
  void frame() { draw(false); }
  // Steps until nothing changes any more: glyphs of names that were not known are in.
  void settle();

  // By paths of items. False where there is none of this path, or it cannot be used.
  bool click(std::string_view path);
  bool double_click(std::string_view path);
  bool right_click(std::string_view path);
  bool hover(std::string_view path);
  bool drag(std::string_view path, Point by);
  // Within what is seen of it: from and to are shares of that.
  bool drag_within(std::string_view path, Point from, Point to, const Chord& modifiers = {});
  bool wheel(std::string_view path, float turns);
  void key(std::string_view chord);  // "Ctrl+P", "F4", "z"
  void type(std::string_view text);

  Picture picture();
  std::string svg();  // of the whole canvas

 private:
  const Item* reachable(std::string_view path);
  void press(const Item& item, MouseButton button);
  void drag_from(Point from, Point to, const Chord& modifiers);
  void draw(bool as_picture);

  Fonts fonts_;
  ImGuiContext* context_;
  App app_;
  Extent size_;
  float screen_scale_;
  double seconds_ = 0.0;
  Picture picture_;
};

}  // namespace trainscope::gui
