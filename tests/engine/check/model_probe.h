// Gradients of small models, given as ONNX text, by f64 central differences of
// sum(cotangent * output).
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compile.h"

namespace trainscope::test {

using TensorsByName = std::map<std::string, Tensor>;

// A model of one node or a few.
struct ModelCase {
  std::string_view name;
  std::string_view opsets;
  std::string_view inputs;
  std::string_view outputs;
  std::string_view node;
  std::string_view known = {};  // initializers
};

inline constexpr std::string_view kMicrosoftOpsets = R"("" : 17, "com.microsoft" : 1)";

std::string text_of(const ModelCase& model_case);

// A model whose float inputs are drawn, with sum(cotangent * output) of its float outputs as its
// loss.
class ModelProbe {
 public:
  explicit ModelProbe(const ModelCase& model_case);

  std::vector<std::string> float_inputs() const;
  // By these inputs at once, after all passes; one that no gradient flows to has zeros.
  TensorsByName gradients(const std::vector<std::string>& inputs) const;
  // Relative L2 difference of a gradient by `input` and central differences, element by element.
  double error(const std::string& input, const Tensor& gradient) const;

 private:
  void add_data(ValueId v);
  double loss(const TensorsByName& data) const;
  TensorsByName bound_in(const Graph& graph) const;

  Evaluate evaluate_;
  OnnxModel model_;
  Graph graph_;
  TensorsByName data_;
};

// |a - b| / |b|, of all elements.
double relative_difference(const Tensor& a, const Tensor& b);

// Some of the float inputs of a model.
using InputSubset = std::vector<std::string>;

// Checks the gradients of each case by all its float inputs at once against differences, and those
// by each of the subsets alone against these. Tells how many there were and the largest error.
void check_gradients(
    std::span<const ModelCase> cases,
    const std::function<std::vector<InputSubset>(const InputSubset& all)>& subsets_of);

}  // namespace trainscope::test
