// Parts that throw on the threads of a loop.
#include "kernels/cpu/support/parallel_chunks.h"

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>
#include <string>

namespace trainscope::cpu {

TEST_CASE("parallel_chunks: one of the exceptions leaves, when all other parts have run") {
  for (int threads : {1, 2, 3}) {
    std::array<int, 6> runs{};
    std::string message;
    try {
      parallel_chunks(threads, 6, [&](std::int64_t part) {
        ++runs[static_cast<std::size_t>(part)];
        if (part % 2 == 1) throw std::runtime_error("odd part");
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK(message == "odd part");
    // The parts of a thread follow each other, up to the first that throws.
    CHECK(runs[0] == 1);
    CHECK(runs[1] == 1);
    if (threads == 3) CHECK(runs == std::array{1, 1, 1, 1, 1, 1});
  }
}

TEST_CASE("parallel_chunks: each part runs once") {
  for (int threads : {1, 2, 3}) {
    std::array<int, 5> runs{};
    parallel_chunks(threads, 5, [&](std::int64_t part) { ++runs[static_cast<std::size_t>(part)]; });
    CHECK(runs == std::array{1, 1, 1, 1, 1});
  }
}

}  // namespace trainscope::cpu
