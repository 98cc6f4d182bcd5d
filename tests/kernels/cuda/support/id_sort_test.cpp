// Positions of ids, sorted, against the standard library's stable sort.
#include "kernels/cuda/support/id_sort.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/api/random.h"
#include "kernels/cuda/emulator/emulator.h"

namespace trainscope::test {
namespace {

// Ids in [-size, size), and of every seventh one outside.
template <class I>
std::vector<I> random_ids(std::size_t count, std::int64_t size) {
  std::vector<I> ids(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto draw =
        static_cast<std::int64_t>(random_below(7, 1, i, 2 * static_cast<std::uint64_t>(size)));
    ids[i] = static_cast<I>(i % 7 == 6 ? size + draw : draw - size);
  }
  return ids;
}

template <class I>
void check_sort(std::size_t count, std::int64_t size) {
  CAPTURE(count);
  CAPTURE(size);
  const std::vector<I> ids = random_ids<I>(count, size);
  std::vector<std::uint32_t> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t row = ids[i] < 0 ? std::int64_t{ids[i]} + size : std::int64_t{ids[i]};
    rows[i] = static_cast<std::uint32_t>(std::min(row, size));
  }
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return rows[i]; });

  const auto elements = static_cast<std::int64_t>(count);
  std::vector<std::byte> workspace(cuda::id_sort_bytes(elements), std::byte{0xA5});
  const cuda::SortedIds sorted = cuda::sort_ids({},
                                                {.data = ids.data(),
                                                 .dtype = kDTypeOf<I>,
                                                 .count = elements,
                                                 .size = size,
                                                 .negative = cuda::Negative::kFromTheEnd},
                                                workspace.data());
  CHECK(std::equal(order.begin(), order.end(), sorted.positions));
  CHECK(std::ranges::equal(order, std::span(sorted.rows, count), {},
                           [&](std::uint32_t i) { return rows[i]; }));
}

}  // namespace

TEST_CASE("cuda id sort: ids lie together, and each one's positions in order") {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    cuda::emulator::set_seed(seed);
    check_sort<std::int64_t>(1, 1);
    check_sort<std::int32_t>(31, 5);
    check_sort<std::int64_t>(1024, 255);
    check_sort<std::int32_t>(1025, 256);
    check_sort<std::int64_t>(5000, 70000);
  }
  cuda::emulator::set_seed(0);
}

TEST_CASE("cuda id sort: a scan leaves the sum of what is before") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1023}, std::size_t{4100}}) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 3U);
    std::vector<std::uint32_t> want(count);
    std::exclusive_scan(numbers.begin(), numbers.end(), want.begin(), 0U);
    cuda::scan_exclusive({}, numbers.data(), static_cast<std::int64_t>(count));
    CHECK(numbers == want);
  }
}

}  // namespace trainscope::test
