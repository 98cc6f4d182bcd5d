// f32 of a run to f64 of its definition, [1,10] to [10].
#include "engine/bisect/typed_inputs.h"

#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

Tensor fitted(const Tensor& tensor, const TensorType& type) {
  Tensor same = tensor.dtype() == type.dtype ? tensor : convert(tensor, type.dtype);
  return std::move(same).reshaped(type.shape);
}

std::map<std::string, Tensor> typed_for(const Graph& graph,
                                        const std::map<std::string, Tensor>& given) {
  std::map<std::string, Tensor> result;
  for (const auto& [name, tensor] : given) {
    const ValueId id = graph.find(name);
    if (id == kNoValue || graph.value(id).kind == ValueKind::kNode) continue;
    const TensorType& type = graph.value(id).type;
    require(tensor.elements() == type.elements(), ErrorCode::kBadInput,
            "'{}' has {} elements in the run, {} in the model", printable(name), tensor.elements(),
            type.elements());
    result.emplace(name, fitted(tensor, type));
  }
  return result;
}

}  // namespace trainscope
