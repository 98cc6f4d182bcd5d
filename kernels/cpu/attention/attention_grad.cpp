// The gradient of attention: the weights of a block of queries are recomputed from its scores and
// the statistics of their rows, as in Dao et al., "FlashAttention" (2022). The heads that share
// keys and values are one unit of work, which adds to dk and dv block by block.
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/row_sums.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"
#include "kernels/cpu/support/vector_math.h"

namespace trainscope::cpu {
namespace {

constexpr std::size_t kForward =
    3;  // inputs dy, y and the statistics come before those of Attention

std::int64_t groups_of(const AttentionSizes& sizes) { return sizes.batch * sizes.kv_heads; }
std::int64_t slots_of(const AttentionSizes& sizes, int threads) {
  return std::clamp<std::int64_t>(groups_of(sizes), 0, std::max(1, threads));
}

// Bytes of the results of GEMMs before they are stored, where the outputs have fewer digits.
template <typename T>
std::size_t grad_sum_bytes(const AttentionSizes& sizes, std::int64_t rows) {
  return kIsStoredOnly<T> ? sum_bytes<T>(sizes, rows) : 0;
}
// A block's rows of q or dy as an A or a B, or its sums of dq, one after the other.
template <typename T>
std::size_t grad_block_bytes(const AttentionSizes& sizes) {
  return std::max({row_bytes<T>(sizes), PackedPanels<T>::bytes(sizes.block_rows(), sizes.width),
                   grad_sum_bytes<T>(sizes, sizes.block_rows())});
}

// Of one thread: k both ways and v of a head, weights and their gradients of a block, these
// rounded, sums of dk and dv, and what a block has.
template <typename T>
std::size_t slot_bytes(const AttentionSizes& sizes) {
  return 2 * PackedPanels<T>::bytes(sizes.width, sizes.keys) +
         PackedPanels<T>::bytes(sizes.keys, sizes.width) + score_bytes_by_key<T>(sizes) +
         score_bytes<T>(sizes) + rounded_bytes<T>(sizes) +
         2 * grad_sum_bytes<T>(sizes, sizes.keys) + grad_block_bytes<T>(sizes);
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
        sum_row_(sum_row<T>(sizes_)),
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
  // What the heads of a group share, packed as GEMMs read it.
  struct Group {
    std::int64_t batch = 0;
    PackedPanels<T> keys;         // [width, keys]
    PackedPanels<T> values;       // [width, keys]
    PackedPanels<T> keys_by_row;  // [keys, width]
    Number* weights = nullptr;    // [rows, to_next_]
    Number* dscores = nullptr;    // [rows, to_next_]
    Packed<T>* rounded = nullptr;
    Number* dk = nullptr;  // [keys, sum_row_]
    Number* dv = nullptr;
    std::byte* block = nullptr;  // rows of q or dy, then sums of dq [rows, sum_row_]

    Packed<T>* rows() const { return reinterpret_cast<Packed<T>*>(block); }
    Number* dq() const { return reinterpret_cast<Number*>(block); }
  };

  // The queries of one head.
  struct Head {
    std::int64_t number = 0;
    HeadTriple<const T> x = {};
    HeadTriple<T> dx = {};
    HeadRows<const T> dy = {};
    HeadRows<const T> y = {};
    bool first = false;  // of those that share dk and dv
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
    const std::size_t bytes = PackedPanels<T>::bytes(sizes_.width, sizes_.keys);
    const std::size_t by_row = PackedPanels<T>::bytes(sizes_.keys, sizes_.width);
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
                        pieces.take<Packed<T>>(by_row)},
        .weights = pieces.take<Number>(score_bytes_by_key<T>(sizes_)),
        .dscores = pieces.take<Number>(score_bytes<T>(sizes_)),
        .rounded = pieces.take<Packed<T>>(rounded_bytes<T>(sizes_)),
        .dk = pieces.take<Number>(grad_sum_bytes<T>(sizes_, sizes_.keys)),
        .dv = pieces.take<Number>(grad_sum_bytes<T>(sizes_, sizes_.keys)),
        .block = pieces.take<std::byte>(0)};
  }

  // The last block of a causal head sees all keys: it writes every row of dk and dv.
  void run_group(std::int64_t number, std::byte* scratch) const {
    const std::int64_t per_group = sizes_.heads / sizes_.kv_heads;
    const std::int64_t first_head = number % sizes_.kv_heads * per_group;
    const Group group = packed_group(number / sizes_.kv_heads, first_head, scratch);
    Head head{.first = true};
    for (head.number = first_head; head.number < first_head + per_group; ++head.number) {
      head.x = head_triple<const T>(args_.params, forward_, group.batch, head.number);
      head.dx = head_triple<T>(args_.params, args_.outputs, group.batch, head.number);
      head.dy = rows_of(0, group.batch, head.number);
      head.y = rows_of(1, group.batch, head.number);
      for (std::int64_t i = sizes_.blocks(); i-- > 0;) {
        const std::int64_t begin = i * kQueryBlock;
        run_block(group, head,
                  {.sizes = sizes_,
                   .bias = bias_,
                   .batch = group.batch,
                   .head = head.number,
                   .begin = begin,
                   .end = std::min(sizes_.tokens, begin + kQueryBlock)});
        head.first = false;
      }
    }
    store_sums(group.dk, sizes_.keys, head.dx.k);
    store_sums(group.dv, sizes_.keys, head.dx.v);
  }

  // Where results of GEMMs go: to the output's rows, unless it has fewer digits.
  HeadRows<Number> sums_of(Number* copy, const HeadRows<T>& result) const {
    if constexpr (kIsStoredOnly<T>) {
      return {copy, sum_row_};
    } else {
      return result;
    }
  }
  void store_sums(const Number* sums, std::int64_t rows, const HeadRows<T>& to) const {
    if constexpr (kIsStoredOnly<T>) {
      if (to.data == nullptr) return;
      for (std::int64_t i = 0; i < rows; ++i) {
        const Number* from = sums + i * sum_row_;
        T* row = to.from(i).data;
        for (std::int64_t d = 0; d < sizes_.width; ++d) store(row[d], from[d]);
      }
    }
  }

  HeadRows<const T> rows_of(std::size_t input, std::int64_t batch, std::int64_t head) const {
    return head_rows(args_.inputs[input].as<const T>(), args_.inputs[input].shape(), batch, head);
  }

  void run_block(const Group& group, const Head& head, const ScoreBlock<T>& block) const {
    block.multiply_by_key(head.x.q, group.keys, scale_, group.rows(), group.weights);
    block.multiply_by_key(head.dy, group.values, 1, group.rows(), group.dscores);
    for (std::int64_t i = 0; i < block.rows(); ++i) finish_row(group, head, block, i);
    // dv += weights' dy, those that dropout left
    if (head.dx.v.data != nullptr) {
      add_by_key(group, head, block, group.weights, head.dy, sums_of(group.dv, head.dx.v));
    }
    // dk += dscores' q, then dq, which may take over the bytes of q or of dy.
    if (head.dx.k.data != nullptr) {
      add_by_key(group, head, block, group.dscores, head.x.q, sums_of(group.dk, head.dx.k));
    }
    if (head.dx.q.data == nullptr) return;
    PanelGemm<T> gemm =
        sums_by_query<T>(group.dscores, block.rows(), block.keys(), to_next_, group.rounded);
    const HeadRows<T> dq = head.dx.q.from(block.begin);
    const HeadRows<Number> sums = sums_of(group.dq(), dq);
    gemm.n = sizes_.width;
    gemm.c = sums.data;
    gemm.c_row = sums.row;
    gemm.unseen = block.unseen(Unseen::kKeys);
    gemm.first = block.begin;
    multiply(gemm, group.keys_by_row);
    store_sums(group.dq(), block.rows(), dq);
  }

  // Towards L1 while weights are computed: rows of the next block, and those that are written.
  void fetch_ahead(const Head& head, std::int64_t query) const {
    const std::int64_t next = std::max<std::int64_t>(0, query - kQueryBlock);
    prefetch_row(head.x.q.from(next).data, sizes_.width);
    prefetch_row(head.dy.from(next).data, sizes_.width);
    prefetch_row(head.y.from(next).data, sizes_.width);
    if (head.dx.q.data != nullptr) prefetch_row(head.dx.q.from(query).data, sizes_.width);
  }

  // The scores of query i of the block become weights, those that dropout left, and dy v' becomes
  // dscores = scale * weights * (dy v' - sum of dy * y) where nothing drops out.
  void finish_row(const Group& group, const Head& head, const ScoreBlock<T>& block,
                  std::int64_t i) const {
    Number* weights = group.weights + i * to_next_;
    Number* dscores = group.dscores + i * to_next_;
    const std::int64_t query = block.begin + i;
    fetch_ahead(head, query);
    const T* dy = head.dy.from(query).data;
    const T* y = head.y.from(query).data;
    const auto shift = static_cast<Number>(sum_of<Number>(
        sizes_.width, [=](std::int64_t d) { return computed(dy[d]) * computed(y[d]); }));
    const Number* statistics =
        args_.inputs[2].as<const Number>() +
        2 * ((group.batch * sizes_.heads + head.number) * sizes_.tokens + query);
    const Number largest = statistics[0];
    const Number inverse_sum = statistics[1];
    const Number scale = scale_;
    const std::int64_t masked = block.mask(i, weights);
#pragma omp simd
    for (std::int64_t j = 0; j < masked; ++j) {
      weights[j] = vector_exp_of_negative(weights[j] - largest) * inverse_sum;
    }
    if (mask_.keeps_all()) {
#pragma omp simd
      for (std::int64_t j = 0; j < masked; ++j) {
        dscores[j] = scale * weights[j] * (dscores[j] - shift);
      }
    } else {
      drop(block, query, shift, weights, dscores);
    }
    block.clear_rest(masked, weights);
    block.clear_rest(masked, dscores);
  }

  // Of a query: dscores = scale * (left * dy v' - weights * shift), where `left` are the weights
  // after dropout, and what becomes of `weights`.
  void drop(const ScoreBlock<T>& block, std::int64_t query, Number shift, Number* weights,
            Number* dscores) const {
    const std::int64_t seen = sizes_.seen(query);
    const std::int32_t threshold = mask_.threshold();
    const auto kept = static_cast<Number>(mask_.scale());
    const Number scale = scale_;
    mask_.for_each_piece(sizes_.first_weight(block.batch, block.head, query), seen,
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
    std::fill(dscores + seen, dscores + whole_lines<T>(seen), Number{0});
  }

  // sums[j] (+)= sum over the block's queries i of by_query[i, j] * rows[i]
  void add_by_key(const Group& group, const Head& head, const ScoreBlock<T>& block,
                  const Number* by_query, const HeadRows<const T>& rows,
                  const HeadRows<Number>& sums) const {
    const PackedPanels<T> packed({rows.from(block.begin).data, 1, rows.row}, block.rows(),
                                 sizes_.width, group.rows());
    PanelGemm<T> gemm =
        sums_by_key<T>(by_query, block.rows(), block.keys(), to_next_, group.rounded);
    gemm.n = sizes_.width;
    gemm.c = sums.data;
    gemm.c_row = sums.row;
    gemm.adds = !head.first;
    gemm.unseen = block.unseen(Unseen::kQueries);
    gemm.first = block.begin;
    multiply(gemm, packed);
  }

  const RunArgs& args_;
  std::span<const TensorView> forward_;  // the inputs of Attention
  AttentionSizes sizes_;
  Bias<Number> bias_;
  DropoutMask mask_;
  std::int64_t to_next_;  // from one row of scores to the next
  std::int64_t sum_row_;  // and of sums
  Number scale_;
};

template <typename T>
void run_grad(const RunArgs& args) {
  Backward<T>(args).run();
}

Support supports_bf16(const PrepareArgs& args) {
  if (!has_f32_bias(args.inputs.subspan(kForward))) return {"the bias is not f32"};
  if (args.inputs[2].type.dtype != DType::kF32) return {"the statistics are not f32"};
  return supported_if(!gemm_tiles<BFloat16>().empty(), kNoBf16Tiles);
}

// Keys, both ways, and values are packed for each group of heads.
template <typename T>
Estimate estimate(const PrepareArgs& args, const Estimate& definition) {
  const AttentionSizes sizes = attention_sizes(args.params, args.inputs.subspan(kForward));
  Work work = with_scores_of_tiles<T>(sizes, definition);
  const auto packed = static_cast<double>(2 * PackedPanels<T>::bytes(sizes.width, sizes.keys) +
                                          PackedPanels<T>::bytes(sizes.keys, sizes.width));
  work.add_passed_on(packed * static_cast<double>(groups_of(sizes)));
  return work.estimate();
}

constexpr Kernel kAttentionGrad{.name = "attention_grad.own",
                                .prepare = prepare_grad<float>,
                                .run = run_grad<float>,
                                .estimate = estimate<float>};

}  // namespace

void add_attention_grad(KernelTable& table) {
  table.add("AttentionGrad", DType::kF32, kAttentionGrad);
  add_upcast<kAttentionGrad>(table, "AttentionGrad", "attention_grad.upcast");
  table.add("AttentionGrad", DType::kBF16,
            {.name = "attention_grad.own",
             .supports = supports_bf16,
             .prepare = prepare_grad<BFloat16>,
             .run = run_grad<BFloat16>,
             .estimate = estimate<BFloat16>});
  table.add("AttentionGrad", DType::kF64,
            {.name = "attention_grad.own",
             .prepare = prepare_grad<double>,
             .run = run_grad<double>,
             .estimate = estimate<double>});
}

}  // namespace trainscope::cpu
