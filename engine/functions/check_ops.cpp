// Nodes of functions against the rows of their ops.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/functions/function_text.h"

namespace trainscope {
namespace {

constexpr std::array<std::string_view, 5> kConstantAttributes = {
    "value", "value_float", "value_floats", "value_int", "value_ints"};

class NodeCheck {
 public:
  NodeCheck(const FunctionText& function, const FunctionNode& node)
      : node_(node),
        where_(
            fmt::format("{}:{}", function.where.substr(0, function.where.rfind(':')), node.line)) {}

  void run(const OpTable& ops) const {
    if (node_.domain.empty() && node_.op == "Constant") return check_constant();
    const OpDef* op = ops.find(node_.op, node_.domain);
    if (op == nullptr) refuse_unknown(ops);
    check_count("inputs", node_.inputs.size(), op->min_inputs, op->max_inputs);
    check_count("outputs", node_.outputs.size(), 1, op->max_outputs);
    for (const FunctionAttribute& attribute : node_.attributes) {
      const bool known = std::ranges::find(op->attributes, attribute.name, &AttributeSpec::name) !=
                         op->attributes.end();
      require(known, ErrorCode::kBadInput, "{}: {} has no attribute '{}'", where_, shown_op(),
              printable(attribute.name));
    }
  }

 private:
  std::string shown_op() const {
    return printable(node_.domain.empty() ? node_.op : node_.domain + "." + node_.op);
  }

  void check_constant() const {
    const bool one = node_.inputs.empty() && node_.outputs.size() == 1 &&
                     node_.attributes.size() == 1 &&
                     std::ranges::find(kConstantAttributes, node_.attributes.front().name) !=
                         kConstantAttributes.end();
    require(one, ErrorCode::kBadInput,
            "{}: a Constant has no inputs, one output and one of the attributes {}", where_,
            fmt::join(kConstantAttributes, ", "));
  }

  [[noreturn]] void refuse_unknown(const OpTable& ops) const {
    std::vector<std::string_view> names;
    for (const OpDef* row : ops.rows()) {
      if (row->domain == node_.domain) names.push_back(row->name);
    }
    throw Error(ErrorCode::kBadInput, fmt::format("{}: there is no op {}", where_, shown_op()))
        .hint(nearest_hint(node_.op, names));
  }

  void check_count(std::string_view what, std::size_t given, int least, int most) const {
    const auto count = static_cast<int>(given);
    if (count >= least && count <= most) return;
    const std::string expected = most >= kVariadic ? fmt::format("{} or more", least)
                                 : least == most   ? fmt::format("{}", least)
                                                   : fmt::format("{} to {}", least, most);
    fail(ErrorCode::kBadInput, "{}: {} has {} {}, {} expected", where_, shown_op(), count, what,
         expected);
  }

  const FunctionNode& node_;
  std::string where_;
};

}  // namespace

void check_ops(const FunctionText& function, const OpTable& ops) {
  for (const FunctionNode& node : function.nodes) NodeCheck(function, node).run(ops);
}

}  // namespace trainscope
