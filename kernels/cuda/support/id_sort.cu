// A stable sort by digits: counts of each tile's digits, their sums, then places.
#include <algorithm>
#include <bit>

#include "kernels/cuda/support/id_sort.h"
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/strides.h"

namespace trainscope::cuda {
namespace {

constexpr int kDigitBits = 8;
constexpr std::uint32_t kDigits = 1U << kDigitBits;
constexpr std::uint32_t kTile = 1024;  // ids that one warp sorts
constexpr unsigned kScanThreads = 1024;

std::uint32_t tiles_of(std::int64_t count) {
  return static_cast<std::uint32_t>((count + kTile - 1) / kTile);
}

struct Keys {
  std::uint32_t* rows;
  std::uint32_t* positions;
};

// Bytes: an id read, 8 written for each.
template <class I>
__global__ void __launch_bounds__(kPackThreads)
    resolve_ids(const I* ids, std::uint32_t count, std::int64_t size, Negative negative, Keys to) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t id = ids[i];
  const std::int64_t row = id < 0 && negative == Negative::kFromTheEnd ? id + size : id;
  to.rows[i] = static_cast<std::uint32_t>(row >= 0 && row < size ? row : size);
  to.positions[i] = i;
}

__device__ std::uint32_t digit_of(std::uint32_t row, int shift) {
  return row >> shift & (kDigits - 1);
}

// counts [kDigits, tiles]: how often each digit is in each tile. A warp a tile. Bytes: 4 a key
// read, 4 kDigits a tile written.
__global__ void count_digits(Keys from, std::uint32_t count, int shift, std::uint32_t* counts) {
  TRAINSCOPE_SHARED(std::uint32_t, found, kDigits);
  for (std::uint32_t d = threadIdx.x; d < kDigits; d += kWarp) found[d] = 0;
  __syncwarp();
  const std::uint32_t begin = blockIdx.x * kTile;
  const std::uint32_t end = min(begin + kTile, count);
  for (std::uint32_t i = begin + threadIdx.x; i < end; i += kWarp) {
    atomicAdd(&found[digit_of(from.rows[i], shift)], 1U);
  }
  __syncwarp();
  for (std::uint32_t d = threadIdx.x; d < kDigits; d += kWarp) {
    counts[d * gridDim.x + blockIdx.x] = found[d];
  }
}

// Lanes of the mask whose digit is this lane's.
__device__ unsigned lanes_of_digit(unsigned mask, std::uint32_t digit) {
  unsigned same = mask;
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const bool set = (digit >> bit & 1U) != 0;
    const unsigned with = __ballot_sync(mask, set);
    same &= set ? with : ~with;
  }
  return same;
}

// counts now tells where each tile's keys of each digit go. 32 keys at a time: lanes of one digit
// go one after the other, so that equal rows keep their order. A warp a tile. Bytes: 8 a key read
// and written, 4 kDigits a tile read.
__global__ void place_keys(Keys from, std::uint32_t count, int shift, const std::uint32_t* counts,
                           Keys to) {
  TRAINSCOPE_SHARED(std::uint32_t, next, kDigits);
  for (std::uint32_t d = threadIdx.x; d < kDigits; d += kWarp) {
    next[d] = counts[d * gridDim.x + blockIdx.x];
  }
  __syncwarp();
  const std::uint32_t begin = blockIdx.x * kTile;
  const std::uint32_t end = min(begin + kTile, count);
  for (std::uint32_t first = begin; first < end; first += kWarp) {
    const std::uint32_t i = first + threadIdx.x;
    const bool inside = i < end;
    const unsigned mask = __ballot_sync(kWholeWarp, inside);
    if (inside) {
      const std::uint32_t row = from.rows[i];
      const std::uint32_t digit = digit_of(row, shift);
      const unsigned same = lanes_of_digit(mask, digit);
      const unsigned before = same & ((1U << threadIdx.x) - 1U);
      const std::uint32_t place = next[digit] + static_cast<std::uint32_t>(__popc(before));
      to.rows[place] = row;
      to.positions[place] = from.positions[i];
      __syncwarp(mask);
      if (before == 0) next[digit] += static_cast<std::uint32_t>(__popc(same));
    }
    __syncwarp();
  }
}

// Each thread's share lies in one piece. Bytes: 8 a number read, 4 written.
__global__ void __launch_bounds__(kScanThreads)
    scan_in_a_block(std::uint32_t* numbers, std::int64_t count) {
  TRAINSCOPE_SHARED(std::uint32_t, warps, kScanThreads / kWarp);
  const std::int64_t share = (count + kScanThreads - 1) / kScanThreads;
  const std::int64_t begin = min(share * threadIdx.x, count);
  const std::int64_t end = min(begin + share, count);
  std::uint32_t own = 0;
  for (std::int64_t i = begin; i < end; ++i) own += numbers[i];
  const unsigned lane = threadIdx.x % kWarp;
  std::uint32_t sum = own;  // of this lane and those before it
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const std::uint32_t other = __shfl_up_sync(kWholeWarp, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == kWarp - 1) warps[threadIdx.x / kWarp] = sum;
  __syncthreads();
  std::uint32_t before = sum - own;
  for (unsigned warp = 0; warp < threadIdx.x / kWarp; ++warp) before += warps[warp];
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint32_t number = numbers[i];
    numbers[i] = before;
    before += number;
  }
}

// Bytes: 8 a row written.
__global__ void __launch_bounds__(kPackThreads)
    clear_ranges(std::uint32_t* begins, std::uint32_t* ends, std::uint32_t size) {
  const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= size) return;
  begins[row] = 0;
  ends[row] = 0;
}

// A thread a key. Bytes: 16 read, 8 written for each row that has keys.
__global__ void __launch_bounds__(kPackThreads)
    mark_ranges(const std::uint32_t* rows, std::uint32_t count, std::uint32_t size,
                std::uint32_t* begins, std::uint32_t* ends) {
  const std::uint32_t n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= count || rows[n] == size) return;
  if (n == 0 || rows[n - 1] != rows[n]) begins[rows[n]] = n;
  if (n + 1 == count || rows[n + 1] != rows[n]) ends[rows[n]] = n + 1;
}

int passes_of(std::int64_t size) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size)));
  return std::max(1, (bits + kDigitBits - 1) / kDigitBits);
}

}  // namespace

std::size_t id_sort_bytes(std::int64_t count) {
  const std::size_t words = 4 * static_cast<std::size_t>(count) + kDigits * tiles_of(count);
  return words * sizeof(std::uint32_t);
}

SortedIds sort_ids(const CallContext& call, const Ids& ids, void* workspace) {
  if (ids.count == 0) return {};
  const auto count = static_cast<std::uint32_t>(ids.count);
  auto* words = static_cast<std::uint32_t*>(workspace);
  Keys from{words, words + count};
  Keys to{words + 2 * std::size_t{count}, words + 3 * std::size_t{count}};
  std::uint32_t* counts = words + 4 * std::size_t{count};
  const std::uint32_t tiles = tiles_of(ids.count);
  const Grid all{.blocks = blocks_for(ids.count), .threads = kPackThreads};
  if (ids.dtype == DType::kI32) {
    launch(call, all, resolve_ids<std::int32_t>, static_cast<const std::int32_t*>(ids.data), count,
           ids.size, ids.negative, from);
  } else {
    launch(call, all, resolve_ids<std::int64_t>, static_cast<const std::int64_t*>(ids.data), count,
           ids.size, ids.negative, from);
  }
  for (int pass = 0; pass < passes_of(ids.size); ++pass) {
    const int shift = pass * kDigitBits;
    launch(call, {.blocks = tiles, .threads = kWarp}, count_digits, from, count, shift, counts);
    scan_exclusive(call, counts, std::int64_t{kDigits} * tiles);
    launch(call, {.blocks = tiles, .threads = kWarp}, place_keys, from, count, shift, counts, to);
    std::swap(from, to);
  }
  return {.rows = from.rows, .positions = from.positions};
}

std::size_t row_ranges_bytes(std::int64_t count, std::int64_t size) {
  return id_sort_bytes(count) + 2 * static_cast<std::size_t>(size) * sizeof(std::uint32_t);
}

RowRanges find_row_ranges(const CallContext& call, const Ids& ids, void* workspace) {
  auto* bytes = static_cast<std::byte*>(workspace);
  RowRanges ranges;
  ranges.begins = reinterpret_cast<std::uint32_t*>(bytes + id_sort_bytes(ids.count));
  ranges.ends = ranges.begins + ids.size;
  const auto size = static_cast<std::uint32_t>(ids.size);
  launch(call, {.blocks = blocks_for(ids.size), .threads = kPackThreads}, clear_ranges,
         ranges.begins, ranges.ends, size);
  ranges.sorted = sort_ids(call, ids, workspace);
  launch(call, {.blocks = blocks_for(ids.count), .threads = kPackThreads}, mark_ranges,
         ranges.sorted.rows, static_cast<std::uint32_t>(ids.count), size, ranges.begins,
         ranges.ends);
  return ranges;
}

void scan_exclusive(const CallContext& call, std::uint32_t* numbers, std::int64_t count) {
  launch(call, {.blocks = count == 0 ? 0U : 1U, .threads = kScanThreads}, scan_in_a_block, numbers,
         count);
}

Support supports_ids(std::int64_t count, std::int64_t size) {
  return supported_if(count < kMaxItems && size < kMaxItems,
                      "on CUDA indices and the rows they name are less than 2^31");
}

}  // namespace trainscope::cuda
