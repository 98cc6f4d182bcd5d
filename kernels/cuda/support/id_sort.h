// Sorts the positions of ids, so that positions of one id lie together in their order: what sums by
// id need to be the same on every run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// Negative ids count from the end, or lie outside.
enum class Negative : std::uint8_t { kFromTheEnd, kOutside };

// Ids [count] that name one of `size` rows. Both below 2^31.
struct Ids {
  const void* data = nullptr;
  DType dtype = DType::kI64;  // or i32
  std::int64_t count = 0;
  std::int64_t size = 0;
  Negative negative = Negative::kFromTheEnd;
};

// What the sort leaves in its workspace, on the device.
struct SortedIds {
  const std::uint32_t* rows = nullptr;       // [count], ascending; `size` of an id outside
  const std::uint32_t* positions = nullptr;  // [count], ascending where rows are equal
};

std::size_t id_sort_bytes(std::int64_t count);
// By the digits of 8 bits, from the lowest on: each pass reads and writes 8 bytes of an id twice.
SortedIds sort_ids(const CallContext& call, const Ids& ids, void* workspace);

// The sorted ids and where each row's positions begin and end among them.
struct RowRanges {
  SortedIds sorted;
  std::uint32_t* begins = nullptr;  // [size]
  std::uint32_t* ends = nullptr;    // [size]
};

std::size_t row_ranges_bytes(std::int64_t count, std::int64_t size);
RowRanges find_row_ranges(const CallContext& call, const Ids& ids, void* workspace);

// numbers[i] becomes the sum of those before it, in one block: 8 bytes of traffic for each.
void scan_exclusive(const CallContext& call, std::uint32_t* numbers, std::int64_t count);

Support supports_ids(std::int64_t count, std::int64_t size);

}  // namespace trainscope::cuda
