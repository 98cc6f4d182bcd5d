// Asks the record first, then the op table.
#include "engine/plan_classes.h"

#include "engine/compile.h"

namespace trainscope {
namespace {

const OpDef* row_named(std::string_view op) {
  const OpDef* row = op_table().find(op);
  return row != nullptr ? row : op_table().find(op, kTrainscopeDomain);
}

}  // namespace

OpClass class_of_op(std::string_view op) {
  constexpr std::string_view kGradient = "Grad";
  const OpDef* row = row_named(op);
  if (row == nullptr && op.ends_with(kGradient)) {
    row = row_named(op.substr(0, op.size() - kGradient.size()));
  }
  return row == nullptr ? OpClass::kOther : row->op_class;
}

OpClass class_of(const PlanView& plan, const PlanCall& call) {
  const std::string_view op = plan.op_of(call);
  if (op.empty()) return OpClass::kUnstated;
  const OpClass known = plan.class_of(call);
  return known != OpClass::kUnstated ? known : class_of_op(op);
}

}  // namespace trainscope
