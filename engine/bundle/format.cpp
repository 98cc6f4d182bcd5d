// The records of a run's folder to JSON and back.
#include "engine/bundle/format.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/numbers.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// What the keys of a step's terms begin with.
constexpr std::string_view kTermKey = "loss/";

constexpr std::array kStatuses = {RunStatus::kRunning, RunStatus::kFinished,
                                  RunStatus::kInterrupted, RunStatus::kFailed};

RunStatus status_from(const Json& json) {
  const std::string text = json.get<std::string>("status");
  for (const RunStatus status : kStatuses) {
    if (text == name_of(status)) return status;
  }
  fail(ErrorCode::kBadInput, "key 'status': unknown status '{}'", printable(text, 40));
}

// Seeds use all 64 bits, integers in JSON have 63: decimal digits as text.
std::uint64_t seed_from(const Json& json) {
  const std::string text = json.get<std::string>("seed");
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  require(error == std::errc() && end == text.data() + text.size(), ErrorCode::kBadInput,
          "key 'seed': expected a whole number as text, found '{}'", printable(text, 40));
  return seed;
}

// NaN and infinity, which JSON cannot hold, are written as null.
double number_from(const Json& json, std::string_view key) {
  if (json.at(key).is_null()) return std::numeric_limits<double>::quiet_NaN();
  return json.get<double>(key);
}

// Of keys that older programs did not write, or that were not known.
double known_number(const Json& json, std::string_view key) {
  return json.contains(key) ? number_from(json, key) : std::numeric_limits<double>::quiet_NaN();
}
std::int64_t known_integer(const Json& json, std::string_view key) {
  return json.contains(key) && !json.at(key).is_null() ? json.get<std::int64_t>(key) : -1;
}

NearMissRecord near_miss_from(const Json& json) {
  NearMissRecord miss{.nodes = {json.get<std::string>("node")},
                      .reason = json.get<std::string>("reason")};
  if (!json.contains("nodes")) return miss;  // of a run from before there were several
  for (const Json& node : json.array_at("nodes")) {
    const std::string& name = node.as_string();
    if (name != miss.node()) miss.nodes.push_back(name);
  }
  return miss;
}

Json session_json(const RunSession& session) {
  Json json = Json::object({{"command", Json::list(session.command)},
                            {"program_version", session.program_version},
                            {"device", session.device},
                            {"threads", session.threads},
                            {"isa", session.isa},
                            {"from_step", session.from_step},
                            {"start_time", session.start_time},
                            {"end_time", session.end_time},
                            {"status", name_of(session.status)},
                            {"exit_code", session.exit_code},
                            {"last_step", session.last_step},
                            {"message", session.message}});
  if (!session.device_name.empty()) json.set("device_name", session.device_name);
  json.set("options", session.options);
  if (!session.machine.is_null()) json.set("machine", session.machine);
  return json;
}

RunSession session_from(const Json& json) {
  RunSession session{.command = {},
                     .program_version = json.get<std::string>("program_version"),
                     .device = json.get<std::string>("device"),
                     .device_name = json.get_or("device_name", ""),
                     .threads = json.get<std::int64_t>("threads"),
                     .isa = json.get<std::string>("isa"),
                     .from_step = json.get<std::int64_t>("from_step"),
                     .start_time = json.get<std::string>("start_time"),
                     .end_time = json.get<std::string>("end_time"),
                     .status = status_from(json),
                     .exit_code = json.get<std::int64_t>("exit_code"),
                     .last_step = json.get<std::int64_t>("last_step"),
                     .message = json.get<std::string>("message")};
  for (const Json& word : json.array_at("command")) session.command.push_back(word.as_string());
  // Older programs kept them for the first session alone, in the manifest.
  if (json.contains("options")) session.options = json.object_at("options");
  if (json.contains("machine")) session.machine = json.object_at("machine");
  return session;
}

void check_format(const Json& json) {
  const auto format = json.get<std::int64_t>("format");
  if (format >= kOldestReadableRunFormat && format <= kRunFormat) return;
  const std::string_view advice = format > kRunFormat
                                      ? "a newer trainscope wrote this run: use that version"
                                      : "an older trainscope can read this run";
  throw Error(ErrorCode::kBadInput,
              fmt::format("run format {}: this program reads formats {} to {}", format,
                          kOldestReadableRunFormat, kRunFormat))
      .hint(std::string(advice));
}

}  // namespace

std::string rewrites_file(std::string_view stage_file) {
  constexpr std::string_view kModel = ".onnx";
  if (stage_file.ends_with(kModel)) stage_file.remove_suffix(kModel.size());
  return std::string(stage_file) + ".rewrites.jsonl";
}

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kFinished:
      return "finished";
    case RunStatus::kInterrupted:
      return "interrupted";
    case RunStatus::kFailed:
      return "failed";
  }
  return "?";
}

Json to_json(const RunManifest& manifest) {
  Json sessions = Json::array();
  for (const RunSession& session : manifest.sessions) sessions.push_back(session_json(session));
  Json json = Json::object({{"format", manifest.format},
                            {"program", "trainscope"},
                            {"seed", std::to_string(manifest.seed)},
                            {"options", manifest.options},
                            {"model", manifest.model},
                            {"data", manifest.data}});
  if (!manifest.machine.is_null()) json.set("machine", manifest.machine);
  json.set("sessions", std::move(sessions));
  return json;
}

RunManifest run_manifest_from(const Json& json) {
  check_format(json);
  const auto program = json.get<std::string>("program");
  require(program == "trainscope", ErrorCode::kBadInput, "key 'program' is '{}', not 'trainscope'",
          printable(program, 40));
  RunManifest manifest{
      .format = json.get<std::int64_t>("format"),
      .seed = seed_from(json),
      .options = json.object_at("options"),
      .model = json.object_at("model"),
      .data = json.object_at("data"),
      .machine = json.contains("machine") ? Json(json.object_at("machine")) : Json(),
      .sessions = {}};
  for (const Json& session : json.array_at("sessions")) {
    manifest.sessions.push_back(session_from(session));
  }
  require(!manifest.sessions.empty(), ErrorCode::kBadInput, "key 'sessions': the list is empty");
  return manifest;
}

Json to_json(const StageRecord& stage) {
  Json counters = Json::object();
  for (const auto& [name, count] : stage.counters) counters.set(name, count);
  Json near_misses = Json::array();
  for (const NearMissRecord& miss : stage.near_misses) {
    near_misses.push_back(Json::object(
        {{"node", miss.node()}, {"nodes", Json::list(miss.nodes)}, {"reason", miss.reason}}));
  }
  return Json::object(
      {{"name", stage.name},
       {"file", stage.file},
       {"nodes_before", stage.nodes_before},
       {"nodes_after", stage.nodes_after},
       {"flops_before", stage.flops_before},
       {"flops_after", stage.flops_after},
       {"bytes_before", stage.bytes_before},
       {"bytes_after", stage.bytes_after},
       {"seconds_after", stage.seconds_after},
       {"live_bytes_after", stage.live_bytes_after < 0 ? Json() : Json(stage.live_bytes_after)},
       {"milliseconds", stage.milliseconds},
       {"changed", stage.changed},
       {"hash", stage.hash},
       {"counters", std::move(counters)},
       {"near_misses", std::move(near_misses)}});
}

StageRecord stage_from(const Json& json) {
  StageRecord stage{.name = json.get<std::string>("name"),
                    .file = json.get<std::string>("file"),
                    .nodes_before = json.get<std::int64_t>("nodes_before"),
                    .nodes_after = json.get<std::int64_t>("nodes_after"),
                    .flops_before = json.get_or<std::int64_t>("flops_before", 0),
                    .flops_after = json.get_or<std::int64_t>("flops_after", 0),
                    .bytes_before = json.get_or<std::int64_t>("bytes_before", 0),
                    .bytes_after = json.get_or<std::int64_t>("bytes_after", 0),
                    .seconds_after = known_number(json, "seconds_after"),
                    .live_bytes_after = known_integer(json, "live_bytes_after"),
                    .milliseconds = number_from(json, "milliseconds"),
                    .changed = json.get<bool>("changed"),
                    .hash = json.get<std::string>("hash"),
                    .counters = {},
                    .near_misses = {}};
  const bool plain = !stage.file.empty() && stage.file.find('/') == std::string::npos &&
                     stage.file.front() != '.' && stage.file.find('\0') == std::string::npos;
  require(plain, ErrorCode::kBadInput, "key 'file': '{}' is no file name within stages/",
          printable(stage.file));
  for (const JsonMember& counter : json.object_at("counters")) {
    stage.counters.emplace(counter.key, counter.value.as_int());
  }
  if (!json.contains("near_misses")) return stage;  // of a run from before there were any
  for (const Json& miss : json.array_at("near_misses")) {
    stage.near_misses.push_back(near_miss_from(miss));
  }
  return stage;
}

double Metrics::median_step_ms() const {
  std::vector<double> each;
  for (const StepRecord& step : steps) each.push_back(step.step_ms);
  return median(std::move(each));
}

Json to_json(const StepRecord& step) {
  Json json = Json::object({{"kind", "step"},
                            {"step", step.step},
                            {"loss", step.loss},
                            {"learning_rate", step.learning_rate},
                            {"gradient_norm", step.gradient_norm},
                            {"step_ms", step.step_ms},
                            {"samples", step.samples},
                            {"tokens", step.tokens}});
  for (const auto& [name, loss] : step.terms) json.set(fmt::format("{}{}", kTermKey, name), loss);
  return json;
}

StepRecord step_from(const Json& json) {
  std::vector<std::pair<std::string, double>> terms;
  for (const JsonMember& member : json.as_object()) {
    if (!member.key.starts_with(kTermKey)) continue;
    terms.emplace_back(member.key.substr(kTermKey.size()), number_from(json, member.key));
  }
  return {.step = json.get<std::int64_t>("step"),
          .loss = number_from(json, "loss"),
          .learning_rate = number_from(json, "learning_rate"),
          .gradient_norm = number_from(json, "gradient_norm"),
          .step_ms = number_from(json, "step_ms"),
          .samples = json.get<std::int64_t>("samples"),
          .tokens = json.get<std::int64_t>("tokens"),
          .terms = std::move(terms)};
}

Json to_json(const EvaluationRecord& evaluation) {
  return Json::object({{"kind", "evaluation"},
                       {"step", evaluation.step},
                       {"loss", evaluation.loss},
                       {"accuracy", evaluation.accuracy},
                       {"examples", evaluation.examples},
                       {"milliseconds", evaluation.milliseconds}});
}

EvaluationRecord evaluation_from(const Json& json) {
  return {.step = json.get<std::int64_t>("step"),
          .loss = number_from(json, "loss"),
          .accuracy = json.contains("accuracy") ? number_from(json, "accuracy")
                                                : std::numeric_limits<double>::quiet_NaN(),
          .examples = json.get<std::int64_t>("examples"),
          .milliseconds = number_from(json, "milliseconds")};
}

}  // namespace trainscope
