// Every tensor of a batch against the dimensions that the model declares for it.
#include "engine/check/batch_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

using Dims = std::vector<ModelDim>;

Ints dims_of(const Tensor& tensor) {
  const auto span = tensor.shape().span();
  return {span.begin(), span.end()};
}

std::string declared_text(const Dims& dims) {
  std::vector<std::string> sizes;
  for (const ModelDim& dim : dims) {
    sizes.push_back(dim.size             ? std::to_string(*dim.size)
                    : dim.symbol.empty() ? "?"
                                         : printable(dim.symbol));
  }
  return fmt::format("[{}]", join(sizes, ","));
}

// The dimensions of the labels as far as the model declares the output that the loss reads.
std::optional<Dims> label_dims(const OnnxModel& model, const LossOptions& loss) {
  const std::vector<ModelTensor>& outputs = model.outputs();
  const auto scored = std::ranges::find_if(outputs, [&loss](const ModelTensor& output) {
    return loss.output.empty() || output.name == loss.output;
  });
  if (loss.kind == LossKind::kOutput || scored == outputs.end() || !scored->dims) return {};
  Dims dims = *scored->dims;
  if (!is_by_class(loss.kind)) return dims;
  const std::int64_t rank = std::ssize(dims);
  const std::int64_t axis = loss.class_axis + (loss.class_axis < 0 ? rank : 0);
  if (axis < 0 || axis >= rank) return {};  // refused with the graph at hand: passes/loss.cpp
  dims.erase(dims.begin() + axis);
  return dims;
}

class SizesOfBatch {
 public:
  void take(const std::string& name, const Tensor& tensor, const Dims& declared) {
    const Ints dims = dims_of(tensor);
    require(dims.size() == declared.size(), ErrorCode::kBadInput,
            "tensor '{}' is {}, the model has {} dimensions there: {}", printable(name),
            type_text(tensor.type()), declared.size(), declared_text(declared));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const ModelDim& dim = declared[i];
      require(!dim.size || *dim.size == dims[i], ErrorCode::kBadInput,
              "tensor '{}' is {}, the model has {} there: dimension {} differs", printable(name),
              type_text(tensor.type()), declared_text(declared), i);
      if (!dim.size && !dim.symbol.empty()) bind(dim.symbol, dims[i], name);
    }
  }

  const std::int64_t* find(const std::string& symbol) const {
    const auto found = sizes_.find(symbol);
    return found == sizes_.end() ? nullptr : &found->second.size;
  }

 private:
  struct Bound {
    std::int64_t size = 0;
    std::string tensor;
  };

  void bind(const std::string& symbol, std::int64_t size, const std::string& tensor) {
    const auto [place, fresh] = sizes_.emplace(symbol, Bound{.size = size, .tensor = tensor});
    const Bound& bound = place->second;
    require(fresh || bound.size == size, ErrorCode::kBadInput,
            "dimension '{}' of the model is {} in tensor '{}', but {} in '{}'", printable(symbol),
            bound.size, printable(bound.tensor), size, printable(tensor));
  }

  std::map<std::string, Bound> sizes_;  // by symbol
};

const Tensor* find_tensor(const Batch& batch, std::string_view name) {
  const auto found = std::ranges::find(
      batch.tensors, name, [](const auto& named) { return std::string_view(named.first); });
  return found == batch.tensors.end() ? nullptr : &found->second;
}

// An input that the batch does not hold: its symbols by the other tensors.
void bind_absent(const ModelTensor& input, const SizesOfBatch& sizes, ImportOptions& import,
                 std::vector<std::string>& open) {
  if (!input.dims) {
    open.push_back(fmt::format("input '{}': even the number of dimensions", printable(input.name)));
    return;
  }
  for (std::size_t i = 0; i < input.dims->size(); ++i) {
    const ModelDim& dim = (*input.dims)[i];
    const std::int64_t* size = sizes.find(dim.symbol);
    if (dim.size) continue;
    if (size != nullptr) {
      import.dims.emplace(dim.symbol, *size);
    } else {
      open.push_back(fmt::format("input '{}': dimension {}{}", printable(input.name), i,
                                 dim.symbol.empty() ? "" : " '" + printable(dim.symbol) + "'"));
    }
  }
}

}  // namespace

void bind_batch_sizes(const OnnxModel& model, const LossOptions& loss, const Batch& batch,
                      ImportOptions& import) {
  SizesOfBatch sizes;
  for (const ModelTensor& input : model.inputs()) {
    const Tensor* tensor = find_tensor(batch, input.name);
    if (tensor == nullptr) continue;
    if (input.dims) sizes.take(input.name, *tensor, *input.dims);
    import.shapes.emplace(input.name, dims_of(*tensor));
  }
  for (const LossOptions* term : terms_of_loss(loss)) {
    const Tensor* labels = find_tensor(batch, term->labels);
    const std::optional<Dims> declared = label_dims(model, *term);
    if (labels != nullptr && declared) sizes.take(term->labels, *labels, *declared);
  }

  std::vector<std::string> open;
  for (const ModelTensor& input : model.inputs()) {
    if (!import.shapes.contains(input.name)) bind_absent(input, sizes, import, open);
  }
  if (open.empty()) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("the batch's tensors leave sizes of the model's inputs open:\n  {}",
                          join(open, "\n  ")))
      .hint("add a tensor batch.N:INPUT to the file for each of them");
}

void require_inputs(const Executor& executor, const OnnxModel& model, const LossOptions& loss,
                    const Batch& batch) {
  std::vector<std::string> names;
  for (const ModelTensor& input : model.inputs()) names.push_back(input.name);
  for (const LossOptions* term : terms_of_loss(loss)) names.push_back(term->labels);
  for (const std::string& name : names) {
    require(find_tensor(batch, name) != nullptr || !executor.has(name), ErrorCode::kBadInput,
            "the batch holds no tensor '{}', which the step reads", printable(name));
  }
}

}  // namespace trainscope
