// What a stage has and ONNX has no field for, as JSON and back.
#include "engine/onnx/stage_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kStageKey = "ai.trainscope.stage";
constexpr int kFormat = 1;

using NamePairs = std::vector<std::pair<std::string, std::string>>;

template <typename Enum>
Enum from_name(std::string_view name, std::initializer_list<Enum> all) {
  for (Enum each : all) {
    if (name_of(each) == name) return each;
  }
  fail(ErrorCode::kBadInput, "'{}' is not known here", printable(name));
}

ValueKind kind_from(std::string_view name) {
  return from_name(
      name, {ValueKind::kInput, ValueKind::kParameter, ValueKind::kState, ValueKind::kConstant});
}

Json pairs_to_json(const NamePairs& pairs) {
  Json list = Json::array();
  for (const auto& [a, b] : pairs) list.push_back(Json::array({a, b}));
  return list;
}

NamePairs pairs_from_json(const Json& list) {
  NamePairs pairs;
  for (const Json& pair : list.as_array()) {
    pairs.emplace_back(pair.at(std::size_t{0}).as_string(), pair.at(std::size_t{1}).as_string());
  }
  return pairs;
}

std::vector<std::string> names_from_json(const Json& list) {
  std::vector<std::string> names;
  for (const Json& name : list.as_array()) names.push_back(name.as_string());
  return names;
}

// Serials from 1 to half of what there are, so that a graph that is read can grow.
constexpr std::int64_t kMaxSerial = std::int64_t{1} << 30;

Json to_json(Serial serial) { return static_cast<std::int32_t>(serial); }

Json serials_to_json(const std::vector<Serial>& serials) {
  Json list = Json::array();
  for (Serial serial : serials) list.push_back(to_json(serial));
  return list;
}

Serial serial_from(const Json& json, std::int64_t lowest = 1) {
  const std::int64_t number = json.as_int();
  require(number >= lowest && number <= kMaxSerial, ErrorCode::kBadInput,
          "the serial {} is not in [{}, {}]", number, lowest, kMaxSerial);
  return static_cast<Serial>(number);
}

std::vector<Serial> serials_from_json(const Json& list, std::int64_t lowest = 1) {
  std::vector<Serial> serials;
  for (const Json& item : list.as_array()) serials.push_back(serial_from(item, lowest));
  return serials;
}

// [value, id of what it is the gradient of, ...]
Json gradient_of_to_json(const StageMetadata& stage) {
  Json rows = Json::array();
  for (const auto& [name, of] : stage.gradient_of) {
    Json row = Json::array({name});
    for (Serial serial : of) row.push_back(to_json(serial));
    rows.push_back(std::move(row));
  }
  return rows;
}

void read_gradient_of(const Json& rows, StageMetadata& stage) {
  for (const Json& row : rows.as_array()) {
    std::vector<Serial> of;
    for (std::size_t i = 1; i < row.as_array().size(); ++i) of.push_back(serial_from(row.at(i)));
    stage.gradient_of.emplace_back(row.at(std::size_t{0}).as_string(), std::move(of));
  }
}

void read_serials(const Json& json, StageMetadata& stage) {
  if (const Json* ids = json.find("value_serials")) stage.value_serials = serials_from_json(*ids);
  if (const Json* rows = json.find("gradient_of")) read_gradient_of(*rows, stage);
}

const pb::StringStringEntryProto* find_stage(const pb::ModelProto& model) {
  const pb::StringStringEntryProto* found = nullptr;
  for (const pb::StringStringEntryProto& entry : model.metadata_props()) {
    if (entry.key() != kStageKey) continue;
    require(found == nullptr, ErrorCode::kBadInput, "the model describes its stage twice");
    found = &entry;
  }
  return found;
}

bool fits_float(double number) {
  if (!std::isfinite(number)) return true;
  return std::abs(number) <= std::numeric_limits<float>::max() &&
         static_cast<double>(static_cast<float>(number)) == number;
}

// The numbers of an attribute that ONNX's float32 would round; null when there are none.
Json exact_numbers(const Attribute& attribute) {
  if (const auto* number = std::get_if<double>(&attribute)) {
    return fits_float(*number) ? Json() : Json(*number);
  }
  const auto* numbers = std::get_if<Floats>(&attribute);
  if (numbers == nullptr || std::ranges::all_of(*numbers, fits_float)) return {};
  return Json::list(*numbers);
}

}  // namespace

StageMetadata stage_metadata(const Graph& graph) {
  auto name = [&graph](ValueId v) { return v == kNoValue ? std::string() : graph.value(v).name; };
  StageMetadata stage{.graph_name = graph.name};
  for (ValueId v : graph.live_values()) {
    const Value& value = graph.value(v);
    if (!value.gradient_of.empty()) {
      stage.gradient_of.emplace_back(value.name, value.gradient_of.list());
    }
    if (value.kind == ValueKind::kNode) continue;
    stage.values.emplace_back(value.name, value.kind);
    stage.value_serials.push_back(value.serial);
  }
  for (ValueId v : graph.inputs) stage.inputs.push_back(name(v));
  for (ValueId v : graph.outputs) stage.outputs.push_back(name(v));
  for (const Update& u : graph.updates) stage.updates.emplace_back(name(u.state), name(u.value));
  for (const GradientOf& g : graph.gradients) {
    stage.gradients.emplace_back(name(g.of), name(g.gradient));
  }
  stage.loss = name(graph.loss);
  return stage;
}

void write_stage_metadata(const StageMetadata& stage, pb::ModelProto& model) {
  Json values = Json::array();
  for (const auto& [name, kind] : stage.values)
    values.push_back(Json::array({name, name_of(kind)}));
  Json json = Json::object({{"format", kFormat},
                            {"name", stage.graph_name},
                            {"values", values},
                            {"value_serials", serials_to_json(stage.value_serials)},
                            {"inputs", Json::list(stage.inputs)},
                            {"outputs", Json::list(stage.outputs)},
                            {"updates", pairs_to_json(stage.updates)},
                            {"gradients", pairs_to_json(stage.gradients)},
                            {"gradient_of", gradient_of_to_json(stage)},
                            {"loss", stage.loss}});
  pb::StringStringEntryProto& entry = *model.add_metadata_props();
  entry.set_key(std::string(kStageKey));
  entry.set_value(json.dump());
}

bool has_stage_metadata(const pb::ModelProto& model) { return find_stage(model) != nullptr; }

StageMetadata read_stage_metadata(const pb::ModelProto& model) {
  const pb::StringStringEntryProto* entry = find_stage(model);
  CHECK_INVARIANT(entry != nullptr);
  try {
    Json json = Json::parse(entry->value());
    int format = json.get<int>("format");
    require(format == kFormat, ErrorCode::kBadInput, "format {} is not known, {} is", format,
            kFormat);
    StageMetadata stage{.graph_name = json.get<std::string>("name")};
    for (const auto& [name, kind] : pairs_from_json(json.at("values"))) {
      stage.values.emplace_back(name, kind_from(kind));
    }
    read_serials(json, stage);
    stage.inputs = names_from_json(json.at("inputs"));
    stage.outputs = names_from_json(json.at("outputs"));
    stage.updates = pairs_from_json(json.at("updates"));
    stage.gradients = pairs_from_json(json.at("gradients"));
    stage.loss = json.get<std::string>("loss");
    return stage;
  } catch (Error& error) {
    error.at(fmt::format("metadata '{}'", kStageKey));
    throw;
  }
}

std::string node_note_text(const Graph& graph, const Node& node) {
  Json output_serials = Json::array();
  for (ValueId v : node.outputs) {
    output_serials.push_back(to_json(v == kNoValue ? kNoSerial : graph.value(v).serial));
  }
  Json json = Json::object({{"phase", name_of(node.phase)},
                            {"pass", node.provenance.pass},
                            {"sources", Json::list(node.provenance.sources)},
                            {"serial", to_json(node.serial)},
                            {"output_serials", std::move(output_serials)}});
  if (node.provenance.backward_of != kNoSerial) {
    json.set("backward_of", to_json(node.provenance.backward_of));
  }
  if (node.provenance.rematerialized_of != kNoSerial) {
    json.set("rematerialized_of", to_json(node.provenance.rematerialized_of));
  }
  Json exact = Json::object();
  for (const auto& [name, attribute] : node.attributes.map()) {
    Json numbers = exact_numbers(attribute);
    if (!numbers.is_null()) exact.set(name, numbers);
  }
  if (exact.size() > 0) json.set("exact", exact);
  return json.dump();
}

NodeNote read_node_note(std::string_view text) {
  Json json = Json::parse(text);
  NodeNote note;
  note.phase = from_name(json.get<std::string>("phase"),
                         {Phase::kForward, Phase::kBackward, Phase::kUpdate});
  note.provenance.pass = json.get<std::string>("pass");
  require(!note.provenance.pass.empty(), ErrorCode::kBadInput, "the pass has no name");
  note.provenance.sources = SourceNames(names_from_json(json.at("sources")));
  if (const Json* id = json.find("serial")) note.serial = serial_from(*id);
  if (const Json* ids = json.find("output_serials"))
    note.output_serials = serials_from_json(*ids, 0);
  if (const Json* of = json.find("backward_of")) {
    note.provenance.backward_of = serial_from(*of);
    require(note.phase != Phase::kForward, ErrorCode::kBadInput,
            "a forward node is no part of a gradient");
  }
  if (const Json* of = json.find("rematerialized_of")) {
    note.provenance.rematerialized_of = serial_from(*of);
  }
  const Json* exact = json.find("exact");
  if (exact == nullptr) return note;
  for (const JsonMember& member : exact->as_object()) {
    if (member.value.is_array()) {
      Floats numbers;
      for (const Json& number : member.value.as_array()) numbers.push_back(number.as_number());
      note.exact.emplace_back(member.key, std::move(numbers));
    } else {
      note.exact.emplace_back(member.key, member.value.as_number());
    }
  }
  return note;
}

}  // namespace trainscope
