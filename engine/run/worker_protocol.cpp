// Messages of workers as JSON.
#include "engine/run/worker_protocol.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/core/json.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr JsonLimits kMessageLimits{.max_bytes = kMostWorkerLineBytes, .max_depth = 8};
// Text beyond it is cut: a message has to fit its line.
constexpr std::size_t kMostTextBytes = 4000;
constexpr std::size_t kMostPlaces = 8;  // of a fault

std::string cut(const std::string& text) { return printable(text, kMostTextBytes); }

Json message_of(const WorkerHello& hello) {
  return Json::object({{"kind", "hello"},
                       {"protocol", hello.protocol},
                       {"program", "trainscope"},
                       {"version", hello.program_version},
                       {"process", hello.process}});
}

Json message_of(const WorkerProgress& progress) {
  return Json::object({{"kind", "progress"},
                       {"work", cut(progress.work)},
                       {"now", cut(progress.now)},
                       {"done", progress.done},
                       {"total", progress.total}});
}

Json message_of(const WorkerBegin& begin) {
  return Json::object({{"kind", "begin"},
                       {"folder", begin.folder},
                       {"from_step", begin.from_step},
                       {"to_step", begin.to_step}});
}

Json message_of(const WorkerPeak& peak) {
  return Json::object({{"kind", "peak"},
                       {"predicted_bytes", peak.predicted_bytes},
                       {"used_bytes", peak.used_bytes},
                       {"resident_bytes", peak.resident_bytes}});
}

Json message_of(const WorkerStep& step) {
  return Json::object({{"kind", "step"},
                       {"step", step.step},
                       {"loss", step.loss},
                       {"milliseconds", step.milliseconds}});
}

Json message_of(const WorkerCheckpoint& checkpoint) {
  return Json::object({{"kind", "checkpoint"}, {"step", checkpoint.step}});
}

Json message_of(const WorkerDone& done) {
  return Json::object({{"kind", "done"}, {"status", name_of(done.status)}, {"step", done.step}});
}

Json message_of(const WorkerFault& fault) {
  Json where = Json::array();
  for (std::size_t i = 0; i < fault.where.size() && i < kMostPlaces; ++i) {
    where.push_back(cut(fault.where[i]));
  }
  return Json::object({{"kind", "error"},
                       {"code", static_cast<int>(fault.code)},
                       {"message", cut(fault.message)},
                       {"where", std::move(where)},
                       {"hint", cut(fault.hint)}});
}

Json message_of(const WorkerStop& /*stop*/) { return Json::object({{"kind", "stop"}}); }

// JSON has no NaN: null stands for it.
double number_or_nan(const Json& json, std::string_view key) {
  if (json.at(key).is_null()) return std::numeric_limits<double>::quiet_NaN();
  return json.get<double>(key);
}

std::int64_t count(const Json& json, std::string_view key) {
  const auto value = json.get<std::int64_t>(key);
  require(value >= 0, ErrorCode::kBadInput, "{} is {}", key, value);
  return value;
}

RunStatus end_status(const Json& json) {
  const auto text = json.get<std::string>("status");
  for (RunStatus status : {RunStatus::kFinished, RunStatus::kInterrupted}) {
    if (text == name_of(status)) return status;
  }
  fail(ErrorCode::kBadInput, "status is '{}'", printable(text));
}

WorkerFault fault_of(const Json& json) {
  const std::int64_t code = count(json, "code");
  const bool known = code >= static_cast<int>(ErrorCode::kRunFailed) &&
                     code <= static_cast<int>(ErrorCode::kMismatch);
  WorkerFault fault{.code = known ? static_cast<ErrorCode>(code) : ErrorCode::kRunFailed,
                    .message = json.get<std::string>("message"),
                    .hint = json.get_or("hint", "")};
  for (const Json& each : json.array_at("where")) fault.where.push_back(each.as_string());
  return fault;
}

using ReadMessage = WorkerMessage (*)(const Json& json);

struct MessageKind {
  std::string_view name;
  ReadMessage read;
};

constexpr std::array<MessageKind, 9> kKinds = {{
    {"hello",
     [](const Json& json) -> WorkerMessage {
       return WorkerHello{.protocol = count(json, "protocol"),
                          .program_version = json.get_or("version", ""),
                          .process = json.get_or<std::int64_t>("process", 0)};
     }},
    {"progress",
     [](const Json& json) -> WorkerMessage {
       return WorkerProgress{.work = json.get<std::string>("work"),
                             .now = json.get_or("now", ""),
                             .done = count(json, "done"),
                             .total = count(json, "total")};
     }},
    {"begin",
     [](const Json& json) -> WorkerMessage {
       return WorkerBegin{.folder = json.get<std::string>("folder"),
                          .from_step = count(json, "from_step"),
                          .to_step = count(json, "to_step")};
     }},
    {"peak",
     [](const Json& json) -> WorkerMessage {
       return WorkerPeak{.predicted_bytes = count(json, "predicted_bytes"),
                         .used_bytes = count(json, "used_bytes"),
                         .resident_bytes = count(json, "resident_bytes")};
     }},
    {"step",
     [](const Json& json) -> WorkerMessage {
       return WorkerStep{.step = count(json, "step"),
                         .loss = number_or_nan(json, "loss"),
                         .milliseconds = json.get<double>("milliseconds")};
     }},
    {"checkpoint",
     [](const Json& json) -> WorkerMessage {
       return WorkerCheckpoint{.step = count(json, "step")};
     }},
    {"done",
     [](const Json& json) -> WorkerMessage {
       return WorkerDone{.status = end_status(json), .step = count(json, "step")};
     }},
    {"error", [](const Json& json) -> WorkerMessage { return fault_of(json); }},
    {"stop", [](const Json& /*json*/) -> WorkerMessage { return WorkerStop{}; }},
}};

}  // namespace

std::string worker_line(const WorkerMessage& message) {
  const Json json = std::visit([](const auto& each) { return message_of(each); }, message);
  return json.dump() + "\n";
}

std::optional<WorkerMessage> worker_message(std::string_view line) {
  const Json json = Json::parse(line, kMessageLimits);
  const auto name = json.get<std::string>("kind");
  for (const MessageKind& kind : kKinds) {
    if (kind.name == name) return kind.read(json);
  }
  return std::nullopt;
}

void WorkerLines::add(std::string_view bytes) {
  bytes_.erase(0, std::exchange(begin_, 0));
  bytes_ += bytes;
  const std::size_t last_end = bytes_.rfind('\n');
  const std::size_t open =
      last_end == std::string::npos ? bytes_.size() : bytes_.size() - last_end - 1;
  require(open <= kMostWorkerLineBytes, ErrorCode::kBadInput,
          "a line of more than {} bytes without an end", kMostWorkerLineBytes);
}

std::optional<std::string> WorkerLines::next() {
  const std::size_t end = bytes_.find('\n', begin_);
  if (end == std::string::npos) return std::nullopt;
  std::string line = bytes_.substr(begin_, end - begin_);
  begin_ = end + 1;
  return line;
}

}  // namespace trainscope
