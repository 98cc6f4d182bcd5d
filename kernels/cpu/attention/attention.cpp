// Attention by blocks of queries: the scores of a block with all its keys, their softmax, the
// matmul of this with the values. Keys and values of a head are packed once for all its blocks;
// heads, or where there are few of them chunks of heads, run on different threads.
#include "kernels/cpu/attention/attention.h"

#include <span>

#include "kernels/cpu/attention/row_sums.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/upcast.h"
#include "kernels/cpu/support/vector_math.h"

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

bool has_f32_bias(std::span<const TensorView> inputs) {
  return inputs.size() < 4 || !inputs[3].present || inputs[3].type.dtype == DType::kF32;
}

namespace {

// A unit of work is a head, or where there are few of them every chunks-th block of its queries.
std::int64_t chunks_of_head(const AttentionSizes& sizes, int threads) {
  const std::int64_t heads = std::max<std::int64_t>(1, sizes.batch * sizes.heads);
  const std::int64_t wanted = threads <= 1 ? 1 : (4 * threads + heads - 1) / heads;
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, sizes.blocks()));
}
std::int64_t work_items(const AttentionSizes& sizes, int threads) {
  if (sizes.tokens == 0) return 0;
  return sizes.batch * sizes.heads * chunks_of_head(sizes, threads);
}
std::int64_t slots_of(const AttentionSizes& sizes, int threads) {
  return std::clamp<std::int64_t>(work_items(sizes, threads), 0, std::max(1, threads));
}

// Of one thread: k and v of a head, the scores of a block, these rounded, its rows or sums.
template <typename T>
std::size_t slot_bytes(const AttentionSizes& sizes) {
  return PackedPanels<T>::bytes(sizes.width, sizes.keys) +
         PackedPanels<T>::bytes(sizes.keys, sizes.width) + score_bytes<T>(sizes) +
         rounded_bytes<T>(sizes) +
         std::max(row_bytes<T>(sizes), sum_bytes<T>(sizes, sizes.block_rows()));
}

template <typename T>
Prepared prepare_attention(const PrepareArgs& args) {
  const AttentionSizes sizes = attention_sizes(args.params, args.inputs);
  return {.workspace_bytes =
              static_cast<std::size_t>(slots_of(sizes, args.threads)) * slot_bytes<T>(sizes),
          .state = nullptr};
}

// Scores become exp(score - largest). A row of -inf gives NaN.
template <typename T>
RowStatistics<T> exponentials(T* scores, std::int64_t keys) {
  const T largest = largest_of(scores, keys);
  const double sum = sum_of<T>(keys, [=](std::int64_t j) {
    return scores[j] = vector_exp_of_negative(scores[j] - largest);
  });
  return {.largest = largest, .inverse_sum = static_cast<T>(1.0 / sum)};
}

template <typename T>
class Forward {
 public:
  using Number = Computed<T>;

  explicit Forward(const RunArgs& args)
      : args_(args),
        sizes_(attention_sizes(args.params, args.inputs)),
        bias_(bias_of<Number>(args.inputs)),
        mask_(mask_of(args.params, args.inputs)),
        chunks_(chunks_of_head(sizes_, args.threads)) {
    if (args.outputs.size() > 1 && args.outputs[1].present) {
      statistics_ = args.outputs[1].as<Number>();
    }
  }

  void run() const {
    const std::int64_t items = work_items(sizes_, args_.threads);
    const std::int64_t slots = slots_of(sizes_, args_.threads);
    parallel_for(args_.threads, slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::byte* scratch = static_cast<std::byte*>(args_.workspace) +
                             static_cast<std::size_t>(slot) * slot_bytes<T>(sizes_);
        for (std::int64_t item = slot; item < items; item += slots) run_item(item, scratch);
      }
    });
  }

 private:
  // A head with its keys and values packed as GEMMs read them.
  struct Head {
    std::int64_t batch = 0;
    std::int64_t head = 0;
    HeadRows<const T> q;
    HeadRows<T> y;
    PackedPanels<T> keys;    // [width, keys]
    PackedPanels<T> values;  // [keys, width]
    Number* scores = nullptr;
    Packed<T>* rounded = nullptr;
    std::byte* block = nullptr;  // rows of q, then sums

    Packed<T>* rows() const { return reinterpret_cast<Packed<T>*>(block); }
    Number* sums() const { return reinterpret_cast<Number*>(block); }
  };

  void run_item(std::int64_t item, std::byte* scratch) const {
    const std::int64_t batch = item / chunks_ / sizes_.heads;
    const std::int64_t number = item / chunks_ % sizes_.heads;
    const HeadTriple<const T> from =
        head_triple<const T>(args_.params, args_.inputs, batch, number);
    Pieces pieces(scratch);
    const Head head{
        .batch = batch,
        .head = number,
        .q = from.q,
        .y = head_rows(args_.outputs[0].as<T>(), args_.outputs[0].shape(), batch, number),
        .keys = {{from.k.data, from.k.row, 1},
                 sizes_.width,
                 sizes_.keys,
                 pieces.take<Packed<T>>(PackedPanels<T>::bytes(sizes_.width, sizes_.keys))},
        .values = {{from.v.data, 1, from.v.row},
                   sizes_.keys,
                   sizes_.width,
                   pieces.take<Packed<T>>(PackedPanels<T>::bytes(sizes_.keys, sizes_.width))},
        .scores = pieces.take<Number>(score_bytes<T>(sizes_)),
        .rounded = pieces.take<Packed<T>>(rounded_bytes<T>(sizes_)),
        .block = pieces.take<std::byte>(0)};
    for (std::int64_t block = item % chunks_; block < sizes_.blocks(); block += chunks_) {
      run_block(head, block * kQueryBlock);
    }
  }

  void run_block(const Head& head, std::int64_t begin) const {
    const ScoreBlock<T> block{.sizes = sizes_,
                              .bias = bias_,
                              .batch = head.batch,
                              .head = head.head,
                              .begin = begin,
                              .end = std::min(sizes_.tokens, begin + kQueryBlock)};
    block.multiply_by_key(head.q, head.keys,
                          static_cast<Number>(std::get<AttentionParams>(args_.params).scale),
                          head.rows(), head.scores);
    RowStatistics<Number> statistics[kQueryBlock];
    for (std::int64_t i = 0; i < block.rows(); ++i) {
      Number* row = head.scores + i * score_row<T>(sizes_);
      fetch_ahead(head, begin + i);
      const std::int64_t masked = block.mask(i, row);
      statistics[i] = exponentials(row, masked);
      if (!mask_.keeps_all()) drop(head, begin + i, row);
      block.clear_rest(masked, row);
    }
    PanelGemm<T> weighted = sums_by_query<T>(head.scores, block.rows(), block.keys(),
                                             score_row<T>(sizes_), head.rounded);
    weighted.m = whole_tile_rows<T>(block.rows());
    weighted.n = sum_row<T>(sizes_);
    weighted.c = head.sums();
    weighted.c_row = sum_row<T>(sizes_);
    weighted.unseen = block.unseen(Unseen::kKeys);
    weighted.first = begin;
    multiply(weighted, head.values);
    const auto kept = static_cast<Number>(mask_.scale());
    for (std::int64_t i = 0; i < block.rows(); ++i) {
      const Number factor = statistics[i].inverse_sum * kept;
      const Number* from = head.sums() + i * sum_row<T>(sizes_);
      T* row = head.y.from(begin + i).data;
      for (std::int64_t d = 0; d < sizes_.width; ++d) store(row[d], from[d] * factor);
    }
    keep_statistics(head, begin, {statistics, static_cast<std::size_t>(block.rows())});
  }

  // Towards L1 while weights are computed: rows of the next block, and those that are written.
  void fetch_ahead(const Head& head, std::int64_t query) const {
    prefetch_row(head.q.from(std::min(query + kQueryBlock, sizes_.tokens - 1)).data, sizes_.width);
    prefetch_row(head.y.from(query).data, sizes_.width);
  }

  // Dropout takes weights of a query away; those that it keeps are scaled later.
  void drop(const Head& head, std::int64_t query, Number* weights) const {
    const std::int32_t threshold = mask_.threshold();
    mask_.for_each_piece(sizes_.first_weight(head.batch, head.head, query), sizes_.seen(query),
                         [=](const std::int32_t* words, std::int64_t begin, std::int64_t n) {
                           Number* row = weights + begin;
#pragma omp simd
                           for (std::int64_t j = 0; j < n; ++j) {
                             row[j] = DropoutMask::keeps(words[j], threshold) ? row[j] : Number{0};
                           }
                         });
  }

  void keep_statistics(const Head& head, std::int64_t begin,
                       std::span<const RowStatistics<Number>> statistics) const {
    if (statistics_ == nullptr) return;
    Number* to =
        statistics_ + 2 * ((head.batch * sizes_.heads + head.head) * sizes_.tokens + begin);
    for (const RowStatistics<Number>& row : statistics) {
      *to++ = row.largest;
      *to++ = row.inverse_sum;
    }
  }

  const RunArgs& args_;
  AttentionSizes sizes_;
  Bias<Number> bias_;
  DropoutMask mask_;
  std::int64_t chunks_;
  Number* statistics_ = nullptr;  // [batch, heads, tokens, 2]
};

template <typename T>
void run_attention(const RunArgs& args) {
  Forward<T>(args).run();
}

// In bf16 where our GEMM computes in bf16, and with a bias in f32.
Support supports_bf16(const PrepareArgs& args) {
  if (!has_f32_bias(args.inputs)) return {"the bias is not f32"};
  return supported_if(!gemm_tiles<BFloat16>().empty(), kNoBf16Tiles);
}

// Keys and values are packed for each unit of work.
template <typename T>
Estimate estimate(const PrepareArgs& args, const Estimate& definition) {
  const AttentionSizes sizes = attention_sizes(args.params, args.inputs);
  Work work = with_scores_of_tiles<T>(sizes, definition);
  const auto packed = static_cast<double>(PackedPanels<T>::bytes(sizes.width, sizes.keys) +
                                          PackedPanels<T>::bytes(sizes.keys, sizes.width));
  work.add_passed_on(packed * static_cast<double>(work_items(sizes, args.threads)));
  return work.estimate();
}

constexpr Kernel kAttention{.name = "attention.own",
                            .prepare = prepare_attention<float>,
                            .run = run_attention<float>,
                            .estimate = estimate<float>};

}  // namespace

void add_attention(KernelTable& table) {
  table.add("Attention", DType::kF32, kAttention);
  add_upcast<kAttention>(table, "Attention", "attention.upcast");
  table.add("Attention", DType::kBF16,
            {.name = "attention.own",
             .supports = supports_bf16,
             .prepare = prepare_attention<BFloat16>,
             .run = run_attention<BFloat16>,
             .estimate = estimate<BFloat16>});
  table.add("Attention", DType::kF64,
            {.name = "attention.own",
             .prepare = prepare_attention<double>,
             .run = run_attention<double>,
             .estimate = estimate<double>});
  add_attention_grad(table);
}

}  // namespace trainscope::cpu
