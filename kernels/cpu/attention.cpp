// Attention by blocks of queries: the scores of a block with all its keys, their softmax, its
// product with the values. Blocks of different heads run on different threads.
#include "kernels/cpu/attention.h"

#include <cmath>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_sums.h"
#include "kernels/cpu/vector_math.h"

namespace trainscope::cpu {

AttentionSizes attention_sizes(const Params& params, std::span<const TensorView> inputs) {
  const auto& attention = std::get<AttentionParams>(params);
  const Shape& q = inputs[0].shape();
  return {.batch = q[0],
          .tokens = q[1],
          .keys = attention.packed ? q[1] : inputs[1].shape()[1],
          .heads = attention.heads,
          .kv_heads = attention.kv_heads,
          .width = q[3],
          .causal = attention.causal};
}

namespace {

// Bytes of one thread: the scores of a block, then what products need.
template <typename T>
std::size_t score_bytes(const AttentionSizes& sizes) {
  return round_up_to_line(static_cast<std::size_t>(sizes.block_rows() * sizes.keys) * sizeof(T));
}
template <typename T>
std::size_t slot_bytes(const AttentionSizes& sizes) {
  return score_bytes<T>(sizes) + product_scratch_bytes<T>(sizes);
}

// A unit of work is a block of queries of one head.
std::int64_t work_items(const AttentionSizes& sizes) {
  return sizes.batch * sizes.heads * sizes.blocks();
}

template <typename T>
Prepared prepare_attention(const PrepareArgs& args) {
  const AttentionSizes sizes = attention_sizes(args.params, args.inputs);
  const auto slots = static_cast<std::size_t>(
      std::clamp<std::int64_t>(work_items(sizes), 0, std::max(1, args.threads)));
  return {.workspace_bytes = slots * slot_bytes<T>(sizes), .state = nullptr};
}

// Scores become exp(score - largest); returns log(sum of exp(scores)). A row of -inf gives NaN.
template <typename T>
T exponentials(T* scores, std::int64_t keys, T& inverse_sum) {
  const T largest = largest_of(scores, keys);
  const double sum =
      sum_of<T>(keys, [=](std::int64_t j) { return scores[j] = vector_exp(scores[j] - largest); });
  inverse_sum = static_cast<T>(1.0 / sum);
  return static_cast<T>(static_cast<double>(largest) + std::log(sum));
}

template <typename T>
class Forward {
 public:
  explicit Forward(const RunArgs& args)
      : args_(args),
        sizes_(attention_sizes(args.params, args.inputs)),
        bias_(bias_of<T>(args.inputs)) {
    if (args.outputs.size() > 1 && args.outputs[1].present) log_sum_ = args.outputs[1].as<T>();
  }

  void run() const {
    const std::int64_t items = work_items(sizes_);
    const std::int64_t slots = std::min<std::int64_t>(items, std::max(1, args_.threads));
    parallel_for(args_.threads, slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* scratch = static_cast<std::byte*>(args_.workspace) +
                             static_cast<std::size_t>(slot) * slot_bytes<T>(sizes_);
        // Every slots-th one: blocks at the end of a causal head are the longer ones.
        for (std::int64_t item = slot; item < items; item += slots) run_item(item, scratch);
      }
    });
  }

 private:
  void run_item(std::int64_t item, std::byte* scratch) const {
    const std::int64_t block = item % sizes_.blocks();
    const std::int64_t head = item / sizes_.blocks() % sizes_.heads;
    const std::int64_t batch = item / sizes_.blocks() / sizes_.heads;
    const HeadTriple<const T> from = head_triple<const T>(args_.params, args_.inputs, batch, head);
    const ScoreBlock<T> scores_of{.sizes = sizes_,
                                  .q = from.q,
                                  .k = from.k,
                                  .bias = bias_,
                                  .batch = batch,
                                  .head = head,
                                  .begin = block * kQueryBlock,
                                  .end = std::min(sizes_.tokens, (block + 1) * kQueryBlock)};
    auto* scores = reinterpret_cast<T*>(scratch);
    std::byte* packing = scratch + score_bytes<T>(sizes_);
    scores_of.compute(static_cast<T>(std::get<AttentionParams>(args_.params).scale), scores,
                      packing);
    const HeadRows<T> y = head_rows(args_.outputs[0].as<T>(), args_.outputs[0].shape(), batch, head)
                              .from(scores_of.begin);
    const std::int64_t rows = scores_of.end - scores_of.begin;
    T inverse_sums[kQueryBlock];
    for (std::int64_t i = 0; i < rows; ++i) {
      const T log_sum = exponentials(scores + i * sizes_.keys, scores_of.keys(), inverse_sums[i]);
      if (log_sum_ != nullptr) {
        log_sum_[(batch * sizes_.heads + head) * sizes_.tokens + scores_of.begin + i] = log_sum;
      }
    }
    multiply<T>({.m = rows, .n = sizes_.width, .k = scores_of.keys()},
                {.a = scores,
                 .a_row = sizes_.keys,
                 .a_column = 1,
                 .b = from.v.data,
                 .b_row = from.v.row,
                 .b_column = 1,
                 .c = y.data,
                 .c_row = y.row},
                packing);
    for (std::int64_t i = 0; i < rows; ++i) {
      T* row = y.from(i).data;
      for (std::int64_t d = 0; d < sizes_.width; ++d) row[d] *= inverse_sums[i];
    }
  }

  const RunArgs& args_;
  AttentionSizes sizes_;
  Bias<T> bias_;
  T* log_sum_ = nullptr;  // [batch, heads, tokens]
};

template <typename T>
void run_attention(const RunArgs& args) {
  Forward<T>(args).run();
}

}  // namespace

void add_attention(KernelTable& table) {
  table.add(
      "Attention", DType::kF32,
      {.name = "attention.own", .prepare = prepare_attention<float>, .run = run_attention<float>});
  table.add("Attention", DType::kF64,
            {.name = "attention.own",
             .prepare = prepare_attention<double>,
             .run = run_attention<double>});
  add_attention_grad(table);
}

}  // namespace trainscope::cpu
