// Keys, mouse and cursor of text fields.
#include "gui/ui/text_field.h"

#include <algorithm>
#include <utility>

#include "gui/draw/code_points.h"

namespace trainscope::gui {
namespace {

constexpr float kFieldPadding = 8.0F;

class Editor {
 public:
  Editor(Ui& ui, std::string& text, TextCursor& cursor) : ui_(ui), text_(text), cursor_(cursor) {
    cursor_.at = std::min(cursor_.at, text_.size());
    cursor_.anchor = std::min(cursor_.anchor, text_.size());
  }

  // True where the text changed.
  bool keys() {
    const std::string before = text_;
    if (ui_.take("Ctrl+A")) {
      cursor_.anchor = 0;
      cursor_.at = text_.size();
    }
    if (ui_.take("Ctrl+C")) ui_.copy(selected());
    if (ui_.take("Ctrl+X")) {
      ui_.copy(selected());
      replace({});
    }
    if (ui_.take("Ctrl+V")) replace(std::exchange(ui_.memory().pasted, {}));
    move("Left", previous());
    move("Right", next());
    move("Ctrl+Left", word_before());
    move("Ctrl+Right", word_after());
    move("Home", 0);
    move("End", text_.size());
    if (ui_.take("Backspace")) erase_to(previous());
    if (ui_.take("Ctrl+Backspace")) erase_to(word_before());
    if (ui_.take("Delete")) erase_to(next());
    const std::string typed = ui_.take_text();
    if (!typed.empty()) replace(typed);
    return text_ != before;
  }

 private:
  std::size_t first() const { return std::min(cursor_.at, cursor_.anchor); }
  std::size_t last() const { return std::max(cursor_.at, cursor_.anchor); }
  std::string selected() const { return text_.substr(first(), last() - first()); }

  void replace(const std::string& with) {
    text_.replace(first(), last() - first(), with);
    cursor_.at = cursor_.anchor = first() + with.size();
  }
  void erase_to(std::size_t at) {
    if (cursor_.at == cursor_.anchor) cursor_.at = at;
    replace({});
  }
  std::size_t previous() const {
    return cursor_.at == 0 ? 0 : cursor_.at - bytes_before(text_, cursor_.at);
  }
  std::size_t next() const {
    if (cursor_.at >= text_.size()) return text_.size();
    return cursor_.at + first_code_point(std::string_view(text_).substr(cursor_.at)).bytes;
  }
  std::size_t word_before() const {
    std::size_t at = cursor_.at;
    while (at > 0 && text_[at - 1] == ' ') --at;
    while (at > 0 && text_[at - 1] != ' ') --at;
    return at;
  }
  std::size_t word_after() const {
    std::size_t at = cursor_.at;
    while (at < text_.size() && text_[at] != ' ') ++at;
    while (at < text_.size() && text_[at] == ' ') ++at;
    return at;
  }
  void move(const std::string& chord, std::size_t to) {
    if (ui_.take(chord)) {
      cursor_.at = cursor_.anchor = to;
      return;
    }
    const std::size_t key = chord.rfind('+');
    const std::string extending = key == std::string::npos
                                      ? "Shift+" + chord
                                      : chord.substr(0, key + 1) + "Shift+" + chord.substr(key + 1);
    if (ui_.take(extending)) cursor_.at = to;
  }

  Ui& ui_;
  std::string& text_;
  TextCursor& cursor_;
};

// The place in the text that is nearest to an x.
std::size_t place_at(const Ui& ui, std::string_view text, float x) {
  std::size_t best = 0;
  float nearest = std::abs(x);
  for (std::size_t at = 0; at < text.size();) {
    at += first_code_point(text.substr(at)).bytes;
    const float far = std::abs(ui.width(text.substr(0, at)) - x);
    if (far < nearest) {
      nearest = far;
      best = at;
    }
  }
  return best;
}

void draw_text(Ui& ui, const Rect& inside, const std::string& text, const TextCursor* cursor,
               std::string_view hint) {
  const std::string_view all = text;
  const float at = cursor == nullptr ? 0.0F : ui.width(all.substr(0, cursor->at));
  // What is before the cursor is scrolled out when it would be beyond the right end.
  const float shift = std::max(0.0F, at - inside.width + 2.0F);
  const float line = ui.line_height();
  const float top = inside.y + (inside.height - line) / 2.0F;
  const Clip clip(ui, inside, Moves::kAll);
  if (cursor != nullptr && cursor->at != cursor->anchor) {
    const float other = ui.width(all.substr(0, cursor->anchor));
    ui.canvas().fill({inside.x - shift + std::min(at, other), top, std::abs(at - other), line},
                     ui.theme().selected);
  }
  if (text.empty()) {
    ui.fitting_text(inside, {hint, hint.substr(0, hint.find(':'))}, {.color = ui.theme().soft_ink});
  } else {
    ui.text(
        {inside.x - shift, inside.y, std::max(inside.width, ui.width(text)) + shift, inside.height},
        text);
  }
  if (cursor != nullptr) {
    ui.canvas().fill({inside.x - shift + at, top, 1.5F, line}, ui.theme().accent);
  }
}

}  // namespace

FieldResponse text_field(Ui& ui, std::string_view name, const Rect& rect, std::string& text,
                         const FieldLook& look) {
  UiMemory& memory = ui.memory();
  const std::string path = ui.path_of(name);
  if (look.takes_focus) memory.focus = path;
  // Enter is the field's own: it is taken before the item would be activated by it.
  const bool has_focus = memory.focus == path;
  FieldResponse result;
  if (has_focus) {
    if (memory.cursor.path != path) memory.cursor = {.path = path, .at = text.size(), .anchor = 0};
    result.submitted = ui.take("Enter");
    result.left = ui.take("Esc");
  }
  const Rect inside = rect.inset(kFieldPadding, 0.0F);
  ui.canvas().fill(rect, ui.theme().inset, 4.0F);
  ui.canvas().outline(rect, {.color = look.is_wrong ? ui.theme().error : ui.theme().line}, 4.0F);
  const Response response = ui.hit(name, rect, {.kind = ItemKind::kField, .value = text});
  TextCursor* cursor = nullptr;
  if (response.focused) {
    cursor = &memory.cursor;
    if (cursor->path != path) *cursor = {.path = path, .at = text.size(), .anchor = 0};
    if (response.held && ui.input().is_down(MouseButton::kLeft)) {
      cursor->at = place_at(ui, text, ui.input().mouse.x - inside.x);
      if (ui.input().is_pressed(MouseButton::kLeft)) cursor->anchor = cursor->at;
    }
    result.changed = Editor(ui, text, *cursor).keys();
  } else if (memory.cursor.path == path) {
    memory.cursor.path.clear();
  }
  {
    const Surface surface(ui, {rect.x, rect.y, 0.0F, 0.0F}, ui.theme().inset);
    draw_text(ui, inside, text, cursor, look.hint);
  }
  if (result.left) memory.focus.clear();
  if (!look.tooltip.empty()) ui.tooltip(response, look.tooltip);
  return result;
}

}  // namespace trainscope::gui
