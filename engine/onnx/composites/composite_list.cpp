// The ops that are written with others, as a list.
#include "engine/onnx/composite_list.h"

#include <algorithm>
#include <tuple>

#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

void add_rows(std::vector<CompositeForm>& forms, std::string_view domain,
              std::span<const CompositeOp> rows) {
  for (const CompositeOp& row : rows) {
    if (row.applies != nullptr) continue;
    forms.push_back({.domain = domain,
                     .op = row.op,
                     .from = row.from,
                     .most_inputs = row.most_inputs,
                     .most_outputs = row.most_outputs,
                     .attributes = row.attributes});
  }
}

}  // namespace

std::vector<CompositeForm> composite_forms() {
  std::vector<CompositeForm> forms;
  for (const std::string_view domain : {std::string_view{}, kMicrosoftDomain}) {
    for (const auto& rows : composite_tables(domain)) add_rows(forms, domain, rows);
  }
  std::ranges::sort(forms, {}, [](const CompositeForm& form) {
    return std::tuple(form.domain, form.op, form.from);
  });
  return forms;
}

}  // namespace trainscope
