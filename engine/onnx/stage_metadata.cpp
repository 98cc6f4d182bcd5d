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
    if (value.kind != ValueKind::kNode) stage.values.emplace_back(value.name, value.kind);
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
                            {"inputs", Json::list(stage.inputs)},
                            {"outputs", Json::list(stage.outputs)},
                            {"updates", pairs_to_json(stage.updates)},
                            {"gradients", pairs_to_json(stage.gradients)},
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

std::string node_note_text(const Node& node) {
  Json json = Json::object({{"phase", name_of(node.phase)},
                            {"pass", node.provenance.pass},
                            {"sources", Json::list(node.provenance.sources)}});
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
