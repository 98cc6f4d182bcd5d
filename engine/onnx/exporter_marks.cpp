// Marks of PyTorch's exporter. They are metadata_props of nodes, values and graph, fields that
// libraries before ONNX 1.16 do not know: there they lie among protobuf's unknown fields.
#include "engine/onnx/exporter_marks.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <string_view>

#include "engine/core/text.h"

namespace trainscope {
namespace {

// Field numbers in ONNX's schema.
constexpr int kOfNode = 9;
constexpr int kOfValue = 4;
constexpr int kOfGraph = 16;

using Properties = std::map<std::string, std::string, std::less<>>;

template <typename Message>
Properties properties_of(const Message& message, int field) {
  Properties properties;
  if constexpr (requires { message.metadata_props_size(); }) {
    for (const auto& each : message.metadata_props()) properties[each.key()] = each.value();
  } else {
    const google::protobuf::UnknownFieldSet& unknown = message.unknown_fields();
    for (int i = 0; i < unknown.field_count(); ++i) {
      const google::protobuf::UnknownField& each = unknown.field(i);
      if (each.number() != field) continue;
      if (each.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
      pb::StringStringEntryProto entry;
      if (entry.ParseFromString(each.length_delimited())) properties[entry.key()] = entry.value();
    }
  }
  return properties;
}

std::string text_of(const Properties& properties, std::string_view key) {
  auto found = properties.find(key);
  return found == properties.end() ? "" : found->second;
}

// The texts of a list as Python prints it: ['', 'encoder.0', 'linear_3'].
std::vector<std::string> python_texts(std::string_view list) {
  std::vector<std::string> texts;
  while (true) {
    const std::size_t begin = list.find_first_of("'\"");
    if (begin == std::string_view::npos) return texts;
    const std::size_t end = list.find(list[begin], begin + 1);
    if (end == std::string_view::npos) return texts;
    texts.emplace_back(list.substr(begin + 1, end - begin - 1));
    list.remove_prefix(end + 1);
  }
}

// Every name behind a % in: %linear_1 : [..] = call_function[target=..](args = (%x, %p_0_weight)).
std::vector<std::string> names_in(std::string_view call) {
  std::vector<std::string> names;
  for (std::size_t at = call.find('%'); at != std::string_view::npos; at = call.find('%')) {
    call.remove_prefix(at + 1);
    const std::size_t end = call.find_first_of(" ,)]}:");
    names.emplace_back(call.substr(0, end));
  }
  return names;
}

// The number in %tanh : [num_users=2] = ..; 0 when there is none.
int users_in(std::string_view call) {
  constexpr std::string_view kBefore = "[num_users=";
  const std::size_t at = call.find(kBefore);
  int users = 0;
  if (at == std::string_view::npos) return users;
  call.remove_prefix(at + kBefore.size());
  std::from_chars(call.data(), call.data() + call.size(), users);
  return users;
}

// The arguments that stand in the call without a name, as text: %weight, %ids, 0.
std::vector<std::string_view> positional_arguments(std::string_view call) {
  constexpr std::string_view kBefore = "(args = (";
  const std::size_t begin = call.find(kBefore);
  if (begin == std::string_view::npos) return {};
  call.remove_prefix(begin + kBefore.size());
  std::vector<std::string_view> arguments;
  for (std::string_view each : split(call.substr(0, call.find(')')), ',')) {
    arguments.push_back(trim(each));
  }
  return arguments;
}

// embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False)
void add_embedding_marks(std::string_view call, NodeMarks& marks) {
  const std::vector<std::string_view> arguments = positional_arguments(call);
  if (arguments.size() > 2) {
    std::int64_t row = -1;
    const std::string_view text = arguments[2];
    std::from_chars(text.data(), text.data() + text.size(), row);
    if (row >= 0) marks.padding_row = row;
  }
  marks.by_frequency = arguments.size() > 3 && arguments[3] == "True";
}

// Whether lines of source take something out of the gradient's way.
bool detaches(std::string_view source) {
  constexpr std::array<std::string_view, 5> kWays = {".detach(", ".detach_(", ".data.", ".data)",
                                                     "no_grad("};
  return std::ranges::any_of(
      kWays, [source](std::string_view way) { return source.find(way) != std::string_view::npos; });
}

// The last of the scopes is the call itself, the one before it the module that made it.
NodeMarks node_marks(const pb::NodeProto& node) {
  const Properties properties = properties_of(node, kOfNode);
  NodeMarks marks;
  marks.rule = text_of(properties, "pkg.onnxscript.rewriter.rule_name");
  marks.source_detaches = detaches(text_of(properties, "pkg.torch.onnx.stack_trace"));
  const std::vector<std::string> scopes =
      python_texts(text_of(properties, "pkg.torch.onnx.name_scopes"));
  if (scopes.size() >= 2) marks.module = scopes[scopes.size() - 2];
  const std::vector<std::string> classes =
      python_texts(text_of(properties, "pkg.torch.onnx.class_hierarchy"));
  if (!classes.empty()) marks.function = classes.back();
  const std::string call = text_of(properties, "pkg.torch.onnx.fx_node");
  if (marks.function.starts_with("aten.embedding.")) add_embedding_marks(call, marks);
  marks.has_keywords = !call.empty() && call.find("kwargs = {}") == std::string::npos;
  marks.users = users_in(call);
  marks.arguments = names_in(call);
  if (!marks.arguments.empty()) {
    marks.result = marks.arguments.front();
    marks.arguments.erase(marks.arguments.begin());
  }
  return marks;
}

// The text between `before` and the next quote: p_0_weight: PARAMETER target='0.weight'.
std::string quoted_after(std::string_view line, std::string_view before) {
  const std::size_t at = line.find(before);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + before.size());
  return std::string(line.substr(0, line.find('\'')));
}

// The lines of its inputs: what stands before "# outputs".
std::vector<ProgramInput> read_signature(std::string_view text) {
  std::vector<ProgramInput> inputs;
  for (std::string_view line : split(text.substr(0, text.find("# outputs")), '\n')) {
    line = trim(line);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos || line.starts_with('#')) continue;
    const std::string_view rest = line.substr(colon + 2);
    inputs.push_back({.name = std::string(line.substr(0, colon)),
                      .kind = std::string(rest.substr(0, rest.find(' '))),
                      .target = quoted_after(rest, "target='"),
                      .persistent = !rest.ends_with("persistent=False")});
  }
  return inputs;
}

// Of its outputs: linear_1: USER_OUTPUT.
std::vector<std::string> read_outputs(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    const std::size_t at = line.find(": USER_OUTPUT");
    if (at != std::string_view::npos) names.emplace_back(line.substr(0, at));
  }
  return names;
}

// Of its outputs: add_1: BUFFER_MUTATION target='mean'.
std::vector<std::string> read_mutations(std::string_view text) {
  std::vector<std::string> targets;
  for (std::string_view line : split(text, '\n')) {
    if (line.find(": BUFFER_MUTATION ") == std::string_view::npos) continue;
    std::string target = quoted_after(line, "target='");
    if (!target.empty()) targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace

ExporterMarks exporter_marks(const pb::ModelProto& model) {
  const pb::GraphProto& graph = model.graph();
  ExporterMarks marks;
  for (const pb::ValueInfoProto& info : graph.value_info()) {
    const Properties properties = properties_of(info, kOfValue);
    std::string kind = text_of(properties, "pkg.torch.export.graph_signature.InputSpec.kind");
    if (!kind.empty()) marks.kinds.emplace(info.name(), std::move(kind));
    std::vector<std::string> from =
        python_texts(text_of(properties, "pkg.onnxscript.optimizer.folded_from"));
    if (!from.empty()) marks.folded_from.emplace(info.name(), std::move(from));
  }
  const std::string signature =
      text_of(properties_of(graph, kOfGraph), "pkg.torch.export.ExportedProgram.graph_signature");
  marks.program = read_signature(signature);
  marks.outputs = read_outputs(signature);
  marks.mutated = read_mutations(signature);
  for (const pb::NodeProto& node : graph.node()) marks.nodes.push_back(node_marks(node));
  return marks;
}

void copy_marks(pb::GraphProto& graph, const std::string& from, const std::string& to) {
  for (const pb::ValueInfoProto& info : graph.value_info()) {
    if (info.name() != from) continue;
    pb::ValueInfoProto copy = info;
    copy.set_name(to);
    *graph.add_value_info() = std::move(copy);
    return;
  }
}

}  // namespace trainscope
