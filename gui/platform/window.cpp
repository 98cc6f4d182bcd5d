// GLFW's events become ours; frames are drawn when something has happened, not all the time.
#include "gui/platform/window.h"

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>
#include <imgui/backends/imgui_impl_opengl3.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "gui/draw/code_points.h"
#include "gui/draw/fonts.h"
#include "gui/draw/imgui_canvas.h"
#include "gui/platform/glfw_keys.h"

namespace trainscope::gui {
namespace {

constexpr double kWatchedSeconds = 1.0;  // after input
constexpr double kIdleSeconds = 0.25;    // between looks at files that may grow
constexpr int kFramesAfterInput = 3;     // until everything that follows from it is drawn
constexpr double kTooltipWait = 0.4;

struct GlfwSession {
  GlfwSession() {
    require(glfwInit() == GLFW_TRUE, ErrorCode::kNoDevice,
            "there is no display to open a window on");
  }
  ~GlfwSession() { glfwTerminate(); }
  GlfwSession(const GlfwSession&) = delete;
  GlfwSession& operator=(const GlfwSession&) = delete;
};

// Of all that is drawn.
std::uint64_t hash_of(const ImDrawData& data) {
  Hasher hasher;
  hasher.value(data.DisplaySize.x).value(data.DisplaySize.y);
  for (const ImDrawList* list :
       std::span(data.CmdLists, static_cast<std::size_t>(data.CmdListsCount))) {
    const auto add = [&](const auto& items) {
      hasher.bytes(std::as_bytes(std::span(items.Data, static_cast<std::size_t>(items.Size))));
    };
    add(list->VtxBuffer);
    add(list->IdxBuffer);
    for (const ImDrawCmd& command : list->CmdBuffer) {
      const ImVec4& clip = command.ClipRect;
      for (const float side : {clip.x, clip.y, clip.z, clip.w}) hasher.value(side);
      hasher.value(command.ElemCount);
    }
  }
  return hasher.digest();
}

using WindowHandle = std::unique_ptr<GLFWwindow, decltype(&glfwDestroyWindow)>;

WindowHandle open_window() {
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  GLFWwindow* handle = glfwCreateWindow(1280, 720, "Trainscope", nullptr, nullptr);
  require(handle != nullptr, ErrorCode::kNoDevice, "the display has no OpenGL 3.3");
  return {handle, &glfwDestroyWindow};
}

class Window {
 public:
  explicit Window(App& app)
      : handle_(open_window()), fonts_(app.workbench().settings.fonts(content_scale())), app_(app) {
    app_.workbench().works_ahead = true;
    glfwMakeContextCurrent(handle_.get());
    glfwSwapInterval(1);
    ImGui::CreateContext(fonts_.atlas());
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    ImGui::GetStyle().AntiAliasedLinesUseTex = false;
    ImGui_ImplOpenGL3_Init("#version 330 core");
    listen();
    glfwSetWindowSizeLimits(handle_.get(), 480, 320, GLFW_DONT_CARE, GLFW_DONT_CARE);
  }
  ~Window() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui::DestroyContext();
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  void loop() {
    while (glfwWindowShouldClose(handle_.get()) == GLFW_FALSE && !app_.workbench().quit) {
      wait();
      if (dirty_ == 0) continue;
      --dirty_;
      frame();
    }
  }

 private:
  static Window& of(GLFWwindow* handle) {
    return *static_cast<Window*>(glfwGetWindowUserPointer(handle));
  }
  float content_scale() const {
    float x = 1.0F;
    glfwGetWindowContentScale(handle_.get(), &x, nullptr);
    return x;
  }
  void wake() { dirty_ = kFramesAfterInput; }

  void push(InputEvent event) {
    last_input_ = glfwGetTime();
    app_.input().push(std::move(event));
    wake();
  }

  // Logical pixels of the mouse.
  Point mouse() const {
    double x = 0.0;
    double y = 0.0;
    glfwGetCursorPos(handle_.get(), &x, &y);
    int width = 0;
    int pixels = 0;
    glfwGetWindowSize(handle_.get(), &width, nullptr);
    glfwGetFramebufferSize(handle_.get(), &pixels, nullptr);
    const double ratio = width > 0 ? static_cast<double>(pixels) / width : 1.0;
    const double logical = ratio / static_cast<double>(fonts_.sizes().scale);
    return {static_cast<float>(x * logical), static_cast<float>(y * logical)};
  }

  void listen() {
    GLFWwindow* handle = handle_.get();
    glfwSetWindowUserPointer(handle, this);
    glfwSetCursorPosCallback(handle, [](GLFWwindow* w, double, double) {
      of(w).push({.kind = InputEvent::Kind::kMove, .at = of(w).mouse()});
    });
    glfwSetCursorEnterCallback(handle, [](GLFWwindow* w, int entered) {
      if (entered == GLFW_FALSE) of(w).push({.kind = InputEvent::Kind::kLeave});
    });
    glfwSetMouseButtonCallback(handle, [](GLFWwindow* w, int button, int action, int mods) {
      if (button >= static_cast<int>(kMouseButtons)) return;
      const bool is_press = action == GLFW_PRESS;
      of(w).push({.kind = is_press ? InputEvent::Kind::kPress : InputEvent::Kind::kRelease,
                  .at = of(w).mouse(),
                  .button = static_cast<MouseButton>(button),
                  .chord = modifiers_of(mods)});
    });
    glfwSetScrollCallback(handle, [](GLFWwindow* w, double x, double y) {
      of(w).push({.kind = InputEvent::Kind::kWheel,
                  .at = {static_cast<float>(x), static_cast<float>(y)},
                  .chord = of(w).held_modifiers()});
    });
    glfwSetKeyCallback(handle, [](GLFWwindow* w, int key, int code, int action, int mods) {
      if (action == GLFW_RELEASE) return;
      const std::optional<Chord> chord = chord_of(key, code, mods);
      if (chord == Chord{.key = static_cast<Key>('V'), .control = true}) of(w).fetch_clipboard();
      if (chord) of(w).push({.kind = InputEvent::Kind::kChord, .chord = *chord});
    });
    glfwSetCharCallback(handle, [](GLFWwindow* w, unsigned code_point) {
      std::string text;
      append_utf8(text, code_point);
      of(w).push({.kind = InputEvent::Kind::kText, .text = std::move(text)});
    });
    glfwSetDropCallback(handle, [](GLFWwindow* w, int count, const char** paths) {
      of(w).app_.drop(std::span(paths, static_cast<std::size_t>(count)));
      of(w).wake();
    });
    glfwSetWindowRefreshCallback(handle, [](GLFWwindow* w) {
      of(w).drawn_ = 0;
      of(w).wake();
    });
    glfwSetFramebufferSizeCallback(handle, [](GLFWwindow* w, int, int) { of(w).wake(); });
  }

  // Only when it is asked for: its owner is another program, which may be slow.
  void fetch_clipboard() {
    const char* text = glfwGetClipboardString(handle_.get());
    app_.memory().pasted = text == nullptr ? "" : text;
  }

  Chord held_modifiers() const {
    const auto held = [this](int left, int right) {
      return glfwGetKey(handle_.get(), left) == GLFW_PRESS ||
             glfwGetKey(handle_.get(), right) == GLFW_PRESS;
    };
    return {.control = held(GLFW_KEY_LEFT_CONTROL, GLFW_KEY_RIGHT_CONTROL),
            .shift = held(GLFW_KEY_LEFT_SHIFT, GLFW_KEY_RIGHT_SHIFT),
            .alt = held(GLFW_KEY_LEFT_ALT, GLFW_KEY_RIGHT_ALT)};
  }

  void wait() {
    if (dirty_ > 0 || !app_.input().empty()) {
      glfwPollEvents();
      dirty_ = std::max(dirty_, 1);
      return;
    }
    if (app_.workbench().under_way || app_.workbench().moves) {
      // Less often where nobody has done anything for a while.
      const bool is_watched =
          app_.workbench().moves || glfwGetTime() - last_input_ < kWatchedSeconds;
      glfwWaitEventsTimeout(is_watched ? 1.0 / 30.0 : 1.0 / 8.0);
      dirty_ = std::max(dirty_, 1);
      return;
    }
    // A tooltip comes when the mouse has rested.
    const bool hovers = !app_.memory().hovered.empty() &&
                        glfwGetTime() - app_.memory().hovered_since < 2.0 * kTooltipWait;
    glfwWaitEventsTimeout(hovers ? kTooltipWait : kIdleSeconds);
    if (hovers || app_.workbench().refresh()) wake();
    // A notice goes away by itself.
    const double until = app_.workbench().notice.until;
    if (until > 0.0 && glfwGetTime() >= until) dirty_ = std::max(dirty_, 1);
  }

  // The texture of glyphs is made when there is another atlas; that of the first frame by the
  // renderer itself.
  void begin_frame() {
    Settings& settings = app_.workbench().settings;
    bool new_atlas = fonts_.resize(settings.fonts(content_scale()));
    new_atlas |= fonts_.settle();
    ImGui_ImplOpenGL3_NewFrame();
    if (new_atlas) {
      ImGui_ImplOpenGL3_DestroyFontsTexture();
      ImGui::GetIO().Fonts = fonts_.atlas();
      ImGui_ImplOpenGL3_CreateFontsTexture();
      drawn_ = 0;
      wake();
    }
    ImGui::NewFrame();
  }

  void frame() {
    int width = 0;
    int height = 0;
    glfwGetFramebufferSize(handle_.get(), &width, &height);
    if (width <= 0 || height <= 0) return;
    ImGui::GetIO().DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
    ImGui::GetIO().DeltaTime = 1.0F / 60.0F;
    begin_frame();
    const float scale = fonts_.sizes().scale;
    ImGuiCanvas canvas(
        *ImGui::GetBackgroundDrawList(), fonts_,
        {0.0F, 0.0F, static_cast<float>(width) / scale, static_cast<float>(height) / scale});
    app_.frame(canvas, glfwGetTime());
    if (!app_.memory().clipboard.empty()) {
      glfwSetClipboardString(handle_.get(), app_.memory().clipboard.c_str());
      app_.memory().clipboard.clear();
    }
    ImGui::Render();
    // What looks as the frame before is on the display already.
    const std::uint64_t drawn = hash_of(*ImGui::GetDrawData());
    if (std::exchange(drawn_, drawn) == drawn) return;
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glfwSwapBuffers(handle_.get());
  }

  WindowHandle handle_;
  Fonts fonts_;
  App& app_;
  int dirty_ = kFramesAfterInput;
  double last_input_ = 0.0;  // seconds of the program
  std::uint64_t drawn_ = 0;  // hash of what the display shows; 0: it may show anything
};

}  // namespace

void run_window(App& app) {
  const GlfwSession session;
  Window(app).loop();
}

}  // namespace trainscope::gui
