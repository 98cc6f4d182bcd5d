// ONNX Runtime's profiling JSON: spans of the session, and of each node's kernel.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/import/importers.h"

namespace trainscope::profiler {
namespace {

constexpr std::string_view kKernelTime = "_kernel_time";

struct Span {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t thread = 0;
};

struct NodeSpan {
  Span at;
  std::string name;
  std::string op;
  std::string provider;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::string dtype;
};

Span span_of(const Json& event) {
  const std::int64_t begin = ns_of_microseconds(event.get<double>("ts"), "ts");
  const std::int64_t ns = ns_of_microseconds(event.get<double>("dur"), "dur");
  require(ns >= 0, ErrorCode::kBadInput, "dur is {} ns, expected no negative number", ns);
  return {.begin_ns = begin, .end_ns = begin + ns, .thread = event.get_or<std::int64_t>("tid", 0)};
}

// Numbers of the args are text.
std::int64_t number_of(const Json& args, std::string_view key) {
  const std::string text = args.get_or<std::string>(key, "0");
  return std::max<std::int64_t>(0, parse_int(text).value_or(0));
}

// "float" of [{"float": [2, 3]}, ...].
std::string first_type(const Json& args) {
  const Json* types = args.find("input_type_shape");
  if (types == nullptr || !types->is_array() || types->size() == 0) return {};
  const Json& first = types->at(std::size_t{0});
  if (!first.is_object() || first.size() == 0) return {};
  const std::string name = first.as_object().begin()->key;
  if (name == "float") return "f32";
  if (name == "double") return "f64";
  if (name == "float16") return "f16";
  return name == "bfloat16" ? "bf16" : name;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Without what its optimizers put around the name of a node.
std::string_view without_marks(std::string_view name) {
  constexpr std::string_view kFused = "fused ";
  if (name.starts_with(kFused)) name.remove_prefix(kFused.size());
  if (const auto fusion = name.find("/MatMulScaleFusion"); fusion != std::string_view::npos) {
    name = name.substr(0, fusion);
  }
  if (const auto token = name.rfind("_token_");
      token != std::string_view::npos && is_digits(name.substr(token + 7))) {
    name = name.substr(0, token);
  }
  if (name.ends_with("_nchwc")) {
    name.remove_suffix(6);
    const auto output = name.rfind("_output_");
    if (output != std::string_view::npos && is_digits(name.substr(output + 8))) {
      name = name.substr(0, output);
    }
  }
  return name;
}

struct Tie {
  std::string node;
  PlanPhase phase = PlanPhase::kForward;
};

// Its gradient nodes are called "/fc/Gemm_Grad/Gemm_1".
Tie tie_of(const NodeSpan& span) {
  const std::string_view name = span.name;
  if (const auto grad = name.find("_Grad/"); grad != std::string_view::npos) {
    return {.node = std::string(without_marks(name.substr(0, grad))),
            .phase = PlanPhase::kBackward};
  }
  if (span.op.starts_with("InPlaceAccumulator")) {
    return {.node = span.name, .phase = PlanPhase::kBackward};
  }
  const bool updates = span.op.find("Optimizer") != std::string::npos;
  return {.node = std::string(without_marks(name)),
          .phase = updates ? PlanPhase::kUpdate : PlanPhase::kForward};
}

// What a training step has besides the nodes of its model; empty: nothing that is known.
std::string_view part_of_training(std::string_view op) {
  if (op.starts_with("SoftmaxCrossEntropyLoss")) return "(loss)";
  return op.starts_with("InPlaceAccumulator") ? "(gradient accumulation)" : "";
}

class OrtImporter final : public TraceImporter {
 public:
  bool take(const Json& event) override {
    const std::string category = event.get_or<std::string>("cat", "");
    if (event.get_or<std::string>("ph", "") != "X") return false;
    const std::string name = event.get_or<std::string>("name", "");
    if (category == "Session") return take_session(event, name);
    if (category != "Node" || !name.ends_with(kKernelTime)) return false;
    const Json none = Json::object();
    const Json* args = event.find("args");
    if (args == nullptr || !args->is_object()) args = &none;
    nodes_.push_back(
        {.at = span_of(event),
         .name = name.substr(0, name.size() - kKernelTime.size()),
         .op = args->get_or<std::string>("op_name", ""),
         .provider = args->get_or<std::string>("provider", ""),
         .bytes_read = number_of(*args, "activation_size") + number_of(*args, "parameter_size"),
         .bytes_written = number_of(*args, "output_size"),
         .dtype = first_type(*args)});
    return true;
  }

  ImportedProfile finish(const TraceFrame& /*frame*/, const ImportOptions& options) override {
    if (runs_.empty()) runs_ = executions_;
    if (runs_.empty()) one_run();
    std::ranges::sort(runs_, {}, &Span::begin_ns);
    executions_are_phases();
    std::ranges::stable_sort(nodes_, {}, [](const NodeSpan& node) { return node.at.begin_ns; });
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      add(EventKind::kStep, static_cast<std::uint32_t>(i + 1), runs_[i], 0);
    }
    for (const NodeSpan& node : nodes_) add_node(node, options);
    return builder_.finish("ONNX Runtime", 0);
  }

 private:
  bool take_session(const Json& event, const std::string& name) {
    if (name == "model_run") runs_.push_back(span_of(event));
    const bool executes =
        name == "SequentialExecutor::Execute" || name == "ParallelExecutor::Execute";
    if (executes) executions_.push_back(span_of(event));
    return name == "model_run" || executes || name == "session_initialization";
  }

  // Runs are sorted.
  void executions_are_phases() {
    for (const Span& execution : executions_) {
      const auto after = std::ranges::lower_bound(runs_, execution.begin_ns, {}, &Span::begin_ns);
      if (after == runs_.begin()) continue;
      const Span& run = *std::prev(after);
      if (run.thread == execution.thread && execution.end_ns <= run.end_ns) {
        add(EventKind::kStepPart, 0, execution, 0);
      }
    }
  }

  // Of a trace without spans of the session: all nodes are a step.
  void one_run() {
    if (nodes_.empty()) return;
    Span all = nodes_.front().at;
    for (const NodeSpan& node : nodes_) {
      all.begin_ns = std::min(all.begin_ns, node.at.begin_ns);
      all.end_ns = std::max(all.end_ns, node.at.end_ns);
    }
    runs_ = {all};
  }

  // Threads besides that of the first run, in the order that they come in.
  std::uint16_t lane_of(std::int64_t thread) {
    const auto found = std::ranges::find(lanes_, thread);
    if (found == lanes_.end()) {
      require(lanes_.size() < 0xFFFF, ErrorCode::kBadInput,
              "the trace has more than 65535 threads");
      lanes_.push_back(thread);
      return static_cast<std::uint16_t>(lanes_.size() - 1);
    }
    return static_cast<std::uint16_t>(found - lanes_.begin());
  }

  void add(EventKind kind, std::uint32_t id, const Span& at, std::uint16_t thread) {
    builder_.add({.begin_ns = at.begin_ns,
                  .value = static_cast<std::uint64_t>(at.end_ns - at.begin_ns),
                  .id = id,
                  .kind = kind,
                  .thread = thread});
  }

  void add_node(const NodeSpan& node, const ImportOptions& options) {
    const auto after = std::ranges::upper_bound(runs_, node.at.begin_ns, {}, &Span::begin_ns);
    if (after == runs_.begin() || node.at.begin_ns > std::prev(after)->end_ns) return;
    if (lanes_.empty()) lanes_.push_back(runs_.front().thread);
    if (step_ != &*std::prev(after)) turns_.clear();
    step_ = &*std::prev(after);
    Tie tie = tie_of(node);
    const std::string_view part =
        options.nodes.contains(tie.node) ? std::string_view() : part_of_training(node.op);
    if (!part.empty()) tie.node = part;
    const std::uint32_t id = builder_.call({.name = node.name,
                                            .node = tie.node,
                                            .op = node.op,
                                            .kernel = node.op + " (" + node.provider + ")",
                                            .dtype = node.dtype,
                                            .phase = tie.phase,
                                            .bytes_read = node.bytes_read,
                                            .bytes_written = node.bytes_written},
                                           turns_[node.name]++);
    add(EventKind::kCall, id, node.at, lane_of(node.at.thread));
    const bool is_tied = options.nodes.empty() ? !node.op.empty()
                                               : !part.empty() || options.nodes.contains(tie.node);
    builder_.attribute(node.name, node.at.end_ns - node.at.begin_ns, is_tied);
  }

  std::vector<Span> runs_;
  std::vector<Span> executions_;
  std::vector<NodeSpan> nodes_;
  std::vector<std::int64_t> lanes_;
  const Span* step_ = nullptr;
  std::map<std::string, std::int64_t> turns_;  // of names in the step
  ProfileBuilder builder_;
};

}  // namespace

std::unique_ptr<TraceImporter> ort_importer() { return std::make_unique<OrtImporter>(); }

}  // namespace trainscope::profiler
