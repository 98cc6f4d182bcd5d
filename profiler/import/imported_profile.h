// A profile that another engine recorded, as a plan's record and events of ours.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/import/byte_source.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

// What an import could not tie to an op or node: a name in the trace, and the time under it.
struct Unattributed {
  std::string name;
  std::int64_t ns = 0;
};

struct ImportedProfile {
  std::string tool = {};  // "PyTorch", "ONNX Runtime"
  PlanRecord plan = {};
  std::vector<Event> events = {};  // of a thread in the order of their ends
  EventFileFacts facts = {};
  std::vector<std::string> threads = {};  // names by their numbers; empty: a thread of the host
  std::vector<std::int64_t> steps = {};   // their numbers
  std::int64_t step_ns = 0;               // of all steps
  std::int64_t op_ns = 0;                 // of ops in steps
  std::int64_t attributed_ns = 0;         // of these, what is tied
  std::int64_t work_ns = 0;               // of kernels, copies and sets of devices, of steps
  std::int64_t attributed_work_ns = 0;    // of these, what is tied to an op
  std::vector<Unattributed> rest = {};    // most first
};

struct ImportOptions {
  // Names of the model's nodes: with them time is attributed where it is tied to one. Empty: where
  // the op is known.
  std::set<std::string, std::less<>> nodes = {};
};

// PyTorch's profiler (Kineto) or ONNX Runtime's. Throws kBadInput for what is neither.
ImportedProfile import_profile(const ByteSource& source, const ImportOptions& options = {});

// What a call of the trace is.
struct ImportedCall {
  std::string name = {};  // of the call's own node
  std::string node = {};  // the ONNX node that it stems from, or what stands for it
  std::string op = {};
  std::string kernel = {};
  std::string dtype = {};
  PlanPhase phase = PlanPhase::kForward;
  std::int64_t flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

// Makes an ImportedProfile. Times are nanoseconds of the trace, events may come in any order.
class ProfileBuilder {
 public:
  // The id of a call: that of the call with this name, phase and kernel which has `turn` others
  // before it in its step.
  std::uint32_t call(const ImportedCall& call, std::int64_t turn);
  void add(const Event& event);
  // A thread of events that is none of the host: a device's stream.
  void name_thread(std::uint16_t thread, std::string name) { names_[thread] = std::move(name); }
  // More FLOPs than a call had until now are its FLOPs.
  void set_flops(std::uint32_t call, std::int64_t flops);
  // Time of a device's work, tied to an op or not.
  void attribute_work(std::int64_t ns, bool is_tied);
  // Time of an op in a step, tied or not.
  void attribute(std::string_view name, std::int64_t ns, bool is_tied);
  // Sorts events, clips what reaches beyond the span around it, and moves time 0 to the first.
  // Throws kBadInput without a step or an op. `start_unix_ns` is the time of day of the trace's 0.
  ImportedProfile finish(std::string tool, std::int64_t start_unix_ns);

 private:
  void sort_events();
  void count_steps(ImportedProfile& profile) const;

  using Key = std::tuple<std::string, std::string, PlanPhase, std::int64_t>;
  PlanRecord plan_;
  std::map<Key, std::uint32_t> calls_;
  std::vector<Event> events_;
  std::map<std::uint16_t, std::string> names_;
  std::map<std::string, std::int64_t, std::less<>> rest_;
  std::int64_t op_ns_ = 0;
  std::int64_t attributed_ns_ = 0;
  std::int64_t work_ns_ = 0;
  std::int64_t attributed_work_ns_ = 0;
};

// Microseconds of a trace, with a fraction, as nanoseconds. Throws kBadInput beyond some 100 years.
std::int64_t ns_of_microseconds(double microseconds, std::string_view key);

}  // namespace trainscope::profiler
