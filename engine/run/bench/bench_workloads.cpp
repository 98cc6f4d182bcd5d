// One row a workload; bench/torch_peer.py holds the same ones for PyTorch.
#include "engine/run/bench/bench_workloads.h"

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

OptimizerOptions sgd() { return {.kind = OptimizerKind::kSgd, .momentum = 0.9, .groups = {}}; }

OptimizerOptions adamw() {
  return {.kind = OptimizerKind::kAdamW,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .epsilon = 1e-8,
          .weight_decay = 0.1,
          .decay_matrices_only = true,
          .groups = {}};
}

struct Examples {
  std::int64_t batch, sequence;
};

BenchWorkload gpt2_124m(std::string_view name, std::string_view about, const Examples& examples) {
  return {.name = name,
          .about = about,
          .model = "gpt2",
          .arguments = {{"size", std::string("124M")}, {"vocab", 50304}, {"context", 1024}},
          .batch = examples.batch,
          .sequence = examples.sequence,
          .optimizer = adamw(),
          .learning_rate = 3e-4};
}

}  // namespace

const std::vector<BenchWorkload>& bench_workloads() {
  static const std::vector<BenchWorkload> kWorkloads = {
      {.name = "w1-sgd",
       .about = "MLP 784-512-512-10, batch 128, SGD with momentum",
       .model = "mlp",
       .arguments = {{"dims", Ints{784, 512, 512, 10}}},
       .batch = 128,
       .optimizer = sgd(),
       .learning_rate = 0.01},
      {.name = "w1-adamw",
       .about = "MLP 784-512-512-10, batch 128, AdamW",
       .model = "mlp",
       .arguments = {{"dims", Ints{784, 512, 512, 10}}},
       .batch = 128,
       .optimizer = adamw(),
       .learning_rate = 3e-4},
      {.name = "w2-lenet",
       .about = "LeNet-5 on 32x32, batch 32, AdamW",
       .model = "lenet",
       .batch = 32,
       .optimizer = adamw(),
       .learning_rate = 3e-4},
      {.name = "w2-resnet18",
       .about = "ResNet-18 on 3x32x32, batch 32, AdamW",
       .model = "resnet",
       .arguments = {{"size", std::string("18-cifar")}},
       .batch = 32,
       .optimizer = adamw(),
       .learning_rate = 3e-4},
      {.name = "w3",
       .about = "character GPT, 6 layers, width 384, batch 12, 256 tokens, AdamW",
       .model = "gpt2",
       .arguments = {{"layers", 6},
                     {"heads", 6},
                     {"embedding", 384},
                     {"vocab", 65},
                     {"bias", false},
                     {"activation", std::string("gelu")}},
       .batch = 12,
       .sequence = 256,
       .optimizer = adamw(),
       .learning_rate = 3e-4},
      gpt2_124m("w4", "GPT-2 124M, batch 4, 64 tokens, AdamW", {.batch = 4, .sequence = 64}),
      gpt2_124m("w4-b1t256", "the same, batch 1, 256 tokens", {.batch = 1, .sequence = 256}),
      gpt2_124m("w4-b4t256", "the same, batch 4, 256 tokens", {.batch = 4, .sequence = 256}),
      {.name = "w5",
       .about = "BERT, 4 layers, width 768, batch 8, 128 tokens, AdamW",
       .model = "bert",
       .arguments = {{"layers", 4}, {"context", 512}, {"dropout", 0.1}},
       .batch = 8,
       .sequence = 128,
       .optimizer = adamw(),
       .learning_rate = 3e-4,
       .kinds = {{"segments", 2}},
       .labelled = 0.15},
      {.name = "w6-lstm",
       .about = "language model of 2 LSTM layers, width 512, batch 16, 128 tokens, AdamW",
       .model = "lstm",
       .batch = 16,
       .sequence = 128,
       .optimizer = adamw(),
       .learning_rate = 3e-4},
  };
  return kWorkloads;
}

const BenchWorkload& find_workload(std::string_view name) {
  const std::vector<BenchWorkload>& all = bench_workloads();
  const auto found = std::ranges::find(all, name, &BenchWorkload::name);
  if (found != all.end()) return *found;
  std::vector<std::string_view> names;
  for (const BenchWorkload& each : all) names.push_back(each.name);
  std::string hint = nearest_hint(name, names);
  if (hint.empty()) hint = "one of " + join(names, ", ");
  throw Error(ErrorCode::kUsage, fmt::format("there is no workload '{}'", printable(name)))
      .hint(std::move(hint));
}

}  // namespace trainscope
