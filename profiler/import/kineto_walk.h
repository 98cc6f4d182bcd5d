// The ops of PyTorch's trace as calls: ops nest, so the outermost one that the table knows has the
// time of all that it calls.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/import/imported_profile.h"

namespace trainscope::profiler {

inline constexpr std::string_view kModuleName = "nn.Module: ";

enum class KinetoKind : std::uint8_t { kOp, kAnnotation, kModule, kDevice };

struct KinetoSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t sequence = -1;
  std::int64_t external = -1;
  std::int64_t correlation = -1;  // of a device's work: the number of the call that launched it
  std::int64_t flops = 0;
  std::uint32_t name = 0;  // of texts, as all that follow
  std::uint32_t node = 0;
  std::uint32_t kernel = 0;
  std::uint32_t phase = 0;
  std::uint32_t dtype = 0;
  KinetoKind kind = KinetoKind::kOp;
  bool of_forward_thread = false;  // a backward op, which knows its forward's thread
};

// Each text once.
class KinetoTexts {
 public:
  KinetoTexts() { id(""); }
  std::uint32_t id(std::string text) {
    const auto [found, is_new] =
        ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(&found->first);
    return found->second;
  }
  const std::string& operator[](std::uint32_t id) const { return *texts_[id]; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> texts_;
};

// As the host has it; the work that it launched in it may begin later and end after it.
struct KinetoStep {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t number = 0;
  std::int64_t work_end_ns = std::numeric_limits<std::int64_t>::min();
};

// A stream of a device; -1 where the trace does not number it, which has process and thread alone.
struct KinetoStream {
  std::int64_t device = -1;
  std::int64_t stream = -1;
  std::string thread = {};

  auto operator<=>(const KinetoStream&) const = default;
  std::string name() const;
};

// The events of a trace as they came.
struct KinetoTrace {
  KinetoTexts texts;
  std::map<std::string, std::vector<KinetoSpan>> hosts;
  std::map<KinetoStream, std::vector<KinetoSpan>> devices;
  std::unordered_map<std::int64_t, std::int64_t> launches;  // begin of the call, by correlation
};

// One thread at a time, the one with the steps first; then devices; then end_steps().
class KinetoWalker {
 public:
  KinetoWalker(const KinetoTrace& trace, const ImportOptions& options);

  // Sorted, none overlaps another.
  void set_steps(std::vector<KinetoStep> steps) { steps_ = std::move(steps); }
  void walk_host(std::vector<KinetoSpan> spans, bool drives);
  void walk_device(const KinetoStream& stream, std::vector<KinetoSpan> spans);
  // A step lasts until the work that it launched has ended, and the next begins no earlier.
  void end_steps();
  ProfileBuilder& builder() { return builder_; }

 private:
  // The longest work of a device that an op launched.
  struct Longest {
    std::int64_t ns = -1;
    std::int64_t begin_ns = 0;
    std::int64_t external = -1;
  };

  struct Open {
    const KinetoSpan* span;
    std::string scope;  // modules around it
    PlanPhase phase;
    const ImportedCall* call;              // that has the time; null: none yet
    bool is_rest;                          // an op that the table lacks
    std::int64_t inside_ns;                // of calls and such ops directly in it
    std::optional<std::uint32_t> call_id;  // of the call that begins with it
    std::int64_t flops;                    // of ops in it that launched no work
    Longest longest;                       // of its own and of ops in it
  };

  const std::string& name_of(const KinetoSpan& span) const { return trace_.texts[span.name]; }
  const KinetoStep* step_at(std::int64_t ns) const;
  const KinetoStep* step_of_work(const KinetoSpan& span) const;
  std::int64_t turn(const KinetoStep& step, const std::string& key);
  void close_until(std::int64_t ns);
  void close();
  void count_flops(Open& closed);
  void enter(const KinetoSpan& span, std::vector<Event>& calls);
  void remember(const KinetoSpan& span, const ImportedCall& call);
  void begin_call(const KinetoSpan& span, const KinetoStep& step, Open& open,
                  std::vector<Event>& calls);
  ImportedCall call_of(const KinetoSpan& span, const KinetoStep& step, const Open& open);
  void name_call(ImportedCall& call, const KinetoSpan& span, const KinetoStep& step,
                 const std::string& scope);
  void place(std::vector<Event>& calls, bool may_drive, bool drives);
  bool is_free(const Event& call) const;
  void device_call(const KinetoSpan& span, const KinetoStep& step, std::uint16_t lane);

  const KinetoTrace& trace_;
  const ImportOptions& options_;
  ProfileBuilder builder_;
  std::vector<KinetoStep> steps_;
  std::vector<Open> open_;
  std::vector<Event> driven_;  // calls of the driving thread, by begin
  std::vector<std::unique_ptr<ImportedCall>> known_;
  std::unordered_map<std::int64_t, const ImportedCall*> by_external_;
  std::unordered_map<std::int64_t, std::int64_t> begin_of_external_;
  std::unordered_map<std::int64_t, Longest> longest_of_external_;
  std::unordered_map<std::int64_t, std::int64_t> device_flops_;  // of an external id's longest work
  std::unordered_map<std::int64_t, std::string> node_of_sequence_;
  std::unordered_map<std::string, std::pair<const KinetoStep*, std::int64_t>> turns_;
  std::uint16_t next_lane_ = 1;
};

// "forward", "backward", "update", "Optimizer....".
std::optional<PlanPhase> phase_named(std::string_view name);

}  // namespace trainscope::profiler
