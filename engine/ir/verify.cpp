// Checks every invariant written above Graph; the pass manager runs it after each pass.
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"
#include "engine/ir/serial_index.h"

namespace trainscope {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph)
      : graph_(graph),
        defined_(graph.value_capacity(), false),
        use_count_(graph.value_capacity(), 0),
        serials_(graph.last_serial(), graph.value_capacity() + graph.node_capacity()) {}

  std::vector<std::string> run() {
    for (ValueId v : graph_.live_values()) {
      const Value& value = graph_.value(v);
      if (value.kind != ValueKind::kNode) defined_[static_cast<std::size_t>(v)] = true;
      if (graph_.find(value.name) != v) complain("value '{}': its name is not its own", value.name);
      check_initial(value);
      check_serial(value.serial, value.name);
    }
    std::size_t seen = 0;
    for (NodeId id = graph_.first(); id != kNoNode && seen <= graph_.node_capacity();
         id = graph_.node(id).next) {
      check_node(id);
      ++seen;
    }
    if (seen != graph_.node_count())
      complain("the order visits {} nodes, {} live", seen, graph_.node_count());
    check_uses();
    check_ends();
    if (problems_.empty()) check_outputs();
    return std::move(problems_);
  }

 private:
  template <typename... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check_initial(const Value& value) {
    if (value.kind == ValueKind::kConstant && !value.data)
      complain("constant '{}': no data", value.name);
    if (value.data && value.data->type() != value.type) {
      complain("value '{}': data is {}, type {}", value.name, type_text(value.data->type()),
               type_text(value.type));
    }
  }

  void check_serial(Serial serial, const std::string& name) {
    const bool given = serial > kNoSerial && serial <= graph_.last_serial();
    if (!given || serials_.get(serial) != SerialMap::kNone) {
      complain("'{}': its serial is not its own", name);
      return;
    }
    serials_.set(serial, 1);
  }

  void check_node(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.erased) complain("node '{}': erased, but in the order", node.name);
    if (graph_.find_node(node.name) != id) {
      complain("node '{}': its name is not its own", node.name);
    }
    if (node.provenance.pass.empty()) complain("node '{}': no provenance", node.name);
    if (node.phase == Phase::kForward && node.provenance.backward_of != kNoSerial) {
      complain("node '{}': forward, but part of a gradient", node.name);
    }
    check_serial(node.serial, node.name);
    for (ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      ++use_count_[static_cast<std::size_t>(input)];
      if (graph_.value(input).erased || !defined_[static_cast<std::size_t>(input)]) {
        complain("node '{}': reads '{}' before it exists", node.name, graph_.value(input).name);
      }
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      const Value& value = graph_.value(node.outputs[i]);
      if (value.producer != id || value.producer_output != static_cast<int>(i)) {
        complain("value '{}': wrong producer", value.name);
      }
      defined_[static_cast<std::size_t>(node.outputs[i])] = true;
    }
    check_types(node);
    check_bodies(node);
  }

  // Bodies nest as deep as the model's do.
  void check_bodies(const Node& node) {
    for (const auto& [name, attribute] : node.attributes.map()) {
      const auto* body = std::get_if<SharedGraph>(&attribute);
      if (body == nullptr) continue;
      if (!*body) {
        complain("node '{}': its {} is no graph", node.name, name);
        continue;
      }
      for (const std::string& problem : verify(**body)) {
        complain("node '{}': its {}: {}", node.name, name, problem);
      }
    }
  }

  void check_types(const Node& node) {
    NodeArgs args(graph_, node);
    OpArgs without_outputs = *args;
    without_outputs.outputs = {};
    try {
      std::vector<TensorType> types = node.op->shape(without_outputs);
      if (types.size() < node.outputs.size()) {
        complain("node '{}': {} outputs, the op gives {}", node.name, node.outputs.size(),
                 types.size());
      }
      for (std::size_t i = 0; i < std::min(types.size(), node.outputs.size()); ++i) {
        if (node.outputs[i] == kNoValue || graph_.value(node.outputs[i]).type == types[i]) continue;
        complain("value '{}': type {}, the op gives {}", graph_.value(node.outputs[i]).name,
                 type_text(graph_.value(node.outputs[i]).type), type_text(types[i]));
      }
    } catch (const Error& error) {
      complain("node '{}' ({}): {}", node.name, node.op->name, error.message());
    }
  }

  void check_uses() {
    for (ValueId v : graph_.live_values()) {
      const Value& value = graph_.value(v);
      if (value.uses.size() != use_count_[static_cast<std::size_t>(v)]) {
        complain("value '{}': {} uses listed, {} exist", value.name, value.uses.size(),
                 use_count_[static_cast<std::size_t>(v)]);
      }
      for (const Use& use : value.uses) {
        const Node& node = graph_.node(use.node);
        if (node.erased || node.inputs[static_cast<std::size_t>(use.input)] != v) {
          complain("value '{}': a listed use is not one", value.name);
        }
      }
    }
  }

  void check_end(ValueId v, std::string_view what) {
    if (v == kNoValue || graph_.value(v).erased || !defined_[static_cast<std::size_t>(v)]) {
      complain("{}: a value that does not exist", what);
    }
  }

  void check_ends() {
    for (ValueId v : graph_.inputs) {
      check_end(v, "graph input");
      if (graph_.value(v).kind != ValueKind::kInput)
        complain("input '{}': not an input", graph_.value(v).name);
    }
    for (ValueId v : graph_.outputs) check_end(v, "graph output");
    if (graph_.loss != kNoValue) check_end(graph_.loss, "loss");
    for (const Update& u : graph_.updates) {
      check_end(u.state, "updated state");
      check_end(u.value, "update");
      if (graph_.value(u.state).type != graph_.value(u.value).type) {
        complain("update of '{}': types differ", graph_.value(u.state).name);
      }
    }
    for (const GradientOf& g : graph_.gradients) {
      check_end(g.of, "differentiated value");
      check_end(g.gradient, "gradient");
      if (graph_.value(g.of).type != graph_.value(g.gradient).type) {
        complain("gradient of '{}': types differ", graph_.value(g.of).name);
      }
    }
  }

  // is_output() against the lists themselves.
  void check_outputs() {
    std::vector<bool> listed(graph_.value_capacity(), false);
    const auto list = [&listed](ValueId v) { listed[static_cast<std::size_t>(v)] = true; };
    for (ValueId v : graph_.outputs) list(v);
    for (const Update& u : graph_.updates) list(u.value);
    for (const GradientOf& g : graph_.gradients) list(g.gradient);
    if (graph_.loss != kNoValue) list(graph_.loss);
    for (ValueId v : graph_.live_values()) {
      if (graph_.is_output(v) == listed[static_cast<std::size_t>(v)]) continue;
      complain("value '{}': an entry of the outputs, updates or gradients was changed in place",
               graph_.value(v).name);
    }
  }

  const Graph& graph_;
  std::vector<bool> defined_;
  std::vector<std::size_t> use_count_;
  SerialMap serials_;  // of live nodes and values
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace trainscope
