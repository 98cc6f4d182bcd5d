// The gradient of attention: the weights of a block of queries are computed again from its scores
// and their log-sums, as in Dao et al., "FlashAttention" (2022). The heads that share keys and
// values are one unit of work, which adds to dk and dv block by block.
#include "kernels/cpu/attention.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_sums.h"
#include "kernels/cpu/vector_math.h"

namespace trainscope::cpu {
namespace {

constexpr std::size_t kForward = 3;  // inputs dy, y and log_sum come before those of Attention

// Bytes of one thread: weights and their gradients of a block, then what products need.
template <typename T>
std::size_t block_bytes(const AttentionSizes& sizes) {
  return round_up_to_line(static_cast<std::size_t>(sizes.block_rows() * sizes.keys) * sizeof(T));
}
template <typename T>
std::size_t slot_bytes(const AttentionSizes& sizes) {
  return 2 * block_bytes<T>(sizes) + product_scratch_bytes<T>(sizes);
}

template <typename T>
Prepared prepare_grad(const PrepareArgs& args) {
  const AttentionSizes sizes = attention_sizes(args.params, args.inputs.subspan(kForward));
  const auto slots = static_cast<std::size_t>(
      std::clamp<std::int64_t>(sizes.batch * sizes.kv_heads, 0, std::max(1, args.threads)));
  return {.workspace_bytes = slots * slot_bytes<T>(sizes), .state = nullptr};
}

template <typename T>
class Backward {
 public:
  explicit Backward(const RunArgs& args)
      : args_(args),
        forward_(args.inputs.subspan(kForward)),
        sizes_(attention_sizes(args.params, forward_)),
        bias_(bias_of<T>(forward_)),
        scale_(static_cast<T>(std::get<AttentionParams>(args.params).scale)) {}

  void run() const {
    if (sizes_.tokens == 0) return clear_shared();
    const std::int64_t groups = sizes_.batch * sizes_.kv_heads;
    const std::int64_t slots = std::min<std::int64_t>(groups, std::max(1, args_.threads));
    parallel_for(args_.threads, slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* scratch = static_cast<std::byte*>(args_.workspace) +
                             static_cast<std::size_t>(slot) * slot_bytes<T>(sizes_);
        for (std::int64_t group = slot; group < groups; group += slots) run_group(group, scratch);
      }
    });
  }

 private:
  // A block of queries of one head.
  struct Block {
    std::int64_t batch = 0;
    std::int64_t head = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t keys = 0;
    bool first = false;  // of those that share dk and dv
    HeadTriple<const T> x = {};
    HeadTriple<T> dx = {};
    HeadRows<const T> dy = {};
    T* weights = nullptr;  // [rows, sizes.keys]
    T* dscores = nullptr;
    std::byte* packing = nullptr;

    std::int64_t rows() const { return end - begin; }
  };

  // Without queries nothing is added to dk and dv.
  void clear_shared() const {
    for (const TensorView& output : args_.outputs) {
      if (!output.present) continue;
      std::fill_n(output.as<T>(), output.elements(), T{0});
    }
  }

  // The last block of a causal head sees all keys: it writes every row of dk and dv.
  void run_group(std::int64_t group, std::byte* scratch) const {
    const std::int64_t per_group = sizes_.heads / sizes_.kv_heads;
    Block block{.batch = group / sizes_.kv_heads, .first = true};
    block.weights = reinterpret_cast<T*>(scratch);
    block.dscores = reinterpret_cast<T*>(scratch + block_bytes<T>(sizes_));
    block.packing = scratch + 2 * block_bytes<T>(sizes_);
    for (std::int64_t h = 0; h < per_group; ++h) {
      block.head = group % sizes_.kv_heads * per_group + h;
      block.x = head_triple<const T>(args_.params, forward_, block.batch, block.head);
      block.dx = head_triple<T>(args_.params, args_.outputs, block.batch, block.head);
      block.dy = head_rows(args_.inputs[0].as<const T>(), args_.inputs[0].shape(), block.batch,
                           block.head);
      for (std::int64_t i = sizes_.blocks(); i-- > 0;) {
        block.begin = i * kQueryBlock;
        block.end = std::min(sizes_.tokens, block.begin + kQueryBlock);
        block.keys = sizes_.causal ? block.end : sizes_.keys;
        run_block(block);
        block.first = false;
      }
    }
  }

  void run_block(const Block& block) const {
    find_weights(block);
    // dv += weights' dy
    add_by_key(block, block.weights, block.dy, block.dx.v);
    find_score_gradients(block);
    // dk += dscores' q, then dq, which may take over the bytes of q or of dy.
    add_by_key(block, block.dscores, block.x.q, block.dx.k);
    if (block.dx.q.data == nullptr) return;
    multiply<T>({.m = block.rows(), .n = sizes_.width, .k = block.keys},
                {.a = block.dscores,
                 .a_row = sizes_.keys,
                 .a_column = 1,
                 .b = block.x.k.data,
                 .b_row = block.x.k.row,
                 .b_column = 1,
                 .c = block.dx.q.from(block.begin).data,
                 .c_row = block.dx.q.row},
                block.packing);
  }

  // weights[i, j] = exp(score - log_sum)
  void find_weights(const Block& block) const {
    const ScoreBlock<T> scores{.sizes = sizes_,
                               .q = block.x.q,
                               .k = block.x.k,
                               .bias = bias_,
                               .batch = block.batch,
                               .head = block.head,
                               .begin = block.begin,
                               .end = block.end};
    scores.compute(scale_, block.weights, block.packing);
    const T* log_sums = args_.inputs[2].as<const T>() +
                        (block.batch * sizes_.heads + block.head) * sizes_.tokens + block.begin;
    for (std::int64_t i = 0; i < block.rows(); ++i) {
      T* row = block.weights + i * sizes_.keys;
      const T log_sum = log_sums[i];
      for (std::int64_t j = 0; j < block.keys; ++j) row[j] = vector_exp(row[j] - log_sum);
    }
  }

  // dscores = scale * weights * (dy v' - sum of dy * y)
  void find_score_gradients(const Block& block) const {
    multiply<T>({.m = block.rows(), .n = block.keys, .k = sizes_.width},
                {.a = block.dy.from(block.begin).data,
                 .a_row = block.dy.row,
                 .a_column = 1,
                 .b = block.x.v.data,
                 .b_row = 1,
                 .b_column = block.x.v.row,
                 .c = block.dscores,
                 .c_row = sizes_.keys},
                block.packing);
    const HeadRows<const T> y =
        head_rows(args_.inputs[1].as<const T>(), args_.inputs[1].shape(), block.batch, block.head)
            .from(block.begin);
    for (std::int64_t i = 0; i < block.rows(); ++i) {
      const T* dy_row = block.dy.from(block.begin + i).data;
      const T* y_row = y.from(i).data;
      const auto shift = static_cast<T>(
          sum_of<T>(sizes_.width, [=](std::int64_t d) { return dy_row[d] * y_row[d]; }));
      const T* weights = block.weights + i * sizes_.keys;
      T* row = block.dscores + i * sizes_.keys;
      for (std::int64_t j = 0; j < block.keys; ++j) {
        row[j] = scale_ * weights[j] * (row[j] - shift);
      }
    }
  }

  // to[j] (+)= sum over the block's queries i of by_query[i, j] * rows[i]
  void add_by_key(const Block& block, const T* by_query, const HeadRows<const T>& rows,
                  const HeadRows<T>& to) const {
    if (to.data == nullptr) return;
    multiply<T>({.m = block.keys, .n = sizes_.width, .k = block.rows()},
                {.a = by_query,
                 .a_row = 1,
                 .a_column = sizes_.keys,
                 .b = rows.from(block.begin).data,
                 .b_row = rows.row,
                 .b_column = 1,
                 .c = to.data,
                 .c_row = to.row,
                 .d = block.first ? nullptr : to.data,
                 .d_row = to.row,
                 .d_column = 1,
                 .beta = 1},
                block.packing);
  }

  const RunArgs& args_;
  std::span<const TensorView> forward_;  // the inputs of Attention
  AttentionSizes sizes_;
  Bias<T> bias_;
  T scale_;
};

template <typename T>
void run_grad(const RunArgs& args) {
  Backward<T>(args).run();
}

}  // namespace

void add_attention_grad(KernelTable& table) {
  table.add("AttentionGrad", DType::kF32,
            {.name = "attention_grad.own", .prepare = prepare_grad<float>, .run = run_grad<float>});
  table.add(
      "AttentionGrad", DType::kF64,
      {.name = "attention_grad.own", .prepare = prepare_grad<double>, .run = run_grad<double>});
}

}  // namespace trainscope::cpu
