// GEMMs on packed panels, in whole tiles, are right and read nothing that a causal head leaves out.
#include "kernels/cpu/gemm/panel_gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/api/random.h"

namespace trainscope::cpu {
namespace {

struct Case {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Unseen unseen = Unseen::kNone;
  std::int64_t first = 0;
};

// Below, at and above the sides of tiles and the depth of blocks, and 0.
const std::vector<Case> kCases = {
    {.m = 1, .n = 1, .k = 1},
    {.m = 12, .n = 32, .k = 7},
    {.m = 48, .n = 65, .k = 64},
    {.m = 50, .n = 70, .k = 1301},
    {.m = 3, .n = 5, .k = 0},
    {.m = 48, .n = 96, .k = 64, .unseen = Unseen::kTiles, .first = 48},
    {.m = 31, .n = 64, .k = 64, .unseen = Unseen::kKeys},
    {.m = 48, .n = 64, .k = 96, .unseen = Unseen::kKeys, .first = 48},
    {.m = 41, .n = 20, .k = 1241, .unseen = Unseen::kKeys, .first = 1200},
    {.m = 96, .n = 64, .k = 48, .unseen = Unseen::kQueries, .first = 48},
    {.m = 53, .n = 16, .k = 53, .unseen = Unseen::kQueries},
    {.m = 640, .n = 8, .k = 600, .unseen = Unseen::kQueries, .first = 40},
};

template <typename T>
T number(std::uint64_t stream, std::int64_t i) {
  return static_cast<T>(2.0 * random_uniform(1, stream, static_cast<std::uint64_t>(i)) - 1.0);
}

// Memory for packed elements, NaN where nothing is written, at a cache line.
template <typename Element>
struct Lines {
  explicit Lines(std::int64_t n)
      : memory(static_cast<std::size_t>(n) + 128 / sizeof(Element)),
        data(reinterpret_cast<Element*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) /
                                        64 * 64)) {
    std::fill(reinterpret_cast<unsigned char*>(memory.data()),
              reinterpret_cast<unsigned char*>(memory.data() + memory.size()), 0xFF);
  }
  std::vector<Element> memory;
  Element* data;
};

template <typename T>
class Problem {
 public:
  Problem(const Case& test, bool by_lines) : of_(test), by_lines_(by_lines) {
    const std::int64_t lines = whole_tile_rows<T>(of_.m);
    const std::int64_t steps = std::max<std::int64_t>(1, packed_steps<T>(of_.k));
    a_ = Lines<Packed<T>>(lines * steps);
    for (std::int64_t i = 0; i < of_.m; ++i) {
      for (std::int64_t p = 0; p < packed_steps<T>(of_.k); ++p) set_a(i, p, lines, steps);
    }
    for (std::int64_t i = 0; i < of_.k * of_.n; ++i) b_.push_back(number<T>(2, i));
  }

  // Twice, the second time added to the first.
  void check() {
    Lines<Packed<T>> memory(
        static_cast<std::int64_t>(PackedPanels<T>::bytes(of_.k, of_.n) / sizeof(Packed<T>)));
    const PackedPanels<T> b({b_.data(), 1, of_.n}, of_.k, of_.n, memory.data);
    const std::int64_t row = of_.n + 3;
    Lines<Computed<T>> c(of_.m * row);
    PanelGemm<T> gemm{.m = of_.m,
                      .n = of_.n,
                      .k = of_.k,
                      .a = a_.data,
                      .a_line = line_,
                      .a_step = step_,
                      .c = c.data,
                      .c_row = row,
                      .alpha = Computed<T>{0.5},
                      .unseen = of_.unseen,
                      .first = of_.first};
    for (const double times : {1.0, 2.0}) {
      multiply(gemm, b);
      gemm.adds = true;
      double worst = 0.0;
      for (std::int64_t i = 0; i < of_.m; ++i) {
        for (std::int64_t j = of_.n; j < row; ++j) CHECK(std::isnan(c.data[i * row + j]));
        for (std::int64_t j = 0; j < of_.n; ++j) {
          if (of_.unseen == Unseen::kTiles && j > of_.first + i) continue;
          const double error =
              std::abs(static_cast<double>(c.data[i * row + j]) - times * 0.5 * exact_sum(i, j));
          worst = std::isnan(error) ? error : std::max(worst, error);
        }
      }
      CHECK(worst <=
            std::numeric_limits<Computed<T>>::epsilon() * static_cast<double>(2 * of_.k + 4));
    }
  }

 private:
  // Whether weight (query, key) counts.
  bool seen(std::int64_t query, std::int64_t key) const { return key <= of_.first + query; }

  double element_of_a(std::int64_t i, std::int64_t p) const {
    if (p >= of_.k) return 0.0;
    const bool counts = of_.unseen == Unseen::kKeys      ? seen(i, p)
                        : of_.unseen == Unseen::kQueries ? seen(p, i)
                                                         : true;
    return counts ? static_cast<double>(number<T>(1, i * of_.k + p)) : 0.0;
  }

  // NaN stays where a whole tile's rows have nothing that counts.
  void set_a(std::int64_t i, std::int64_t p, std::int64_t lines, std::int64_t steps) {
    line_ = by_lines_ ? 1 : steps;
    step_ = by_lines_ ? lines : 1;
    const std::int64_t tile = whole_tile_rows<T>(1);
    const std::int64_t from = i / tile * tile;
    const std::int64_t last_step = std::min(of_.k, (p + 1) * kElementsPacked<T>) - 1;
    if (of_.unseen == Unseen::kKeys && !seen(from + tile - 1, p * kElementsPacked<T>)) return;
    if (of_.unseen == Unseen::kQueries && !seen(last_step, from)) return;
    Packed<T>& to = a_.data[i * line_ + p * step_];
    if constexpr (std::is_same_v<T, Packed<T>>) {
      to = static_cast<T>(element_of_a(i, p));
    } else {
      to = pair_of(bf16_bits(static_cast<float>(element_of_a(i, 2 * p))),
                   bf16_bits(static_cast<float>(element_of_a(i, 2 * p + 1))));
    }
  }

  double exact_sum(std::int64_t i, std::int64_t j) const {
    double sum = 0.0;
    for (std::int64_t p = 0; p < of_.k; ++p) {
      sum += element_of_a(i, p) * static_cast<double>(b_[static_cast<std::size_t>(p * of_.n + j)]);
    }
    return sum;
  }

  Case of_;
  bool by_lines_;
  Lines<Packed<T>> a_{0};
  std::int64_t line_ = 1;
  std::int64_t step_ = 1;
  std::vector<T> b_;
};

template <typename T>
void check_all() {
  for (const Case& test : kCases) {
    for (const bool by_lines : {false, true}) {
      CAPTURE(test.m);
      CAPTURE(test.n);
      CAPTURE(test.k);
      CAPTURE(by_lines);
      Problem<T>(test, by_lines).check();
    }
  }
}

TEST_CASE_TEMPLATE("panel gemm: right, with the lines and with the steps of A together", T, float,
                   double) {
  check_all<T>();
}

TEST_CASE("panel gemm: bf16") {
  if (gemm_tiles<BFloat16>().empty()) {
    MESSAGE("own GEMMs of bf16 are not used on this processor");
    return;
  }
  check_all<BFloat16>();
}

}  // namespace
}  // namespace trainscope::cpu
