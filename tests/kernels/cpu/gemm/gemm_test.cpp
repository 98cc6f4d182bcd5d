// Tiles and divisions of our GEMM give the same bits, close to the truth.
#include "kernels/cpu/gemm/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {
namespace {

struct FreeAligned {
  void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};
std::unique_ptr<void, FreeAligned> aligned(std::size_t bytes) {
  return std::unique_ptr<void, FreeAligned>(::operator new (bytes, std::align_val_t{64}));
}

template <typename T>
std::vector<T> numbers(std::int64_t count, unsigned seed) {
  std::vector<T> result;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    result.push_back(static_cast<T>(static_cast<double>(seed >> 8) / 8388608.0 - 1.0));
  }
  return result;
}

struct Case {
  GemmSize size;
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1.0;
  double beta = 0.0;  // of a row of D for all rows
};

template <typename T, typename Result = T>
struct Problem {
  explicit Problem(const Case& test)
      : of(test),
        a(numbers<T>(of.size.m * of.size.k, 1)),
        b(numbers<T>(of.size.k * of.size.n, 2)),
        d(numbers<Result>(of.size.n, 3)) {}

  GemmOperands<T, Result> operands(std::vector<Result>& c) const {
    return {.a = a.data(),
            .a_row = of.transpose_a ? 1 : of.size.k,
            .a_column = of.transpose_a ? of.size.m : 1,
            .b = b.data(),
            .b_row = of.transpose_b ? 1 : of.size.n,
            .b_column = of.transpose_b ? of.size.k : 1,
            .c = c.data(),
            .c_row = of.size.n,
            .d = of.beta == 0.0 ? nullptr : d.data(),
            .d_row = 0,
            .d_column = 1,
            .alpha = static_cast<Computed<T>>(of.alpha),
            .beta = static_cast<Computed<T>>(of.beta)};
  }
  std::vector<Result> multiply(int threads, const GemmTile<T>& tile) const {
    const GemmPlan<T> plan = plan_gemm<T>(of.size, threads, tile);
    std::vector<Result> c(static_cast<std::size_t>(of.size.m * of.size.n), Result(NAN));
    const auto workspace = aligned(plan.workspace_bytes());
    run_gemm(plan, workspace.get(), threads, [&](std::int64_t) { return operands(c); });
    return c;
  }
  double exact(std::int64_t i, std::int64_t j) const {
    const GemmOperands<T, Result> from = operands(c_);
    double sum = 0.0;
    for (std::int64_t p = 0; p < of.size.k; ++p) {
      sum += static_cast<double>(a[static_cast<std::size_t>(i * from.a_row + p * from.a_column)]) *
             static_cast<double>(b[static_cast<std::size_t>(p * from.b_row + j * from.b_column)]);
    }
    return of.alpha * sum + of.beta * static_cast<double>(d[static_cast<std::size_t>(j)]);
  }

  Case of;
  std::vector<T> a;
  std::vector<T> b;
  std::vector<Result> d;
  mutable std::vector<Result> c_ = {};
};

// Below, at and above the sides of tiles and of blocks, where C is divided, and 0.
const std::vector<Case> kCases = {
    {.size = {.m = 1, .n = 1, .k = 1}},
    {.size = {.m = 12, .n = 32, .k = 7}},
    {.size = {.m = 13, .n = 33, .k = 64}, .transpose_b = true},
    {.size = {.m = 50, .n = 70, .k = 9}, .transpose_a = true},
    {.size = {.m = 23, .n = 24, .k = 300}, .transpose_a = true, .transpose_b = true},
    {.size = {.m = 97, .n = 10, .k = 130}, .alpha = 0.25, .beta = 1.0},
    {.size = {.m = 203, .n = 65, .k = 1030}, .transpose_b = true, .beta = -0.5},
    {.size = {.m = 5, .n = 1500, .k = 40}, .alpha = 1.5},
    {.size = {.m = 240, .n = 160, .k = 64}, .transpose_a = true, .beta = 1.0},
    {.size = {.m = 3, .n = 5, .k = 0}, .beta = 2.0},
};

TEST_CASE_TEMPLATE("gemm: results are right on every tile", T, float, double) {
  const double epsilon = std::numeric_limits<T>::epsilon();
  for (const Case& test : kCases) {
    const Problem<T> problem(test);
    for (const GemmTile<T>& tile : gemm_tiles<T>()) {
      CAPTURE(tile.instructions);
      const std::vector<T> c = problem.multiply(1, tile);
      double worst = 0.0;
      for (std::int64_t i = 0; i < test.size.m; ++i) {
        for (std::int64_t j = 0; j < test.size.n; ++j) {
          const double got = static_cast<double>(c[static_cast<std::size_t>(i * test.size.n + j)]);
          const double error = std::abs(got - problem.exact(i, j));
          worst = std::isnan(error) ? error : std::max(worst, error);
        }
      }
      // Terms are at most 1: half a unit in the last place for each addition.
      CHECK(worst <= epsilon * static_cast<double>(test.size.k + 4));
    }
  }
}

TEST_CASE_TEMPLATE("gemm: tiles and threads change no bit", T, float, double) {
  for (const Case& test : kCases) {
    CAPTURE(test.size.m);
    CAPTURE(test.size.n);
    CAPTURE(test.size.k);
    const Problem<T> problem(test);
    const std::vector<T> expected = problem.multiply(1, gemm_tiles<T>().front());
    for (const GemmTile<T>& tile : gemm_tiles<T>()) {
      CAPTURE(tile.instructions);
      for (int threads : {1, 2, 3, 5}) CHECK(problem.multiply(threads, tile) == expected);
    }
  }
}

TEST_CASE_TEMPLATE("gemm: a plan with other sums needs what one made for them needs", T, float,
                   double) {
  // Widths for which blocks of B get wider when they get less deep.
  for (const auto& [n, all, each] : {std::array<std::int64_t, 3>{1280, 33000, 1500},
                                     {1104, 5760, 360},
                                     {1088, 14580, 729},
                                     {64, 4000, 100}}) {
    CAPTURE(n);
    GemmPlan<T> plan = plan_gemm<T>({.m = 96, .n = n, .k = all}, 1);
    set_depth(plan, each);
    CHECK(plan.size.k == each);
    CHECK(plan.slot_bytes == plan_gemm<T>({.m = 96, .n = n, .k = each}, 1).slot_bytes);
  }
}

TEST_CASE("gemm: an addend may be the result itself") {
  const Problem<float> problem({.size = {.m = 30, .n = 40, .k = 600}});
  std::vector<float> c(30 * 40, 1.0F);
  GemmOperands<float> operands = problem.operands(c);
  operands.d = c.data();
  operands.d_row = 40;
  operands.beta = 1.0F;
  const GemmPlan<float> plan = plan_gemm<float>(problem.of.size, 1);
  const auto workspace = aligned(plan.workspace_bytes());
  run_gemm(plan, workspace.get(), 1, [&](std::int64_t) { return operands; });
  for (std::int64_t at : {0, 39, 40, 777, 1199}) {
    CHECK(c[static_cast<std::size_t>(at)] ==
          doctest::Approx(1.0 + problem.exact(at / 40, at % 40)).epsilon(1e-4));
  }
}

// Sums of bf16 are formed in f32, whatever k, and rounded once.
template <typename Result>
void check_bf16(Case test, double rounding) {
  CAPTURE(test.size.m);
  CAPTURE(test.size.n);
  CAPTURE(test.size.k);
  test.size.rounds_result = kIsStoredOnly<Result>;
  const Problem<BFloat16, Result> problem(test);
  const GemmTile<BFloat16> tile = gemm_tile_avx512<BFloat16>();
  const std::vector<Result> c = problem.multiply(1, tile);
  double worst = 0.0;
  for (std::int64_t i = 0; i < test.size.m; ++i) {
    for (std::int64_t j = 0; j < test.size.n; ++j) {
      const double exact = problem.exact(i, j);
      const double got = static_cast<float>(c[static_cast<std::size_t>(i * test.size.n + j)]);
      const double allowed =
          rounding * std::abs(exact) + 0x1p-23 * static_cast<double>(test.size.k + 4);
      const double share = std::abs(got - exact) / allowed;
      worst = std::isnan(share) ? share : std::max(worst, share);
    }
  }
  CHECK(worst <= 1.0);
  const auto same_bits = [&](const std::vector<Result>& other) {
    return std::memcmp(other.data(), c.data(), c.size() * sizeof(Result)) == 0;
  };
  for (int threads : {2, 3, 5}) CHECK(same_bits(problem.multiply(threads, tile)));
}

// Of all sums of up to k terms, one by one.
template <typename T>
std::size_t most_bytes_by_trial(GemmPlan<T> plan, std::int64_t k) {
  std::size_t bytes = 0;
  for (std::int64_t terms = 0; terms <= k; ++terms) {
    set_depth(plan, terms);
    bytes = std::max(bytes, plan.workspace_bytes());
  }
  return bytes;
}

// Only results in bf16 are rounded. A plan can be made where no tile of bf16 can run.
TEST_CASE_TEMPLATE("gemm: the most workspace of any number of terms", T, float, BFloat16) {
  constexpr GemmTile<T> kTile{.rows = 12, .columns = 32};
  for (const std::int64_t k : {1, 767, 768, 1537, 3000, 1'600'001}) {
    for (const bool rounds_result : {false, true}) {
      if (rounds_result && !kIsStoredOnly<T>) continue;
      CAPTURE(k);
      CAPTURE(rounds_result);
      const GemmPlan<T> plan =
          plan_gemm<T>({.m = 70, .n = 5000, .k = k, .rounds_result = rounds_result}, 2, kTile);
      CHECK(most_workspace_bytes(plan, k) == most_bytes_by_trial(plan, k));
    }
  }
  // At once, for however many there are.
  const GemmPlan<T> plan = plan_gemm<T>({.m = 70, .n = 80, .k = 1LL << 40}, 1, kTile);
  CHECK(most_workspace_bytes(plan, plan.size.k) == most_bytes_by_trial(plan, 4000));
}

TEST_CASE("gemm: bf16, with results in bf16 and f32") {
  if (!has_avx512_bf16()) {
    MESSAGE("this processor has no AVX512_BF16");
    return;
  }
  std::vector<Case> cases = kCases;
  // Several blocks of k, odd lines, and the second step of the last pair missing.
  cases.push_back({.size = {.m = 40, .n = 50, .k = 3333}, .transpose_b = true});
  cases.push_back({.size = {.m = 41, .n = 67, .k = 2049}, .transpose_a = true, .beta = 1.0});
  cases.push_back({.size = {.m = 300, .n = 320, .k = 96}, .beta = 1.0});
  for (const Case& test : cases) {
    check_bf16<float>(test, 0.0);
    check_bf16<BFloat16>(test, 0x1p-8);
  }
}

}  // namespace
}  // namespace trainscope::cpu
