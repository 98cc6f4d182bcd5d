// Division of loops into chunks, and walks over strided tensors.
#include "kernels/cpu/support/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "kernels/cpu/support/strided_loop.h"

namespace trainscope::cpu {

TEST_CASE("parallel_for: every iteration runs once, in at most `threads` chunks") {
  for (int threads : {1, 2, 3, 7}) {
    for (std::int64_t n : {0, 1, 5, 64, 1001}) {
      std::vector<int> visits(static_cast<std::size_t>(n), 0);
      std::atomic<int> chunks = 0;
      parallel_for(threads, n, 10, [&](std::int64_t begin, std::int64_t end) {
        ++chunks;
        CHECK(begin < end);
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      CHECK(visits == std::vector<int>(static_cast<std::size_t>(n), 1));
      CHECK(chunks <= threads);
      CHECK((n == 0 || chunks >= 1));
    }
  }
}

TEST_CASE("parallel_for: work below two grains stays on the calling thread") {
  int chunks = 0;  // not atomic: only one thread may write it
  parallel_for(8, 19, 10, [&](std::int64_t begin, std::int64_t end) {
    ++chunks;
    CHECK(begin == 0);
    CHECK(end == 19);
  });
  CHECK(chunks == 1);
}

TEST_CASE("strided_loop: axes that all operands walk densely become one row") {
  StridedLoop loop{.operands = 2};
  loop.add_axis(2, {12, 12});
  loop.add_axis(1, {7, 0});
  loop.add_axis(3, {4, 4});
  loop.add_axis(4, {1, 1});
  CHECK(loop.rank == 1);
  CHECK(loop.elements == 24);
  CHECK(loop.row_stride(0) == 1);
}

TEST_CASE("strided_loop: rows of any range are those of the nested loops") {
  StridedLoop loop{.operands = 2};  // a dense [2,3,4] and one that is broadcast and reversed
  loop.add_axis(2, {12, 5});
  loop.add_axis(3, {4, 0});
  loop.add_axis(4, {1, -1});
  std::vector<Offsets> expected;
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t k = 0; k < 4; ++k) expected.push_back({12 * i + 4 * j + k, 5 * i - k});
    }
  }
  for (std::int64_t begin = 0; begin <= 24; ++begin) {
    std::vector<Offsets> visited;
    for_each_row(loop, begin, 24, [&](const Offsets& at, std::int64_t count) {
      for (std::int64_t k = 0; k < count; ++k) visited.push_back({at[0] + k, at[1] - k});
    });
    CHECK(visited == std::vector<Offsets>(expected.begin() + begin, expected.end()));
  }
}

}  // namespace trainscope::cpu
