// A profile as Chrome's trace event JSON with the fields of PyTorch's profiler (Kineto), which
// Perfetto and HTA read: metadata, then a row for each span and counter, and arrows: "fwdbwd" from
// forward calls to the backward calls that compute their gradients, "onnx_node" from the first call
// of an ONNX node to the others that compute for it. Times are in microseconds from
// baseTimeNanoseconds. What a device did is on streams of a process of its own: kernels and copies,
// and around them the runs of calls. All else is of the host: what a CPU computes is passed off as
// a device's only where that is asked for, and then the metadata says so.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/device_time.h"
#include "profiler/formats/chrome_rows.h"
#include "profiler/formats/formats.h"

namespace trainscope::profiler {
namespace {

// What is the same in every row of a call.
struct CallText {
  std::string name;  // "onnx::MatMul", quoted
  std::string args;  // members
  std::string node;  // a member of its work's
};

Json dims_of(const PlanView& plan, RowRange operands) {
  Json all = Json::array();
  for (const PlanOperand& operand : rows_of(plan.operands, operands)) {
    all.push_back(operand.value == kNoRow
                      ? Json::array()
                      : Json::list(rows_of(plan.dims, plan.values[operand.value].shape)));
  }
  return all;
}

// As PyTorch names them.
std::string_view type_name(std::string_view dtype) {
  if (dtype == "f32") return "float";
  if (dtype == "f64") return "double";
  if (dtype == "bf16") return "c10::BFloat16";
  if (dtype == "f16") return "c10::Half";
  if (dtype == "i64") return "long int";
  if (dtype == "i32") return "int";
  return dtype;
}

Json types_of(const PlanView& plan, RowRange operands) {
  Json all = Json::array();
  for (const PlanOperand& operand : rows_of(plan.operands, operands)) {
    all.push_back(operand.value == kNoRow ? std::string_view()
                                          : type_name(plan.text(plan.values[operand.value].dtype)));
  }
  return all;
}

CallText call_text(const PlanView& plan, std::uint32_t id) {
  const PlanCall& call = plan.calls[id];
  const std::string_view op = plan.op_of(call);
  const std::string name =
      op.empty() ? std::string(name_of(call.kind)) : "onnx::" + std::string(op);
  const Json args = Json::object({{"Input Dims", dims_of(plan, call.inputs)},
                                  {"Input type", types_of(plan, call.inputs)},
                                  {"onnx_node", std::string(onnx_node_of(plan, call))},
                                  {"node", std::string(plan.name_of(call))},
                                  {"kernel", std::string(plan.text(call.kernel))},
                                  {"phase", name_of(call.phase)},
                                  {"call", static_cast<std::int64_t>(id)},
                                  {"flops", call.flops},
                                  {"bytes", call.bytes_read + call.bytes_written}});
  const std::string object = args.dump();
  return {.name = quoted_text(name),
          .args = object.substr(1, object.size() - 2),
          .node = "\"onnx_node\": " + quoted_text(onnx_node_of(plan, call))};
}

class Writer {
 public:
  Writer(const FormatInput& trace, const WriteText& write)
      : trace_(trace),
        plan_(trace.plan),
        write_(write),
        live_(live_bytes(trace.plan)),
        is_of_device_(are_calls_of_device(*trace.events)) {
    require(!is_of_device_ || !trace.as_device, ErrorCode::kUsage,
            "--as-device is for calls of the CPU: those of this profile ran on a device, and are "
            "shown there without it");
    if (trace.as_device) device_ = kAsDevice;
    const std::string_view name = plan_.text(plan_.facts().device);
    if (is_of_device_) device_ = ShownDevice{.name = name.empty() ? "a device" : name};
    for (std::uint32_t id = 0; id < plan_.calls.size(); ++id) {
      calls_.push_back(call_text(plan_, id));
    }
  }

  void run() {
    head();
    for (std::uint32_t i = 0; i < trace_.events->facts.threads; ++i) thread(static_cast<int>(i));
    each([&](const Event& event) { collect(event); });
    std::ranges::sort(micro_steps_);
    std::ranges::sort(steps_, {}, &Event::begin_ns);
    std::ranges::stable_sort(called_, {}, &Event::begin_ns);
    std::ranges::copy_if(called_, std::back_inserter(runs_),
                         [this](const Event& event) { return event.thread == 0 || is_of_device_; });
    if (is_of_device_) find_micro_steps();
    each([&](const Event& event) { is_counter(event.kind) ? counter(event) : span(event); });
    gradient_arrows();
    node_arrows();
    write_("\n],\n\"traceName\": " + quoted_text(trace_.name) + "\n}\n");
  }

 private:
  template <class F>
  void each(F f) const {
    for (const EventChunk& chunk : trace_.events->chunks) {
      for (std::size_t i = 0; i < chunk.size(); ++i) f(chunk.event(i));
    }
  }

  // HTA finds the rank by a pattern that wants the blank after the colon.
  void head() {
    write_("{\n\"schemaVersion\": 1,\n\"deviceProperties\": [" +
           (device_ ? device_properties(*device_, trace_.rank) : "") +
           "],\n\"distributedInfo\": {\"backend\": \"none\", \"rank\": " +
           std::to_string(trace_.rank) + ", \"world_size\": " + std::to_string(trace_.ranks) +
           "},\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": " +
           std::to_string(trace_.events->facts.start_unix_ns) + ",\n\"traceEvents\": [\n");
    write_(
        metadata_row("process_name", place(0), "{\"name\": " + quoted_text(process_name()) + "}"));
    row(metadata_row("process_labels", place(0), R"({"labels": "CPU"})"));
    row(metadata_row("process_sort_index", place(0), R"({"sort_index": 0})"));
    if (device_) row(device_metadata(*device_, trace_.rank));
  }

  void collect(const Event& event) {
    if (event.kind == EventKind::kStep) steps_.push_back(event);
    if (event.kind == EventKind::kStepPart && event.id == 0) micro_steps_.push_back(event.begin_ns);
    if (event.kind == EventKind::kDeviceWork) has_work_ = true;
    if (event.kind == EventKind::kCall) called_.push_back(event);
    if (event.kind == EventKind::kCall || event.kind == EventKind::kDeviceWork) require_call(event);
  }

  // A device comes to a micro-step later than the host does: with the first call that has run
  // since the one before began.
  void find_micro_steps() {
    micro_steps_.clear();
    std::unordered_set<std::uint32_t> ran;
    for (const Event& run : runs_) {
      if (ran.insert(run.id).second) continue;
      ran = {run.id};
      micro_steps_.push_back(run.begin_ns);
    }
  }

  bool is_stream(int thread) const { return is_of_device_ && thread != 0; }

  void thread(int index) {
    if (is_stream(index) || trace_.as_device) row(stream_name_row(trace_.rank, index));
    if (is_stream(index)) return;
    const std::string name = index == 0 ? "steps" : "thread " + std::to_string(index);
    row(metadata_row("thread_name", place(index), "{\"name\": " + quoted_text(name) + "}"));
    row(metadata_row("thread_sort_index", place(index),
                     "{\"sort_index\": " + std::to_string(index) + "}"));
  }

  void row(const std::string& text) { write_(",\n" + text); }

  RowPlace place(int thread) const {
    return is_stream(thread) ? stream_place(trace_.rank, thread) : host_place(trace_.rank, thread);
  }
  std::string process_name() const {
    return trace_.ranks == 1 ? "train" : "train, rank " + std::to_string(trace_.rank);
  }

  void require_call(const Event& event) const {
    require(event.id < plan_.calls.size(), ErrorCode::kBadInput,
            "the profile names call {}, but the plan has {} calls: they are not of one session",
            event.id, plan_.calls.size());
  }

  // That began last of spans by begin, if it has not ended; else null.
  static const Event* span_at(const std::vector<Event>& spans, std::int64_t ns) {
    const auto after = std::ranges::upper_bound(spans, ns, {}, &Event::begin_ns);
    if (after == spans.begin() || std::prev(after)->end_ns() < ns) return nullptr;
    return &*std::prev(after);
  }

  std::string value_name(std::uint32_t id) const {
    return id < plan_.values.size() ? std::string(plan_.text(plan_.values[id].name)) : "";
  }

  // Quoted. What a thread works on or waits for is named by the kernel of the driving thread's
  // call.
  std::string name_text(const Event& event) const {
    const std::string id = std::to_string(event.id);
    switch (event.kind) {
      case EventKind::kStep:
        return quoted_text("ProfilerStep#" + id);
      case EventKind::kStepPart:
        return event.id == 0 ? "\"micro-step\"" : "\"update\"";
      case EventKind::kBind:
      case EventKind::kInitial:
      case EventKind::kRead:
        return quoted_text(std::string(name_of(event.kind)) + " " + value_name(event.id));
      case EventKind::kCall:
        return calls_[event.id].name;
      case EventKind::kStart:
      case EventKind::kWork:
      case EventKind::kJoin: {
        const Event* call = span_at(runs_, event.begin_ns);
        const std::string_view kernel =
            call == nullptr ? "" : plan_.text(plan_.calls[call->id].kernel);
        return quoted_text(std::string(kernel) + (kernel.empty() ? "" : ": ") +
                           std::string(name_of(event.kind)));
      }
      default:
        return quoted_text(name_of(event.kind));
    }
  }

  static std::string_view category(EventKind kind) {
    switch (kind) {
      case EventKind::kBind:
      case EventKind::kInitial:
      case EventKind::kRead:
      case EventKind::kCall:
      case EventKind::kBodyCall:
      case EventKind::kWork:
        return "cpu_op";
      default:
        return "user_annotation";
    }
  }

  static bool is_device_work(EventKind kind) {
    return kind == EventKind::kCall || kind == EventKind::kBind || kind == EventKind::kInitial ||
           kind == EventKind::kRead;
  }

  // Readers leave out what nobody launched: it is said to be of the step in whose time it began, as
  // its time counts. Which call of the API launched it is not known.
  void stream_work(const Event& event) {
    DeviceWork work = device_work(plan_, event, ++rows_);
    const Event* step = span_at(steps_, event.begin_ns);
    work.correlation = step == nullptr ? 0 : step->id;
    row(stream_row(work, trace_.rank, ", " + calls_[event.id].node));
  }

  // Of a stream, where nothing tells what a call did within its run, the run is its work.
  void span(const Event& event) {
    const bool is_on_stream = is_stream(event.thread);
    const bool is_work = event.kind == (has_work_ ? EventKind::kDeviceWork : EventKind::kCall);
    if (is_on_stream && is_work) stream_work(event);
    if (is_on_stream && event.kind == EventKind::kDeviceWork) return;
    const std::string id = std::to_string(++rows_);
    std::string args = "\"External id\": " + id;
    if (event.kind == EventKind::kCall)
      args += ", \"Ev Idx\": " + id + ", " + calls_[event.id].args;
    if (event.kind == EventKind::kStep && is_of_device_) {
      args += ", \"correlation\": " + std::to_string(event.id);
    }
    row("{\"ph\": \"X\", \"cat\": \"" +
        std::string(is_on_stream ? "gpu_user_annotation" : category(event.kind)) +
        "\", \"name\": " + name_text(event) + ", " + place_text(place(event.thread)) +
        ", \"ts\": " + microseconds(event.begin_ns) + ", \"dur\": " +
        microseconds(static_cast<std::int64_t>(event.value)) + ", \"args\": {" + args + "}}");
    if (trace_.as_device && is_device_work(event.kind)) {
      row(device_rows(device_work(plan_, event, rows_), place(event.thread), trace_.rank));
    }
    if (event.kind == EventKind::kCall && (event.thread == 0 || is_on_stream)) arena(event);
  }

  void counter_row(const std::string& name, std::int64_t ns, const std::string& args) {
    row("{\"ph\": \"C\", \"cat\": \"memory\", \"name\": " + quoted_text(name) + ", " +
        place_text(place(0)) + ", \"ts\": " + microseconds(ns) + ", \"args\": {" + args + "}}");
  }

  // JSON has no NaN: a value that is no number has no row.
  void counter(const Event& event) {
    if (!std::isfinite(event.number())) return;
    const std::string name(name_of(event.kind));
    counter_row(name, event.begin_ns, quoted_text(name) + ": " + Json(event.number()).dump());
  }

  // What of the arena the plan has alive while a call runs.
  void arena(const Event& call) {
    const std::uint32_t time = plan_.calls[call.id].time;
    if (time >= live_.size()) return;
    counter_row("arena bytes", call.begin_ns,
                "\"allocated\": " + std::to_string(live_[time]) +
                    ", \"planned peak\": " + std::to_string(plan_.arena().bytes));
  }

  // From where one call begins to where another one does; of this category, `number` is its own.
  void arrow(std::string_view category, std::int64_t number, const Event& from, const Event& to) {
    const std::int64_t id = arrow_id(trace_.rank, number);
    row(arrow_row({"s", category, id, place(from.thread), from.begin_ns}));
    row(arrow_row({"f", category, id, place(to.thread), to.begin_ns}));
  }

  // From the last run of a forward node to each backward call that is a part of its gradient.
  void gradient_arrows() {
    std::unordered_map<std::uint32_t, const Event*> forward;  // by serial
    std::int64_t number = 0;
    for (const Event& event : runs_) {
      const PlanCall& call = plan_.calls[event.id];
      if (call.node == kNoRow) continue;
      const PlanNode& node = plan_.nodes[call.node];
      if (node.phase == PlanPhase::kForward && node.serial != 0) forward[node.serial] = &event;
      const auto from = forward.find(node.backward_of);
      if (node.backward_of == 0 || from == forward.end()) continue;
      arrow("fwdbwd", ++number, *from->second, event);
    }
  }

  // In each micro-step and what follows it, from the call of an ONNX node that begins first, to
  // every other one: of forward, gradient and update, and of batch tiles on any thread.
  void node_arrows() {
    std::unordered_map<TextId, const Event*> first;  // by the node's name
    auto micro_step = micro_steps_.begin();
    std::int64_t number = 0;
    for (const Event& event : called_) {
      for (; micro_step != micro_steps_.end() && *micro_step <= event.begin_ns; ++micro_step) {
        first.clear();
      }
      const PlanCall& call = plan_.calls[event.id];
      const std::span<const TextId> sources = plan_.sources_of(call);
      if (call.node == kNoRow || sources.empty()) continue;
      const auto [from, is_first] = first.try_emplace(sources[0], &event);
      if (!is_first) arrow("onnx_node", ++number, *from->second, event);
    }
  }

  const FormatInput& trace_;
  const PlanView& plan_;
  const WriteText& write_;
  std::vector<std::int64_t> live_;
  bool is_of_device_;
  bool has_work_ = false;                   // kernels, copies and sets of a device
  std::optional<ShownDevice> device_ = {};  // none: no row is a device's
  std::vector<CallText> calls_;
  std::vector<Event> steps_;                    // by begin
  std::vector<Event> called_;                   // calls of all threads, by begin
  std::vector<Event> runs_;                     // those of the driving thread, or of the device
  std::vector<std::int64_t> micro_steps_ = {};  // when they begin
  std::int64_t rows_ = 0;
};

void write_chrome_trace(const FormatInput& trace, const WriteText& write) {
  Writer(trace, write).run();
}

}  // namespace

ProfileFormat chrome_trace_format() { return {.name = "chrome", .write = write_chrome_trace}; }

}  // namespace trainscope::profiler
