// Items, text, keys and layers of a frame.
#include "gui/ui/ui.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/core/error.h"
#include "gui/draw/code_points.h"

namespace trainscope::gui {
namespace {

constexpr double kTooltipSeconds = 0.35;
constexpr std::string_view kEllipsis = "…";

bool is_printable(const Chord& chord) {
  return chord.key >= Key::kSpace && chord.key < Key::kEscape && !chord.control && !chord.alt;
}

// The character that types it.
char typed_by(const Chord& chord) {
  const auto c = static_cast<char>(chord.key);
  return c >= 'A' && c <= 'Z' && !chord.shift ? static_cast<char>(c - 'A' + 'a') : c;
}

// The longest beginning that is no wider, in whole code points.
std::size_t fitting_prefix(const Canvas& canvas, std::string_view text, Face face, float width) {
  std::size_t low = 0;
  std::size_t high = text.size();
  while (low < high) {
    std::size_t middle = (low + high + 1) / 2;
    while (middle < text.size() && (static_cast<unsigned char>(text[middle]) & 0xC0U) == 0x80U) {
      ++middle;
    }
    if (canvas.text_width(text.substr(0, middle), face) <= width) {
      low = middle;
    } else {
      high = std::min(middle, high) - bytes_before(text, std::min(middle, high));
    }
  }
  return low;
}

}  // namespace

float Ui::row_height() const {
  return std::max({kLeastControl, std::round(line_height(Face::kText) * 1.45F),
                   std::round(line_height(Face::kNumber) * 1.45F)});
}

std::string Ui::path_of(std::string_view name) const {
  if (scope_.empty()) return std::string(name);
  return std::string(scope_).append("/").append(name);
}

std::string Ui::shortened(std::string_view text, float width, const TextLook& look) const {
  if (canvas_.text_width(text, look.face) <= width || look.fit == Fit::kWhole) {
    return std::string(text);
  }
  const float room = width - canvas_.text_width(kEllipsis, look.face);
  if (room <= 0.0F) return {};
  if (look.fit == Fit::kEnd) {
    return std::string(text.substr(0, fitting_prefix(canvas_, text, look.face, room)))
        .append(kEllipsis);
  }
  const std::size_t head = fitting_prefix(canvas_, text, look.face, room * 0.4F);
  const float left = room - canvas_.text_width(text.substr(0, head), look.face);
  std::size_t tail = text.size();
  while (tail > head) {
    const std::size_t next = tail - bytes_before(text, tail);
    if (canvas_.text_width(text.substr(next), look.face) > left) break;
    tail = next;
  }
  return std::string(text.substr(0, head)).append(kEllipsis).append(text.substr(tail));
}

void Ui::text(const Rect& rect, std::string_view text, const TextLook& look) {
  if (text.empty() || rect.width <= 0.0F || !canvas_.visible(rect)) return;
  const float whole = canvas_.text_width(text, look.face);
  const bool fits = whole <= rect.width + 0.5F;
  std::string storage;
  std::string_view drawn = text;
  if (!fits && look.fit != Fit::kWhole) {
    storage = shortened(text, rect.width, look);
    drawn = storage;
  }
  const FaceMetrics height = canvas_.metrics(look.face);
  const float width = drawn.data() == text.data() ? whole : canvas_.text_width(drawn, look.face);
  Point at{rect.x, rect.y + std::floor((rect.height - height.line_height) / 2.0F)};
  if (look.align == Align::kRight) at.x = rect.right() - width;
  if (look.align == Align::kCenter) at.x = rect.x + std::max(0.0F, (rect.width - width) / 2.0F);
  const Color ink = look.color.value_or(theme_.ink);
  canvas_.text(at, drawn, look.face, ink);
  if (!items_.keeps_all()) return;
  record({.path = path_of("text" + std::to_string(labels_++)),
          .kind = ItemKind::kLabel,
          .label = std::string(text),
          .rect = rect,
          .seen = rect.intersected(canvas_.clip()),
          .text = {at.x, at.y, width, height.line_height},
          .moves = moves_,
          .layer = layer_,
          .fits = fits || look.fit != Fit::kWhole,
          .ink = ink,
          .paper = paper_});
}

void Ui::fitting_text(const Rect& rect, std::initializer_list<std::string_view> texts,
                      const TextLook& look) {
  if (rect.height < line_height(look.face) - kBlankOfLine) return;
  for (const std::string_view text : texts) {
    if (width(text, look.face) <= rect.width) return this->text(rect, text, look);
  }
}

float Ui::paragraph(const Rect& rect, std::string_view text, const TextLook& look) {
  const std::string_view whole = text;
  const float line = std::round(line_height(look.face) * 1.35F);
  const float bottom = rect.bottom() + 0.5F;
  float y = rect.y;
  float drawn_to = rect.y;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    do {
      std::size_t length = fitting_prefix(canvas_, rest, look.face, rect.width);
      if (length < rest.size()) {
        const std::size_t blank = rest.rfind(' ', length);
        if (blank != std::string_view::npos && blank > 0) length = blank;
        if (length == 0) length = first_code_point(rest).bytes;
      }
      if (y + line <= bottom) {
        const bool is_last = look.fit != Fit::kWhole && y + 2.0F * line > bottom;
        const bool more_lines = is_last && !text.empty();
        this->text({rect.x, y, rect.width, line},
                   more_lines ? std::string(rest) + " …"
                   : is_last  ? rest
                              : rest.substr(0, length),
                   look);
        drawn_to = y + line;
      }
      y += line;
      rest.remove_prefix(length);
      while (rest.starts_with(' ')) rest.remove_prefix(1);
    } while (!rest.empty());
  }
  const bool is_cut = rect.y < drawn_to && drawn_to < y;
  if (is_cut && look.fit == Fit::kWhole && items_.keeps_all()) {
    record({.path = path_of("text" + std::to_string(labels_++)),
            .kind = ItemKind::kLabel,
            .label = std::string(whole),
            .rect = rect,
            .seen = rect.intersected(canvas_.clip()),
            .layer = layer_,
            .fits = false});
  }
  return y - rect.y;
}

void Ui::number(std::string_view name, const Rect& rect, const Quantity& quantity,
                std::string_view fact, const TextLook& look) {
  if (!canvas_.visible(rect)) return;
  QuantityText drawn = text_of(quantity);
  const std::string value = drawn.whole();
  if (look.hides_unit) drawn.unit = {};
  const std::string whole = drawn.whole();
  const float width = canvas_.text_width(whole, look.face);
  const FaceMetrics height = canvas_.metrics(look.face);
  const float top = rect.y + std::floor((rect.height - height.line_height) / 2.0F);
  const float left = rect.right() - width;
  const Color ink = look.color.value_or(theme_.ink);
  canvas_.text({left, top}, drawn.number, look.face, ink);
  if (!drawn.unit.empty()) {
    const float unit = canvas_.text_width(drawn.unit, look.face);
    canvas_.text({left + width - unit, top}, drawn.unit, look.face,
                 look.color.value_or(theme_.soft_ink));
  }
  if (!items_.keeps_all()) return;
  record({.path = path_of(name),
          .kind = ItemKind::kNumber,
          .label = whole,
          .value = value,
          .rect = rect,
          .seen = rect.intersected(canvas_.clip()),
          .text = {left, top, width, height.line_height},
          .moves = moves_,
          .layer = layer_,
          .fits = width <= rect.width + 0.5F,
          .ink = drawn.unit.empty() ? ink : look.color.value_or(theme_.soft_ink),
          .paper = paper_,
          .fact = std::string(fact),
          .number = quantity.value});
}

bool Ui::reaches(Point point) const {
  return std::ranges::none_of(memory_.covers, [&](const Cover& cover) {
    return cover.layer > layer_ && cover.rect.contains(point);
  });
}

Response Ui::hit(std::string_view name, const Rect& rect, const HitLook& look) {
  const std::string path = path_of(name);
  const Rect seen = rect.intersected(canvas_.clip());
  const bool inside = look.enabled && seen.contains(input_.mouse) && reaches(input_.mouse) &&
                      (memory_.held.empty() || memory_.held == path);
  if (look.kind != ItemKind::kMark || look.focusable || items_.keeps_all()) {
    record({.path = path,
            .kind = look.kind,
            .label = std::string(look.label),
            .value = std::string(look.value),
            .rect = rect,
            .seen = seen,
            .enabled = look.enabled,
            .focusable = look.focusable && look.enabled,
            .layer = layer_,
            .fits = look.fits,
            .ink = look.ink.value_or(paper_),
            .paper = paper_});
  }
  return pointed(path, rect, look, inside);
}

Response Ui::pointed(const std::string& path, const Rect& rect, const HitLook& look, bool inside) {
  Response response{.hovered = inside};
  if (inside) hovered_ = path;
  if (inside && input_.is_pressed(MouseButton::kLeft)) {
    memory_.held = path;
    if (look.focusable) memory_.focus = path;
    if (!region_.empty()) memory_.region = region_;
  }
  response.held = memory_.held == path;
  if (response.held) {
    response.dragged = input_.moved;
    response.clicked = inside && input_.is_released(MouseButton::kLeft);
  }
  response.double_clicked = response.held && inside && input_.double_click;
  response.right_clicked = inside && input_.is_pressed(MouseButton::kRight);
  response.middle_clicked = inside && input_.is_pressed(MouseButton::kMiddle);
  if (inside) response.wheel = input_.wheel;
  response.focused = look.focusable && memory_.focus == path;
  if (response.focused) {
    canvas_.outline(rect, {.color = theme_.accent, .width = 1.5F}, 3.0F);
    if (look.enabled && (take(Chord{.key = Key::kEnter}) || take(Chord{.key = Key::kSpace}))) {
      response.clicked = true;
    }
  }
  return response;
}

void Ui::tooltip(const Response& response, std::string_view text) {
  if (response.hovered) tooltip_ = text;
}

bool Ui::take(const Chord& chord) {
  if (is_printable(chord)) {
    if (edits_text() || !input_.text.starts_with(typed_by(chord))) return false;
    input_.text.erase(0, 1);
    return true;
  }
  if (input_.chord != chord) return false;
  input_.chord.reset();
  return true;
}

bool Ui::take(std::string_view chord_name) {
  const std::optional<Chord> chord = chord_named(chord_name);
  CHECK_INVARIANT(chord.has_value());
  return take(*chord);
}

std::string Ui::take_text() { return std::exchange(input_.text, {}); }

void Ui::later(int layer, std::function<void(Ui&)> draw) {
  later_.push_back({layer, scope_, std::move(draw)});
}

void Ui::cover(const Rect& rect) { covers_.push_back({layer_, rect}); }

void UiMemory::close_popup() {
  if (focus.starts_with(open_popup + "/menu/")) focus = focus_before_popup;
  open_popup.clear();
}

void Ui::finish() {
  if (!memory_.open_popup.empty() && !shows_popup_) memory_.close_popup();
  while (!later_.empty()) {
    const auto next = std::ranges::min_element(later_, {}, &Later::layer);
    const Later entry = std::move(*next);
    later_.erase(next);
    layer_ = entry.layer;
    scope_ = entry.scope;
    entry.draw(*this);
  }
  layer_ = kPanelLayer;
  scope_.clear();
  move_focus();
  draw_tooltip();
  if (!input_.is_down(MouseButton::kLeft)) memory_.held.clear();
  memory_.covers = std::move(covers_);
}

void Ui::move_focus() {
  const bool forward = take(Chord{.key = Key::kTab});
  if (!forward && !take(Chord{.key = Key::kTab, .shift = true})) return;
  int top = kPanelLayer;
  for (const Item& item : items_.items()) {
    if (item.layer == kModalLayer) top = kModalLayer;
  }
  std::vector<const Item*> stops;
  for (const Item& item : items_.items()) {
    if (item.focusable && item.layer >= top && !item.seen.empty()) stops.push_back(&item);
  }
  if (stops.empty()) return;
  const auto at = std::ranges::find(stops, memory_.focus, [](const Item* i) { return i->path; });
  const auto count = std::ssize(stops);
  std::ptrdiff_t next = forward ? 0 : count - 1;
  if (at != stops.end()) next = (at - stops.begin() + (forward ? 1 : count - 1)) % count;
  memory_.focus = stops[static_cast<std::size_t>(next)]->path;
}

void Ui::draw_tooltip() {
  if (hovered_ != memory_.hovered) {
    memory_.hovered = hovered_;
    memory_.hovered_since = input_.seconds;
  }
  const bool shown = !tooltip_.empty() && memory_.held.empty() &&
                     input_.seconds - memory_.hovered_since >= kTooltipSeconds;
  if (!shown) return;
  layer_ = kModalLayer + 1;
  const Rect window = canvas_.clip();
  const float widest = std::min(360.0F, window.width - 24.0F);
  const float line = std::round(line_height() * 1.35F);
  float width = 0.0F;
  for (std::string_view rest = tooltip_; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    width = std::max(width, canvas_.text_width(rest.substr(0, end), Face::kText));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  width = std::min(width + 1.0F, widest);
  // Its height is known once it is laid out; where nothing is seen.
  float height = line;
  {
    const Clip nowhere(*this, {0.0F, 0.0F, 0.0F, 0.0F});
    height = paragraph({0.0F, 0.0F, width, 1e6F}, tooltip_);
  }
  Rect box{input_.mouse.x + 14.0F, input_.mouse.y + 18.0F, width + 16.0F, height + 8.0F};
  box.x = std::max(4.0F, std::min(box.x, window.right() - box.width - 4.0F));
  if (box.bottom() > window.bottom()) box.y = std::max(4.0F, input_.mouse.y - box.height - 6.0F);
  scope_ = "tooltip";
  const Surface surface(*this, box, theme_.header, 4.0F);
  canvas_.outline(box, {.color = theme_.line}, 4.0F);
  paragraph({box.x + 8.0F, box.y + 4.0F, width, height}, tooltip_);
  scope_.clear();
}

Scope::Scope(Ui& ui, std::string_view name) : ui_(ui), size_(ui.scope_.size()) {
  if (!ui_.scope_.empty()) ui_.scope_ += '/';
  ui_.scope_ += name;
}

Clip::Clip(Ui& ui, const Rect& rect, Moves moves) : ui_(ui), before_(ui.moves_) {
  ui_.canvas_.push_clip(rect);
  ui_.moves_ = std::max(before_, moves);
}

Clip::~Clip() {
  ui_.canvas_.pop_clip();
  ui_.moves_ = before_;
}

Surface::Surface(Ui& ui, const Rect& rect, Color color, float radius)
    : ui_(ui), before_(ui.paper_) {
  ui_.canvas_.fill(rect, color, radius);
  ui_.paper_ = color;
}

Region::Region(Ui& ui, std::string_view name, const Rect& rect, int layer)
    : ui_(ui), before_(std::exchange(ui.region_, std::string(name))), layer_before_(ui.layer_) {
  ui_.layer_ = layer;
  if (layer > kPanelLayer) ui_.cover(rect);
  const bool pressed =
      ui.is_pressed_in(rect, MouseButton::kLeft) || ui.is_pressed_in(rect, MouseButton::kRight);
  if (pressed) ui_.memory_.region = ui_.region_;
}

Region::~Region() {
  ui_.region_ = before_;
  ui_.layer_ = layer_before_;
}

}  // namespace trainscope::gui
