// Frames of controls on a canvas that nobody looks at.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "gui/draw/svg_writer.h"
#include "gui/ui/ui.h"

namespace trainscope::gui::test {

class DrawnFrame {
 public:
  using Draw = std::function<void(Ui&)>;
  explicit DrawnFrame(Draw draw) : draw_(std::move(draw)) { frame(); }

  // Frames until all input is taken; at least one.
  void frame() {
    do {
      SvgWriter canvas(fonts_, {400.0F, 300.0F});
      items_.begin_frame();
      Input input = queue_.next(seconds_);
      seconds_ += 0.02;
      Ui ui(canvas, theme_of(ThemeName::kDark), input, memory_, items_);
      draw_(ui);
      ui.finish();
      svg_ = canvas.file();
    } while (!queue_.empty());
  }

  void key(std::string_view name) {
    if (name.size() == 1) {
      queue_.push({.kind = InputEvent::Kind::kText, .text = std::string(name)});
    } else {
      queue_.push({.kind = InputEvent::Kind::kChord, .chord = *chord_named(name)});
    }
    frame();
  }
  void type(std::string_view text) {
    queue_.push({.kind = InputEvent::Kind::kText, .text = std::string(text)});
    frame();
  }
  void click(std::string_view path) {
    const Point at = items_.find(path)->seen.center();
    seconds_ += 1.0;
    queue_.push({.kind = InputEvent::Kind::kMove, .at = at});
    queue_.push({.kind = InputEvent::Kind::kPress, .at = at});
    queue_.push({.kind = InputEvent::Kind::kRelease, .at = at});
    frame();
  }
  void drag(std::string_view path, Point by) {
    const Point at = items_.find(path)->seen.center();
    queue_.push({.kind = InputEvent::Kind::kPress, .at = at});
    frame();
    queue_.push({.kind = InputEvent::Kind::kMove, .at = at + by});
    frame();
    queue_.push({.kind = InputEvent::Kind::kRelease, .at = at + by});
    frame();
  }

  const ItemRegistry& items() const { return items_; }
  UiMemory& memory() { return memory_; }
  const std::string& svg() const { return svg_; }

 private:
  Draw draw_;
  Fonts fonts_;
  InputQueue queue_;
  UiMemory memory_;
  ItemRegistry items_{true};
  double seconds_ = 10.0;
  std::string svg_;
};

}  // namespace trainscope::gui::test
