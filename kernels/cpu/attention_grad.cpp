// The gradient of attention: the weights of a block of queries are computed again from its scores
// and the statistics of their rows, as in Dao et al., "FlashAttention" (2022). The heads that share
// keys and values are one unit of work, which adds to dk and dv block by block.
#include "kernels/cpu/attention.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_sums.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/widened.h"

namespace trainscope::cpu {
namespace {

constexpr std::size_t kForward =
    3;  // inputs dy, y and the statistics come before those of Attention

std::int64_t groups_of(const AttentionSizes& sizes) { return sizes.batch * sizes.kv_heads; }
std::int64_t slots_of(const AttentionSizes& sizes, int threads) {
  return std::clamp<std::int64_t>(groups_of(sizes), 0, std::max(1, threads));
}

template <typename T>
std::size_t product_bytes(const AttentionSizes& sizes) {
  const std::int64_t rows = sizes.block_rows();
  return std::max({packed_product_bytes<T>(rows, sizes.width),
                   packed_product_bytes<T>(rows, sizes.keys),
                   packed_product_bytes<T>(sizes.keys, rows)});
}

// Of one thread: k both ways and v of a head, weights and their gradients of a block, its rows of q
// or dy, copies in other digits (scores of a block, sums of dq, dk and dv), then what products
// need.
template <typename T>
std::size_t slot_bytes(const AttentionSizes& sizes) {
  return 2 * PackedB<T>::bytes(sizes.width, sizes.keys) +
         PackedB<T>::bytes(sizes.keys, sizes.width) + 2 * score_bytes<T>(sizes) +
         PackedB<T>::bytes(sizes.block_rows(), sizes.width) +
         copy_bytes<T, T>(sizes.block_rows(), score_row<T>(sizes)) +
         copy_bytes<T, Computed<T>>(sizes.block_rows(), sizes.width) +
         2 * copy_bytes<T, Computed<T>>(sizes.keys, sizes.width) + product_bytes<T>(sizes);
}

template <typename T>
Prepared prepare_grad(const PrepareArgs& args) {
  const AttentionSizes sizes = attention_sizes(args.params, args.inputs.subspan(kForward));
  return {.workspace_bytes =
              static_cast<std::size_t>(slots_of(sizes, args.threads)) * slot_bytes<T>(sizes),
          .state = nullptr};
}

template <typename T>
class Backward {
 public:
  using Number = Computed<T>;

  explicit Backward(const RunArgs& args)
      : args_(args),
        forward_(args.inputs.subspan(kForward)),
        sizes_(attention_sizes(args.params, forward_)),
        bias_(bias_of<Number>(forward_)),
        mask_(mask_of(args.params, forward_)),
        to_next_(score_row<T>(sizes_)),
        scale_(static_cast<Number>(std::get<AttentionParams>(args.params).scale)) {}

  void run() const {
    if (sizes_.tokens == 0) return clear_shared();
    const std::int64_t slots = slots_of(sizes_, args_.threads);
    parallel_for(args_.threads, slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* scratch = static_cast<std::byte*>(args_.workspace) +
                             static_cast<std::size_t>(slot) * slot_bytes<T>(sizes_);
        for (std::int64_t group = slot; group < groups_of(sizes_); group += slots) {
          run_group(group, scratch);
        }
      }
    });
  }

 private:
  // What the heads of a group share, as products read it.
  struct Group {
    std::int64_t batch = 0;
    PackedB<T> keys;            // [width, keys]
    PackedB<T> values;          // [width, keys]
    PackedB<T> keys_by_row;     // [keys, width]
    Number* weights = nullptr;  // [rows, to_next_]
    Number* dscores = nullptr;  // [rows, to_next_]
    Packed<T>* rows_packed = nullptr;
    T* rounded_scores = nullptr;
    Number* dq = nullptr;  // [rows, width]; of dk and dv [keys, width]
    Number* dk = nullptr;
    Number* dv = nullptr;
    Packed<T>* product_scratch = nullptr;
  };

  // A block of queries of one head.
  struct Block {
    std::int64_t head = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t keys = 0;
    bool first = false;  // of those that share dk and dv
    HeadTriple<const T> x = {};
    HeadTriple<T> dx = {};
    HeadRows<const T> dy = {};
    HeadRows<const T> y = {};

    std::int64_t rows() const { return end - begin; }
  };

  // Without queries nothing is added to dk and dv.
  void clear_shared() const {
    for (const TensorView& output : args_.outputs) {
      if (!output.present) continue;
      std::fill_n(output.as<T>(), output.elements(), T{0});
    }
  }

  Group packed_group(std::int64_t batch, std::int64_t head, std::byte* scratch) const {
    const HeadTriple<const T> x = head_triple<const T>(args_.params, forward_, batch, head);
    const std::size_t bytes = PackedB<T>::bytes(sizes_.width, sizes_.keys);
    Pieces pieces(scratch);
    return {
        .batch = batch,
        .keys = {{x.k.data, x.k.row, 1}, sizes_.width, sizes_.keys, pieces.take<Packed<T>>(bytes)},
        .values = {{x.v.data, x.v.row, 1},
                   sizes_.width,
                   sizes_.keys,
                   pieces.take<Packed<T>>(bytes)},
        .keys_by_row = {{x.k.data, 1, x.k.row},
                        sizes_.keys,
                        sizes_.width,
                        pieces.take<Packed<T>>(PackedB<T>::bytes(sizes_.keys, sizes_.width))},
        .weights = pieces.take<Number>(score_bytes<T>(sizes_)),
        .dscores = pieces.take<Number>(score_bytes<T>(sizes_)),
        .rows_packed = pieces.take<Packed<T>>(PackedB<T>::bytes(sizes_.block_rows(), sizes_.width)),
        .rounded_scores = pieces.take<T>(copy_bytes<T, T>(sizes_.block_rows(), to_next_)),
        .dq = pieces.take<Number>(copy_bytes<T, Number>(sizes_.block_rows(), sizes_.width)),
        .dk = pieces.take<Number>(copy_bytes<T, Number>(sizes_.keys, sizes_.width)),
        .dv = pieces.take<Number>(copy_bytes<T, Number>(sizes_.keys, sizes_.width)),
        .product_scratch = pieces.take<Packed<T>>(0)};
  }

  // The last block of a causal head sees all keys: it writes every row of dk and dv.
  void run_group(std::int64_t number, std::byte* scratch) const {
    const std::int64_t per_group = sizes_.heads / sizes_.kv_heads;
    const std::int64_t first_head = number % sizes_.kv_heads * per_group;
    const Group group = packed_group(number / sizes_.kv_heads, first_head, scratch);
    Block block{.first = true};
    for (block.head = first_head; block.head < first_head + per_group; ++block.head) {
      block.x = head_triple<const T>(args_.params, forward_, group.batch, block.head);
      block.dx = head_triple<T>(args_.params, args_.outputs, group.batch, block.head);
      block.dy = rows_of(0, group.batch, block.head);
      block.y = rows_of(1, group.batch, block.head);
      for (std::int64_t i = sizes_.blocks(); i-- > 0;) {
        block.begin = i * kQueryBlock;
        block.end = std::min(sizes_.tokens, block.begin + kQueryBlock);
        block.keys = sizes_.causal ? block.end : sizes_.keys;
        run_block(group, block);
        block.first = false;
      }
    }
    store_sums(group.dk, sizes_.keys, block.dx.k);
    store_sums(group.dv, sizes_.keys, block.dx.v);
  }

  // Where sums of products go: the result's rows, unless it has fewer digits.
  HeadRows<Number> sums_of(Number* copy, const HeadRows<T>& rows) const {
    if constexpr (kIsStoredOnly<T>) {
      return {copy, sizes_.width};
    } else {
      return rows;
    }
  }
  void store_sums(const Number* copy, std::int64_t rows, const HeadRows<T>& to) const {
    if constexpr (kIsStoredOnly<T>) {
      if (to.data == nullptr) return;
      for (std::int64_t i = 0; i < rows; ++i) {
        const Number* from = copy + i * sizes_.width;
        T* row = to.from(i).data;
        for (std::int64_t d = 0; d < sizes_.width; ++d) store(row[d], from[d]);
      }
    }
  }

  HeadRows<const T> rows_of(std::size_t input, std::int64_t batch, std::int64_t head) const {
    return head_rows(args_.inputs[input].as<const T>(), args_.inputs[input].shape(), batch, head);
  }

  void run_block(const Group& group, const Block& block) const {
    find_weights(group, block);
    find_score_gradients(group, block);
    // dv += weights' dy, those that dropout left
    add_by_key(group, block, group.weights, block.dy, block.dx.v, group.dv);
    // dk += dscores' q, then dq, which may take over the bytes of q or of dy.
    add_by_key(group, block, group.dscores, block.x.q, block.dx.k, group.dk);
    if (block.dx.q.data == nullptr) return;
    const HeadRows<T> dq = block.dx.q.from(block.begin);
    const HeadRows<Number> sums = sums_of(group.dq, dq);
    multiply<T>({.m = block.rows(), .n = sizes_.width, .k = block.keys},
                {.a = as_stored(group, block, group.dscores),
                 .a_row = to_next_,
                 .a_column = 1,
                 .c = sums.data,
                 .c_row = sums.row},
                group.keys_by_row, group.product_scratch);
    store_sums(group.dq, block.rows(), dq);
  }

  const T* as_stored(const Group& group, const Block& block, const Number* scores) const {
    return rounded<T>(scores, block.rows(), block.keys, to_next_, group.rounded_scores);
  }

  void find_weights(const Group& group, const Block& block) const {
    const ScoreBlock<T> scores{.sizes = sizes_,
                               .q = block.x.q,
                               .keys_packed = group.keys,
                               .bias = bias_,
                               .batch = group.batch,
                               .head = block.head,
                               .begin = block.begin,
                               .end = block.end};
    scores.compute(scale_, group.weights, group.product_scratch);
    const Number* statistics =
        args_.inputs[2].as<const Number>() +
        2 * ((group.batch * sizes_.heads + block.head) * sizes_.tokens + block.begin);
    for (std::int64_t i = 0; i < block.rows(); ++i) {
      Number* row = group.weights + i * to_next_;
      const RowStatistics<Number> of_row{.largest = statistics[2 * i],
                                         .inverse_sum = statistics[2 * i + 1]};
      for (std::int64_t j = 0; j < block.keys; ++j) {
        row[j] = vector_exp(row[j] - of_row.largest) * of_row.inverse_sum;
      }
    }
  }

  // dscores = scale * weights * (dy v' - sum of dy * y) where nothing drops out
  void find_score_gradients(const Group& group, const Block& block) const {
    multiply<T>({.m = block.rows(), .n = whole_tiles<T>(block.keys), .k = sizes_.width},
                {.a = block.dy.from(block.begin).data,
                 .a_row = block.dy.row,
                 .a_column = 1,
                 .c = group.dscores,
                 .c_row = to_next_},
                group.values, group.product_scratch);
    for (std::int64_t i = 0; i < block.rows(); ++i) {
      const T* dy_row = block.dy.from(block.begin + i).data;
      const T* y_row = block.y.from(block.begin + i).data;
      const auto shift = static_cast<Number>(sum_of<Number>(
          sizes_.width, [=](std::int64_t d) { return computed(dy_row[d]) * computed(y_row[d]); }));
      if (!mask_.keeps_all()) {
        drop(group, block, i, shift);
        continue;
      }
      const Number* weights = group.weights + i * to_next_;
      Number* row = group.dscores + i * to_next_;
      for (std::int64_t j = 0; j < block.keys; ++j) {
        row[j] = scale_ * weights[j] * (row[j] - shift);
      }
    }
  }

  // Of query i of the block: dscores = scale * (left * dy v' - weights * shift), where `left` are
  // the weights after dropout, and what becomes of `weights`.
  void drop(const Group& group, const Block& block, std::int64_t i, Number shift) const {
    Number* weights = group.weights + i * to_next_;
    Number* dscores = group.dscores + i * to_next_;
    const std::int64_t seen = sizes_.seen(block.begin + i);
    const std::int32_t threshold = mask_.threshold();
    const auto kept = static_cast<Number>(mask_.scale());
    const Number scale = scale_;
    mask_.for_each_piece(sizes_.first_weight(group.batch, block.head, block.begin + i), seen,
                         [=](const std::int32_t* words, std::int64_t begin, std::int64_t n) {
                           Number* weight = weights + begin;
                           Number* row = dscores + begin;
#pragma omp simd
                           for (std::int64_t j = 0; j < n; ++j) {
                             const Number left = DropoutMask::keeps(words[j], threshold)
                                                     ? weight[j] * kept
                                                     : Number{0};
                             row[j] = scale * (left * row[j] - weight[j] * shift);
                             weight[j] = left;
                           }
                         });
    std::fill(dscores + seen, dscores + block.keys, Number{0});
  }

  // to[j] (+)= sum over the block's queries i of by_query[i, j] * rows[i]
  void add_by_key(const Group& group, const Block& block, const Number* by_query,
                  const HeadRows<const T>& rows, const HeadRows<T>& result, Number* copy) const {
    if (result.data == nullptr) return;
    const HeadRows<Number> to = sums_of(copy, result);
    const PackedB<T> packed({rows.from(block.begin).data, 1, rows.row}, block.rows(), sizes_.width,
                            group.rows_packed);
    multiply<T>({.m = block.keys, .n = sizes_.width, .k = block.rows()},
                {.a = as_stored(group, block, by_query),
                 .a_row = 1,
                 .a_column = to_next_,
                 .c = to.data,
                 .c_row = to.row,
                 .d = block.first ? nullptr : to.data,
                 .d_row = to.row,
                 .d_column = 1,
                 .beta = 1},
                packed, group.product_scratch);
  }

  const RunArgs& args_;
  std::span<const TensorView> forward_;  // the inputs of Attention
  AttentionSizes sizes_;
  Bias<Number> bias_;
  DropoutMask mask_;
  std::int64_t to_next_;  // from one row of scores to the next
  Number scale_;
};

template <typename T>
void run_grad(const RunArgs& args) {
  Backward<T>(args).run();
}

bool supports_bf16(const PrepareArgs& args) {
  const auto forward = args.inputs.subspan(kForward);
  const bool bias_fits =
      forward.size() < 4 || !forward[3].present || forward[3].type.dtype == DType::kF32;
  return bias_fits && args.inputs[2].type.dtype == DType::kF32 && !gemm_tiles<BFloat16>().empty();
}

constexpr Kernel kAttentionGrad{
    .name = "attention_grad.own", .prepare = prepare_grad<float>, .run = run_grad<float>};

}  // namespace

void add_attention_grad(KernelTable& table) {
  table.add("AttentionGrad", DType::kF32, kAttentionGrad);
  add_widened<kAttentionGrad>(table, "AttentionGrad", "attention_grad.widened");
  table.add("AttentionGrad", DType::kBF16,
            {.name = "attention_grad.own",
             .supports = supports_bf16,
             .prepare = prepare_grad<BFloat16>,
             .run = run_grad<BFloat16>});
  table.add(
      "AttentionGrad", DType::kF64,
      {.name = "attention_grad.own", .prepare = prepare_grad<double>, .run = run_grad<double>});
}

}  // namespace trainscope::cpu
