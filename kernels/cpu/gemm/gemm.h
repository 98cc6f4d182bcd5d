// Our own GEMM: cache-blocked, packed, register-tiled, in f32, f64 and bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/gemm/gemm_pack.h"
#include "kernels/cpu/gemm/gemm_tile.h"
#include "kernels/cpu/support/estimate.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {

// C = alpha * A B + beta * D, C dense row-major. Element (i, j) of A is a[i * a_row + j *
// a_column], so a transposed matrix has its strides exchanged; D may be broadcast by strides of 0,
// or absent. D may be C, element for element.
// The result may be stored in another type: sums of bf16, which are f32, as they are.
template <typename T, typename Result = T>
struct GemmOperands {
  const T* a = nullptr;  // [m, k]
  std::int64_t a_row = 0;
  std::int64_t a_column = 0;
  const T* b = nullptr;  // [k, n]
  std::int64_t b_row = 0;
  std::int64_t b_column = 0;
  Result* c = nullptr;  // [m, n]
  std::int64_t c_row = 0;
  const Result* d = nullptr;  // [m, n]
  std::int64_t d_row = 0;
  std::int64_t d_column = 0;
  Computed<T> alpha = 1;
  Computed<T> beta = 0;
};

struct GemmSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;      // GEMMs of this size that are computed together
  bool rounds_result = false;  // C has fewer digits than sums have: they are finished before
};

// How the outputs C of all GEMMs are divided. An element's sum over k is always formed in the same
// order, so the results depend neither on this division nor on the number of threads.
template <typename T>
struct GemmPlan {
  GemmSize size;
  GemmTile<T> tile = {};
  std::int64_t row_chunks = 1;
  std::int64_t column_chunks = 1;
  std::int64_t slots = 1;  // chunks that run at once, each with its bytes of the workspace
  std::size_t slot_bytes = 0;

  std::int64_t chunks() const { return size.batch * row_chunks * column_chunks; }
  std::size_t workspace_bytes() const { return static_cast<std::size_t>(slots) * slot_bytes; }
};

template <typename T>
GemmPlan<T> plan_gemm(const GemmSize& size, int threads,
                      const GemmTile<T>& tile = gemm_tiles<T>().front());

// Keeps the division but for GEMMs whose sums have k terms; the bytes that a chunk needs depend on
// k.
template <typename T>
void set_depth(GemmPlan<T>& plan, std::int64_t k);
// The most that the plan needs for sums of any number of terms up to k: a shorter sum may ask for
// more, since its blocks are wider.
template <typename T>
std::size_t most_workspace_bytes(GemmPlan<T> plan, std::int64_t k);

// What a plan's GEMMs compute and move, each once; elements of C have `result_bytes` bytes. Whole
// tiles are computed. A is packed again for each block of columns and B for each row of chunks; C
// is read again for each block of k after the first. Addends are not counted.
template <typename T>
Work gemm_work(const GemmPlan<T>& plan, double result_bytes = sizeof(T));

// One part of a plan: a rectangle of the C of GEMM number `gemm` of the batch.
struct GemmChunk {
  std::int64_t gemm = 0;
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
  std::int64_t column_begin = 0;
  std::int64_t column_end = 0;
};
template <typename T>
GemmChunk gemm_chunk(const GemmPlan<T>& plan, std::int64_t index);

// Computes one chunk on the calling thread. `operands` are those of the chunk's whole GEMM;
// `scratch` has slot_bytes bytes, 64-byte aligned.
template <typename T, typename Result>
void run_gemm_chunk(const GemmPlan<T>& plan, const GemmChunk& chunk,
                    const GemmOperands<T, Result>& operands, void* scratch);

// GEMMs of one A that are computed as one: what is packed of A serves a block of columns, of one
// GEMM or of several. In the n of the plan their columns follow each other; those of each GEMM
// begin with a whole tile.
template <typename T, typename Result = T>
struct AdjacentGemm {
  GemmOperands<T, Result> operands;
  std::int64_t n = 0;
};
template <typename T, typename Result = T>
using AdjacentGemms = std::span<const AdjacentGemm<T, Result>>;

// The columns that a GEMM of n columns takes up in the n of such a plan.
template <typename T>
std::int64_t adjacent_columns(std::int64_t n) {
  return round_up(n, gemm_tiles<T>().front().columns);
}
template <typename T, typename Result>
void run_gemm_chunk(const GemmPlan<T>& plan, const GemmChunk& chunk, AdjacentGemms<T, Result> gemms,
                    void* scratch);

// Computes all chunks; `operands_of(gemm)` gives the operands of a whole GEMM of the batch, or the
// AdjacentGemms.
template <typename T, class OperandsOf>
void run_gemm(const GemmPlan<T>& plan, void* workspace, int threads, OperandsOf operands_of) {
  const std::int64_t chunks = plan.chunks();
  const auto run_slot = [&](std::int64_t slot) {
    void* scratch =
        static_cast<std::byte*>(workspace) + static_cast<std::size_t>(slot) * plan.slot_bytes;
    const std::int64_t end = chunks * (slot + 1) / plan.slots;
    for (std::int64_t index = chunks * slot / plan.slots; index < end; ++index) {
      const GemmChunk chunk = gemm_chunk(plan, index);
      run_gemm_chunk(plan, chunk, operands_of(chunk.gemm), scratch);
    }
  };
  parallel_for(threads, plan.slots, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slot = begin; slot < end; ++slot) run_slot(slot);
  });
}

}  // namespace trainscope::cpu
