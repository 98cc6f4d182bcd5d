// mlp: fully connected layers, as torch.nn.Sequential of Linear and an activation names them.
#include <fmt/format.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/models/activation.h"
#include "engine/models/models.h"
#include "engine/models/plain_builder.h"

namespace trainscope {
namespace {

// Weight [out, in] and bias [out], both uniform within 1 / sqrt(in): the default of
// torch.nn.Linear.
std::vector<ValueName> layer_inputs(PlainBuilder& b, const ValueName& x, const ValueName& layer,
                                    const Shape& weight, bool bias) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(weight[1]));
  std::vector<ValueName> inputs{x, b.uniform(layer + ".weight", weight, bound)};
  if (bias) inputs.push_back(b.uniform(layer + ".bias", Shape{weight[0]}, bound));
  return inputs;
}

PlainModel build_mlp(const ModelArguments& arguments, std::uint64_t seed) {
  const auto& dims = std::get<Ints>(arguments.at("dims"));
  const auto& kind = std::get<std::string>(arguments.at("activation"));
  const bool bias = std::get<bool>(arguments.at("bias"));
  const double dropout = std::get<double>(arguments.at("dropout"));
  require(dropout >= 0.0 && dropout < 1.0, ErrorCode::kUsage,
          "--dropout is {}, expected a number in [0, 1)", dropout);
  require(dims.size() >= 2, ErrorCode::kUsage,
          "--dims names {} layer size{}, expected the input's, any hidden ones and the output's",
          dims.size(), dims.size() == 1 ? "" : "s");
  PlainBuilder b("mlp", seed);
  ValueName x = b.input("x", DType::kF32, {symbolic("batch"), fixed(dims.front())});
  const Attributes transposed{{"transB", std::int64_t{1}}};
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
    const ValueName layer = std::to_string(2 * i);  // the activations between have the odd numbers
    std::vector<ValueName> inputs = layer_inputs(b, x, layer, Shape{dims[i + 1], dims[i]}, bias);
    if (i + 2 == dims.size()) {
      b.result("Gemm", "logits", std::move(inputs), transposed);
      break;
    }
    b.set_scope(layer);
    x = b.node("Gemm", "Gemm", std::move(inputs), transposed);
    b.set_scope(std::to_string(2 * i + 1));
    x = activation(b, kind, x);
    // Training turns it on, whatever the file says; elsewhere it changes nothing.
    if (dropout > 0.0) x = b.node("Dropout", "drop", {x, b.number(static_cast<float>(dropout))});
  }
  b.output("logits", {symbolic("batch"), fixed(dims.back())});
  return b.take();
}

}  // namespace

ModelBuilder mlp_builder() {
  return {.name = "mlp",
          .doc = "Fully connected layers with an activation between them; input x [batch, FIRST].",
          .options = {{.name = "dims",
                       .doc = "sizes: input, hidden layers, classes",
                       .value = Ints{784, 512, 512, 10}},
                      {.name = "activation",
                       .doc = "between the layers",
                       .value = std::string("relu"),
                       .choices = activation_names()},
                      {.name = "bias", .doc = "a bias in each layer", .value = true},
                      {.name = "dropout", .doc = "after each activation", .value = 0.0}},
          .build = build_mlp};
}

}  // namespace trainscope
