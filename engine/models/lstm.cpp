// lstm: a language model of recurrent layers between an embedding and a linear head, as
// torch.nn.Embedding, torch.nn.LSTM and torch.nn.Linear start.
//
// The weights of a layer are ONNX's: W and R with the gates i, o, f, c one after the other, B those
// of W and then of R.
#include <fmt/format.h>

#include <cmath>

#include "engine/models/layers.h"
#include "engine/models/models.h"
#include "engine/models/plain_builder.h"

namespace trainscope {
namespace {

struct RecurrentCell {
  std::string_view name;  // of the option
  std::string_view op;    // of ONNX
  std::int64_t gates = 1;
};
constexpr RecurrentCell kCells[] = {{"lstm", "LSTM", 4}, {"gru", "GRU", 3}, {"rnn", "RNN", 1}};

const RecurrentCell& cell_named(std::string_view name) {
  for (const RecurrentCell& cell : kCells) {
    if (cell.name == name) return cell;
  }
  return kCells[0];  // the option's choices leave nothing else
}

// One layer over all steps: x [T, N, inputs] -> [T, N, hidden].
ValueName recurrent_layer(PlainBuilder& b, const std::string& path, const ValueName& x,
                          const RecurrentCell& cell, std::int64_t inputs, std::int64_t hidden) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  const std::int64_t columns = cell.gates * hidden;
  std::vector<ValueName> operands{x, b.uniform(path + ".W", Shape{1, columns, inputs}, bound),
                                  b.uniform(path + ".R", Shape{1, columns, hidden}, bound),
                                  b.uniform(path + ".B", Shape{1, 2 * columns}, bound)};
  Attributes attributes{{"hidden_size", hidden}};
  // As PyTorch and cuDNN have it: the product of the state is there before the gates are.
  if (cell.name == "gru") attributes.set("linear_before_reset", std::int64_t{1});
  b.set_scope(scope_of(path));
  const ValueName y = b.node(cell.op, cell.op, std::move(operands), std::move(attributes));
  return b.node("Squeeze", "one_direction", {y, b.ints({1})});
}

PlainModel build_lstm(const ModelArguments& arguments, std::uint64_t seed) {
  const auto integer = [&](std::string_view name) {
    return std::get<std::int64_t>(arguments.find(name)->second);
  };
  const std::int64_t embedding = integer("embedding");
  const std::int64_t hidden = integer("hidden");
  const std::int64_t vocab = integer("vocab");
  const RecurrentCell& cell = cell_named(std::get<std::string>(arguments.at("cell")));
  PlainBuilder b("lstm", seed);
  const ModelDim batch = symbolic("batch");
  const ModelDim sequence = symbolic("sequence");
  const ValueName ids = b.input("ids", DType::kI64, {batch, sequence});
  const ValueName by_step = b.node("Transpose", "by_step", {ids}, {{"perm", Ints{1, 0}}});
  const ValueName table = b.normal("embedding.weight", {vocab, embedding}, 1.0);
  ValueName x = b.node("Gather", "tokens", {table, by_step});  // [T, N, embedding]
  for (std::int64_t layer = 0; layer < integer("layers"); ++layer) {
    x = recurrent_layer(b, fmt::format("layers.{}", layer), x, cell,
                        layer == 0 ? embedding : hidden, hidden);
  }
  b.set_scope("");
  const ValueName by_example = b.node("Transpose", "by_example", {x}, {{"perm", Ints{1, 0, 2}}});
  dense(b, "head", by_example,
        {.inputs = hidden,
         .outputs = vocab,
         .weight = torch_default(hidden),
         .bias = torch_default(hidden),
         .result = "logits"});
  b.output("logits", {batch, sequence, fixed(vocab)});
  return b.take();
}

}  // namespace

ModelBuilder lstm_builder() {
  return {.name = "lstm",
          .doc = "Language model of recurrent layers; input ids [batch, sequence].",
          .options = {{.name = "layers", .doc = "recurrent ones", .value = 2, .maximum = 1000},
                      {.name = "embedding", .doc = "width of a token", .value = 512},
                      {.name = "hidden", .doc = "units of a layer", .value = 512},
                      {.name = "vocab", .doc = "different tokens", .value = 10000},
                      {.name = "cell",
                       .doc = "of the layers",
                       .value = std::string("lstm"),
                       .choices = {"lstm", "gru", "rnn"}}},
          .build = build_lstm};
}

}  // namespace trainscope
