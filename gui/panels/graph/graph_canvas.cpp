// The layout of a stage as it is drawn: bands, nodes, edges, a small map of the whole.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "gui/panels/graph/graph_state.h"

namespace trainscope::gui {
namespace {

constexpr float kStub = 12.0F;
constexpr float kReadable = 1.0F;  // zoom

class GraphDrawer {
 public:
  GraphDrawer(Ui& ui, Workbench& workbench, GraphState& state, const Rect& rect)
      : ui_(ui),
        workbench_(workbench),
        state_(state),
        rect_(rect),
        view_{.width = rect.width, .height = rect.height},
        selected_(selected_place(state, workbench)) {}

  void draw(bool follows) {
    if (state_.fits) state_.camera = fit_camera(state_.layout, view_);
    if (state_.begins) state_.camera = first_camera(state_.layout, view_);
    state_.fits = state_.begins = false;
    state_.usual_camera = with_selected_seen(first_camera(state_.layout, view_));
    if (follows) bring_into_view();
    if (state_.asked_camera) state_.camera = *std::exchange(state_.asked_camera, std::nullopt);
    const float share =
        advance_step(state_.step, ui_.input().seconds, workbench_.settings.reduced_motion);
    workbench_.moves = workbench_.moves || share < 1.0F;
    workbench_.under_way = workbench_.under_way || !state_.step.empty();
    if (share < 1.0F) moving_ = layout_on_its_way(state_.layout, state_.step, share);
    interact();
    const Surface surface(ui_, rect_, ui_.theme().inset);
    const Clip clip(ui_, rect_, Moves::kAll);
    for (const FrameBlock& block : state_.frame.blocks) draw_block(block);
    draw_near_misses(ui_, workbench_, state_,
                     {.layout = moving_ ? *moving_ : state_.layout,
                      .rect = rect_,
                      .over_node = hovered_ != kNoPlace,
                      .clicked = clicked_beside_});
    for (const FrameEdge& edge : state_.frame.edges) draw_edge(edge);
    draw_ghosts(ui_, state_.step, state_.layout, state_.camera, rect_, share);
    for (const FrameNode& node : state_.frame.nodes) draw_node(node);
    draw_graph_map(ui_, state_, rect_);
  }

 private:
  void frame() {
    frame_graph(state_.picture, moving_ ? *moving_ : state_.layout, state_.camera, view_, selected_,
                state_.frame);
  }

  // The selected node is in the middle, unless it is seen already.
  GraphCamera with_selected_seen(const GraphCamera& camera) const {
    if (selected_ == kNoPlace) return camera;
    const LaidNode& node = state_.layout.nodes[selected_];
    const float x = (node.x - camera.x) * camera.zoom;
    const float y = (node.y - camera.y) * camera.zoom;
    const bool seen = x >= 0.0F && y >= 0.0F && x + kNodeWidth * camera.zoom <= view_.width &&
                      y + kNodeHeight * camera.zoom <= view_.height;
    if (seen && camera.zoom >= 0.3F) return camera;
    return camera_at(state_.layout, selected_, view_, std::max(camera.zoom, kReadable));
  }
  void bring_into_view() { state_.camera = with_selected_seen(state_.camera); }

  void interact() {
    const bool over_map = hold_graph_map(ui_, state_, rect_);
    const Response response = ui_.hit(
        "canvas", rect_, {.kind = ItemKind::kArea, .label = "graph", .value = detail_name()});
    const Point mouse = ui_.input().mouse - rect_.origin();
    if (response.wheel.y != 0.0F) {
      state_.camera = zoomed(state_.camera, std::pow(1.18F, response.wheel.y), mouse.x, mouse.y);
    }
    if (ui_.input().is_pressed(MouseButton::kLeft)) {
      state_.dragged = 0.0F;
    } else if (response.held) {
      drag(response.dragged);
    }
    if (ui_.region_has_keys() || response.focused) walk();
    frame();
    hovered_ = response.hovered && !over_map ? node_at(state_.frame, mouse.x, mouse.y) : kNoPlace;
    if (hovered_ != kNoPlace) ui_.tooltip(response, text_of_node(hovered_));
    if (response.middle_clicked || response.right_clicked) return choose_hovered(response);
    if (!response.clicked || state_.dragged >= kGraphClick) return;
    if (hovered_ == kNoPlace) return click_beside_nodes(ui_.input().mouse);
    choose_hovered(response);
  }

  // The middle button goes to it as well.
  void choose_hovered(const Response& response) {
    if (hovered_ == kNoPlace) return;
    select_place(state_, workbench_, hovered_);
    selected_ = hovered_;
    if (response.middle_clicked) {
      state_.camera = camera_at(state_.layout, selected_, view_, kReadable);
    }
    frame();
  }

  std::string_view detail_name() const {
    static constexpr std::array<std::string_view, 3> kNames = {"marks", "boxes", "texts"};
    return kNames[static_cast<std::size_t>(state_.frame.detail)];
  }

  void drag(Point by) {
    state_.dragged += std::abs(by.x) + std::abs(by.y);
    if (state_.dragged < kGraphClick) return;
    state_.camera.x -= by.x / state_.camera.zoom;
    state_.camera.y -= by.y / state_.camera.zoom;
  }

  void walk() {
    struct Step {
      std::string_view key;
      Direction direction;
    };
    constexpr std::array<Step, 4> kSteps = {{{"Up", Direction::kUp},
                                             {"Down", Direction::kDown},
                                             {"Left", Direction::kLeft},
                                             {"Right", Direction::kRight}}};
    for (const Step& step : kSteps) {
      if (state_.list_has_focus || !ui_.take(step.key)) continue;
      const std::uint32_t next =
          selected_ == kNoPlace
              ? (state_.layout.nodes.empty() ? kNoPlace : 0U)
              : neighbour_of(state_.picture, state_.layout, selected_, step.direction);
      select_place(state_, workbench_, next);
      selected_ = selected_place(state_, workbench_);
      bring_into_view();
      ui_.memory().focus = ui_.path_of("canvas");
    }
    // A block or a near miss that has the focus takes it itself.
    const std::string& focus = ui_.memory().focus;
    const bool is_mine = focus.empty() || focus == ui_.path_of("canvas");
    if (is_mine && selected_ != kNoPlace && ui_.take("Enter")) {
      state_.camera = camera_at(state_.layout, selected_, view_, kReadable);
    }
    const float x = view_.width / 2.0F;
    const float y = view_.height / 2.0F;
    if (ui_.take("+")) state_.camera = zoomed(state_.camera, 1.3F, x, y);
    if (ui_.take("-")) state_.camera = zoomed(state_.camera, 1.0F / 1.3F, x, y);
  }

  Rect on_screen(const LayoutRect& rect) const {
    return {rect_.x + rect.x, rect_.y + rect.y, rect.width, rect.height};
  }

  // Of a band on the screen; empty where it is too low for text. It stays seen where the band is
  // longer than the view.
  Rect head_of(const Rect& rect) const {
    const float header = kBlockHeader * state_.camera.zoom;
    if (header < ui_.line_height(Face::kSmall)) return {};
    Rect head{rect.x, rect.y, rect.width, std::min(header, rect.height)};
    if (head.y < rect_.y) head.y = std::min(rect_.y, rect.bottom() - head.height);
    return head;
  }

  void draw_block(const FrameBlock& framed) {
    const LaidBlock& block = state_.layout.blocks[framed.block];
    const Rect rect = on_screen(framed.rect);
    ui_.canvas().fill(rect, ui_.theme().panel, 4.0F);
    ui_.canvas().outline(rect, {.color = ui_.theme().line}, 4.0F);
    const Rect head = head_of(rect);
    if (head.empty()) return draw_outer_name(block, rect);
    const bool is_control = head.height >= kLeastControl && head.width >= kLeastControl;
    const Response response = ui_.hit(fmt::format("block/{}", block.name), head,
                                      {.kind = is_control ? ItemKind::kToggle : ItemKind::kMark,
                                       .label = block.name,
                                       .value = block.collapsed ? "collapsed" : "open",
                                       .focusable = is_control});
    if (response.hovered) ui_.canvas().fill(head, with_alpha(ui_.theme().hovered, 0.6F), 4.0F);
    if (response.clicked) toggle_block(block.name);  // by a key: the canvas has the mouse
    ui_.tooltip(response, fmt::format("{}: {} forward, {} backward, {} update nodes. Click to {}",
                                      block.name, block.nodes[0], block.nodes[1], block.nodes[2],
                                      block.collapsed ? "open it" : "collapse it"));
    draw_block_name(block, head);
  }

  // Beside the band, where its header is too low for text.
  void draw_outer_name(const LaidBlock& block, const Rect& rect) {
    const float line = ui_.line_height(Face::kSmall);
    const float room = rect.x - rect_.x - 10.0F;
    if (room < 40.0F || rect.height < line * 0.8F || rect.y < rect_.y) return;
    ui_.text({rect_.x + 4.0F, rect.y, room, std::min(line, rect.height)}, block.name,
             {.face = Face::kSmall,
              .color = ui_.theme().soft_ink,
              .align = Align::kRight,
              .fit = Fit::kMiddle});
  }

  void draw_block_name(const LaidBlock& block, Rect head) {
    take_left(head, 6.0F);
    const float line = ui_.line_height(Face::kSmall);
    if (head.height < line || head.width < 40.0F) return;
    const std::string counts =
        fmt::format("{} + {} + {}", block.nodes[0], block.nodes[1], block.nodes[2]);
    const float room = ui_.width(counts, Face::kSmallNumber) + 12.0F;
    if (head.width > 2.4F * room) {
      Rect right = take_right(head, room);
      take_right(right, 6.0F);
      draw_block_counts(block, right);
    }
    ui_.text(head, fmt::format("{} {}", block.collapsed ? "▸" : "▾", block.name),
             {.face = Face::kSmall, .color = ui_.theme().soft_ink, .fit = Fit::kEnd});
  }

  // "3 + 5 + 2", from the right.
  void draw_block_counts(const LaidBlock& block, Rect rest) {
    const TextLook look{.face = Face::kSmallNumber, .color = ui_.theme().soft_ink};
    for (std::size_t column = kColumns; column-- > 0;) {
      const Quantity count{static_cast<double>(block.nodes[column]), Unit::kCount};
      const float width = ui_.width(text_of(count).whole(), look.face);
      ui_.number(fmt::format("block/{}/{}", block.name, column), take_right(rest, width), count, {},
                 look);
      if (column == 0) return;
      ui_.text(take_right(rest, ui_.width(" + ", look.face)), " + ", look);
    }
  }

  void click_beside_nodes(Point mouse) {
    for (const FrameBlock& framed : state_.frame.blocks) {
      if (!head_of(on_screen(framed.rect)).contains(mouse)) continue;
      return toggle_block(state_.layout.blocks[framed.block].name);
    }
    clicked_beside_ = mouse;
  }

  void toggle_block(const std::string& name) {
    if (state_.collapsed.erase(name) == 0) state_.collapsed.insert(name);
  }

  Color color_of(const FrameEdge& edge) const {
    const Theme& theme = ui_.theme();
    if (edge.from == selected_ || edge.to == selected_) return theme.accent;
    if (edge.kind == EdgeKind::kSaved) return with_alpha(theme.phases[1], 0.45F);
    if (edge.kind == EdgeKind::kUpdate) return with_alpha(theme.phases[2], 0.45F);
    return with_alpha(theme.soft_ink, edge.kind == EdgeKind::kRepeats ? 0.8F : 0.5F);
  }

  void draw_edge(const FrameEdge& edge) {
    const bool chosen = edge.from == selected_ || edge.to == selected_;
    const Stroke stroke{.color = color_of(edge),
                        .width = chosen ? 1.75F : 1.0F,
                        .dashed = edge.kind == EdgeKind::kRepeats};
    const Point from{rect_.x + edge.from_x, rect_.y + edge.from_y};
    const Point to{rect_.x + edge.to_x, rect_.y + edge.to_y};
    const bool upright = edge.kind == EdgeKind::kData;
    const float along = upright ? (to.y > from.y ? 1.0F : -1.0F) : (to.x > from.x ? 1.0F : -1.0F);
    if (edge.is_stub) {
      const float length = kStub * std::min(1.0F, state_.camera.zoom) * along;
      const Point step = upright ? Point{0.0F, length} : Point{length, 0.0F};
      ui_.canvas().line(from, from + step, stroke);
      ui_.canvas().line(to - step, to, stroke);
      return;
    }
    const float bend =
        (upright ? std::abs(to.y - from.y) : std::abs(to.x - from.x)) * 0.45F * along;
    const Point pull = upright ? Point{0.0F, bend} : Point{bend, 0.0F};
    const std::array<Point, 4> points = {from, from + pull, to - pull, to};
    ui_.canvas().bezier(points, stroke);
  }

  Color paper_of(std::uint32_t place) const {
    const Theme& theme = ui_.theme();
    const NodeValue& value = state_.values.nodes[place];
    if (state_.valued == ColorBy::kOp || state_.valued == ColorBy::kPass) {
      return color_of_category(theme, value.category);
    }
    if (!(value.value == value.value)) return theme.control;
    return mixed(theme.control, theme.phases[1], value.shade);
  }

  void draw_node(const FrameNode& framed) {
    const Rect rect = on_screen(framed.rect);
    const PictureNode& node = state_.picture.nodes[framed.place];
    const ChangeMark mark = state_.changes.mark_of(node.serial);
    const bool faded = state_.compared >= 0 && mark == ChangeMark::kSame;
    Color paper = paper_of(framed.place);
    if (faded) paper = mixed(ui_.theme().panel, paper, 0.28F);
    const bool marks = state_.frame.detail == GraphDetail::kMarks;
    const Rect drawn =
        marks ? Rect{rect.x, rect.y, std::max(1.0F, rect.width - 0.5F), std::max(1.0F, rect.height)}
              : rect;
    const Surface surface(ui_, drawn, paper, marks ? 0.0F : 3.0F);
    if (state_.compared >= 0 && mark != ChangeMark::kSame) outline_change(rect, mark);
    if (state_.frame.detail == GraphDetail::kTexts) draw_text(rect, node, mark, paper);
    if (framed.place == selected_) {
      ui_.canvas().outline(rect.inset(-2.0F), {.color = ui_.theme().accent, .width = 2.0F}, 4.0F);
    } else if (framed.place == hovered_) {
      ui_.canvas().outline(rect.inset(-1.0F), {.color = ui_.theme().ink}, 4.0F);
    }
    if (ui_.items().keeps_all()) {
      ui_.hit(fmt::format("node/{}", node.name), rect,
              {.kind = ItemKind::kMark, .label = node.op, .value = node.name, .focusable = false});
    }
  }

  void outline_change(const Rect& rect, ChangeMark mark) {
    const std::size_t color = mark == ChangeMark::kAdded ? 0 : 2;
    ui_.canvas().outline(rect.inset(-1.5F),
                         {.color = ui_.theme().differences[color], .width = 2.0F}, 4.0F);
  }

  void draw_text(const Rect& rect, const PictureNode& node, ChangeMark mark, Color paper) {
    const Rect inside = rect.inset(5.0F, 0.0F);
    if (inside.height < ui_.line_height(Face::kSmall) - 2.0F) return;
    std::string text(node.op);
    if (state_.compared >= 0 && mark != ChangeMark::kSame)
      text = fmt::format("{} {}", sign_of(mark), text);
    ui_.text(
        inside, text,
        {.face = Face::kSmall, .color = ink_on(paper), .align = Align::kCenter, .fit = Fit::kEnd});
  }

  std::string text_of_node(std::uint32_t place) const {
    const PictureNode& node = state_.picture.nodes[place];
    std::string text = fmt::format("{} {} ({})", node.op, node.name, name_of(node.phase));
    if (!node.source.empty() && node.source != node.name)
      text += fmt::format(", from {}", node.source);
    text += fmt::format(", made by {}", node.pass);
    const double value = state_.values.nodes[place].value;
    if (state_.valued == ColorBy::kTime && value == value) {
      text += fmt::format(", {} a step", text_of({value, Unit::kMilliseconds}).whole());
    } else if (state_.valued == ColorBy::kBytes && value == value) {
      text += fmt::format(", {} of results", text_of({value, Unit::kBytes}).whole());
    } else if (state_.valued == ColorBy::kRoof && value == value) {
      text += fmt::format(", {} of its roof", text_of({value, Unit::kShare}).whole());
    }
    const auto row = state_.changes.row_of.find(node.serial);
    if (row != state_.changes.row_of.end()) {
      const StageChange& change = state_.changes.rows[row->second];
      text += fmt::format(". {} {}: {}", change.kind, change.text, change.reason);
    }
    for (const NearMissGroup& miss : state_.near_misses) {
      if (std::ranges::find(miss.places, place) != miss.places.end())
        text += ". " + sentence_of(miss);
    }
    return text;
  }

  Ui& ui_;
  Workbench& workbench_;
  GraphState& state_;
  Rect rect_;
  ViewSize view_;
  std::uint32_t selected_;
  std::uint32_t hovered_ = kNoPlace;
  std::optional<GraphLayout> moving_;    // while nodes are on their way
  std::optional<Point> clicked_beside_;  // all nodes and heads of blocks
};

}  // namespace

void draw_graph_canvas(Ui& ui, Workbench& workbench, GraphState& state, const Rect& rect) {
  if (rect.width < 20.0F || rect.height < 20.0F) return;
  struct Followed {  // the selection that the camera went to
    Selection selection;
    std::size_t stage = 0;
  };
  auto& followed = workbench.state<Followed>();
  const bool follows = !(followed.selection == workbench.selection());
  GraphDrawer(ui, workbench, state, rect).draw(follows);
  followed.selection = workbench.selection();
}

}  // namespace trainscope::gui
