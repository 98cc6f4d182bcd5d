// PyTorch's profiler (Kineto): what is read of its events, its steps and threads.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/import/aten_ops.h"
#include "profiler/import/importers.h"
#include "profiler/import/kineto_walk.h"

namespace trainscope::profiler {
namespace {

constexpr std::string_view kStepName = "ProfilerStep#";

std::optional<KinetoKind> kind_of(std::string_view category, std::string_view name) {
  if (category == "cpu_op" || category == "user_annotation") {
    const bool is_op = category == "cpu_op" || name.starts_with("Optimizer.");
    return is_op ? KinetoKind::kOp : KinetoKind::kAnnotation;
  }
  if (category == "python_function" && name.starts_with(kModuleName)) return KinetoKind::kModule;
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
    return KinetoKind::kDevice;
  }
  return std::nullopt;
}

// PyTorch's name for it as ours.
std::string dtype_of(std::string_view type) {
  if (type == "float") return "f32";
  if (type == "double") return "f64";
  if (type == "c10::BFloat16") return "bf16";
  if (type == "c10::Half") return "f16";
  return type == "long int" ? "i64" : "";
}

std::string first_dtype(const Json& args) {
  const Json* types = args.find("Input type");
  if (types == nullptr || !types->is_array()) return {};
  for (const Json& type : types->as_array()) {
    if (!type.is_string()) continue;
    const std::string dtype = dtype_of(type.as_string());
    if (!dtype.empty()) return dtype;
  }
  return {};
}

// A process and thread as text: both may be numbers or names.
std::string thread_of(const Json& event) {
  std::string text;
  for (const std::string_view key : {"pid", "tid"}) {
    const Json* part = event.find(key);
    text += part == nullptr ? "-" : part->dump();
    text += '/';
  }
  return text;
}

std::int64_t integer_or(const Json& args, std::string_view key, std::int64_t otherwise) {
  const Json* value = args.find(key);
  return value == nullptr || !value->is_int() ? otherwise : value->as_int();
}

std::string text_or_empty(const Json& args, std::string_view key) {
  const Json* value = args.find(key);
  return value == nullptr || !value->is_string() ? std::string() : value->as_string();
}

std::vector<std::vector<std::int64_t>> input_shapes(const Json& args) {
  std::vector<std::vector<std::int64_t>> shapes;
  const Json* dims = args.find("Input Dims");
  if (dims == nullptr || !dims->is_array()) return shapes;
  for (const Json& input : dims->as_array()) {
    shapes.emplace_back();
    if (!input.is_array()) continue;
    for (const Json& size : input.as_array()) {
      shapes.back().push_back(size.is_int() ? size.as_int() : 0);
    }
  }
  return shapes;
}

// What the trace says, as our own does, or else the shapes.
std::int64_t flops_of(const std::string& name, const Json& args) {
  const std::int64_t flops = integer_or(args, "flops", 0);
  return flops > 0 ? flops : matmul_flops(name, input_shapes(args));
}

class KinetoImporter final : public TraceImporter {
 public:
  bool take(const Json& event) override {
    if (text_or_empty(event, "ph") != "X") return false;
    std::string name = text_or_empty(event, "name");
    const std::string category = text_or_empty(event, "cat");
    const bool launches = category == "cuda_runtime" || category == "cuda_driver";
    const auto kind = kind_of(category, name);
    if (!kind && !launches) return false;
    const Json none = Json::object();
    const Json* args = event.find("args");
    if (args == nullptr || !args->is_object()) args = &none;
    const std::int64_t begin = ns_of_microseconds(event.get<double>("ts"), "ts");
    const std::int64_t correlation = integer_or(*args, "correlation", -1);
    if (launches) {
      if (correlation >= 0) trace_.launches[correlation] = begin;
      return false;
    }
    const std::int64_t ns = ns_of_microseconds(event.get<double>("dur"), "dur");
    require(ns >= 0, ErrorCode::kBadInput, "dur is {} ns, expected no negative number", ns);
    const KinetoSpan span{.begin_ns = begin,
                          .end_ns = begin + ns,
                          .sequence = integer_or(*args, "Sequence number", -1),
                          .external = integer_or(*args, "External id", -1),
                          .correlation = correlation,
                          .flops = flops_of(name, *args),
                          .name = trace_.texts.id(std::move(name)),
                          .node = trace_.texts.id(text_or_empty(*args, "onnx_node")),
                          .kernel = trace_.texts.id(text_or_empty(*args, "kernel")),
                          .phase = trace_.texts.id(text_or_empty(*args, "phase")),
                          .dtype = trace_.texts.id(first_dtype(*args)),
                          .kind = *kind,
                          .of_forward_thread = integer_or(*args, "Fwd thread id", 0) > 0};
    if (*kind == KinetoKind::kDevice) {
      trace_
          .devices[{.device = integer_or(*args, "device", -1),
                    .stream = integer_or(*args, "stream", -1),
                    .thread = thread_of(event)}]
          .push_back(span);
    } else {
      trace_.hosts[thread_of(event)].push_back(span);
    }
    require(std::max(trace_.devices.size(), trace_.hosts.size()) < kMostThreads,
            ErrorCode::kBadInput, "the trace has more than {} threads", kMostThreads);
    return *kind == KinetoKind::kOp || *kind == KinetoKind::kDevice;
  }

  ImportedProfile finish(const TraceFrame& frame, const ImportOptions& options) override {
    const std::int64_t base = check_frame(frame);
    KinetoWalker walker(trace_, options);
    const std::string driver = driving_thread();
    walker.set_steps(steps_of(trace_.hosts[driver]));
    walker.walk_host(trace_.hosts[driver], true);
    for (auto& [name, thread] : trace_.hosts) {
      if (name != driver) walker.walk_host(thread, false);
    }
    for (auto& [stream, work] : trace_.devices) walker.walk_device(stream, work);
    walker.end_steps();
    return walker.builder().finish("PyTorch", base);
  }

 private:
  static constexpr std::size_t kMostThreads = 10'000;

  // The time of day of the trace's 0; 0: not known.
  static std::int64_t check_frame(const TraceFrame& frame) {
    if (!frame.is_object) return 0;
    const std::int64_t version = integer_or(frame.members, "schemaVersion", 1);
    require_supported(version == 1, "the trace has schemaVersion {}, this program reads 1",
                      version);
    const std::int64_t base = integer_or(frame.members, "baseTimeNanoseconds", 0);
    return base < 0 || base > std::numeric_limits<std::int64_t>::max() / 2 ? 0 : base;
  }

  bool is_step(const KinetoSpan& span) const {
    return span.kind == KinetoKind::kAnnotation && trace_.texts[span.name].starts_with(kStepName);
  }

  // The one with steps, or else with the most time.
  std::string driving_thread() const {
    std::string best;
    std::pair<std::int64_t, std::int64_t> most = {-1, -1};
    for (const auto& [name, thread] : trace_.hosts) {
      std::pair<std::int64_t, std::int64_t> has = {
          std::ranges::count_if(thread, [this](const KinetoSpan& span) { return is_step(span); }),
          0};
      for (const KinetoSpan& span : thread) has.second += span.end_ns - span.begin_ns;
      if (has <= most) continue;
      most = has;
      best = name;
    }
    return best;
  }

  // All that a trace without steps has, of the driving thread and of devices, with its launches.
  KinetoStep whole(const std::vector<KinetoSpan>& spans) const {
    KinetoStep all{.begin_ns = std::numeric_limits<std::int64_t>::max(),
                   .end_ns = std::numeric_limits<std::int64_t>::min(),
                   .number = 1};
    const auto add = [&all](const std::vector<KinetoSpan>& more) {
      for (const KinetoSpan& span : more) {
        all.begin_ns = std::min(all.begin_ns, span.begin_ns);
        all.end_ns = std::max(all.end_ns, span.end_ns);
      }
    };
    add(spans);
    for (const auto& [stream, work] : trace_.devices) add(work);
    for (const auto& [correlation, begin] : trace_.launches) {
      all.begin_ns = std::min(all.begin_ns, begin);
    }
    return all;
  }

  std::vector<KinetoStep> steps_of(const std::vector<KinetoSpan>& spans) const {
    std::vector<KinetoStep> steps;
    for (const KinetoSpan& span : spans) {
      if (!is_step(span)) continue;
      const std::string& name = trace_.texts[span.name];
      const auto number = parse_int(std::string_view(name).substr(kStepName.size()));
      steps.push_back({.begin_ns = span.begin_ns,
                       .end_ns = span.end_ns,
                       .number = static_cast<std::uint32_t>(number.value_or(0))});
    }
    if (steps.empty()) return {whole(spans)};
    std::ranges::sort(steps, {}, &KinetoStep::begin_ns);
    for (std::size_t i = 1; i < steps.size(); ++i) {
      require(steps[i].begin_ns >= steps[i - 1].end_ns, ErrorCode::kBadInput,
              "steps {} and {} of the trace overlap", steps[i - 1].number, steps[i].number);
    }
    return steps;
  }

  KinetoTrace trace_;
};

}  // namespace

std::unique_ptr<TraceImporter> kineto_importer() { return std::make_unique<KinetoImporter>(); }

}  // namespace trainscope::profiler
