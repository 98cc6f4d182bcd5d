// Chooses how a node of another opset becomes one of opset 17.
#include "engine/onnx/adapters/adapters.h"

#include <onnx/defs/schema.h>

#include <string>

#include "engine/onnx/proto.h"

namespace trainscope {
namespace {

constexpr int kOldestPlain = 13;  // from here on forms differ only where a row says so

const AdapterRow* find_row(std::string_view op, int opset) {
  for (std::span<const AdapterRow> rows :
       {oldest_rows(), older_rows(), type_rows(), plain_rows(), newer_rows()}) {
    for (const AdapterRow& row : rows) {
      if (row.op == op && row.from <= opset && opset < row.to) return &row;
    }
  }
  return nullptr;
}

// Whether ONNX has one and the same version of the op in both opsets.
bool unchanged(std::string_view op, int opset) {
  const pb::OpSchema* old_form = pb::OpSchemaRegistry::Schema(std::string(op), opset);
  const pb::OpSchema* new_form = pb::OpSchemaRegistry::Schema(std::string(op), kOldestPlain);
  return old_form != nullptr && new_form != nullptr &&
         old_form->since_version() == new_form->since_version();
}

}  // namespace

AdapterChoice adapter_for(std::string_view op, int opset) {
  // Rows without a function lead on to the form after them.
  while (const AdapterRow* row = find_row(op, opset)) {
    if (row->convert != nullptr) return {.adaptation = Adaptation::kConvert, .row = row};
    opset = row->to;
  }
  bool plain = opset >= kOldestPlain || unchanged(op, opset);
  return {.adaptation = plain ? Adaptation::kAsIs : Adaptation::kUnknown, .row = nullptr};
}

bool is_replaced(const AdapterChoice& choice) {
  return choice.adaptation == Adaptation::kConvert && !choice.row->becomes.empty();
}

}  // namespace trainscope
