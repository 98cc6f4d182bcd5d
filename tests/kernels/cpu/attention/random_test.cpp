// RandomDropout: its mask is the documented function of (seed, stream, step, index).
#include "kernels/api/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu/view_runner.h"

namespace trainscope::cpu {

void add_random(KernelTable& table);

namespace {

template <typename T>
std::vector<T> dropout(std::size_t n, const DropoutParams& params, std::int64_t step,
                       int threads = 1) {
  KernelTable table;
  add_random(table);
  std::vector<T> x(n, T{1});
  std::vector<T> y(n);
  const Shape shape = {static_cast<std::int64_t>(n)};
  run_on_views(table, {.op = "RandomDropout",
                       .dtype = kDTypeOf<T>,
                       .params = params,
                       .inputs = {view_of(x, shape), scalar_view(step)},
                       .outputs = {view_of(y, shape)},
                       .threads = threads});
  return y;
}

}  // namespace

TEST_CASE("RandomDropout: element i is kept when its uniform number reaches the ratio") {
  const DropoutParams params{
      .ratio = 0.3, .seed = 0x123456789ABCDEF0, .stream = 0xFEDCBA9876543210};
  const std::uint64_t key = random_u64(params.seed, params.stream, 5);
  const std::vector<float> y = dropout<float>(1000, params, 5);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const bool kept = static_cast<double>(random_uniform(key, params.stream, i)) >= 0.3;
    CHECK(y[i] == (kept ? static_cast<float>(1.0 / 0.7) : 0.0F));
  }
}

TEST_CASE("RandomDropout: f32 and f64, one thread and two have the same mask") {
  const DropoutParams params{.ratio = 0.5, .seed = 1, .stream = 2};
  constexpr std::size_t kCount = 100'003;
  const std::vector<float> single = dropout<float>(kCount, params, 7);
  const std::vector<double> two = dropout<double>(kCount, params, 7, 2);
  CHECK(std::equal(single.begin(), single.end(), two.begin(),
                   [](float a, double b) { return static_cast<double>(a) == b; }));
}

TEST_CASE("RandomDropout: the share of zeros is the ratio; steps and streams are independent") {
  constexpr std::size_t kCount = 200'000;
  const DropoutParams params{.ratio = 0.1, .seed = 3, .stream = 4};
  const DropoutParams other{.ratio = 0.1, .seed = 3, .stream = 5};
  const std::vector<float> masks[3] = {dropout<float>(kCount, params, 1),
                                       dropout<float>(kCount, params, 2),
                                       dropout<float>(kCount, other, 1)};
  // Five standard deviations of a binomial count.
  const auto bound = [](double p) { return 5.0 * std::sqrt(kCount * p * (1.0 - p)); };
  for (const std::vector<float>& mask : masks) {
    const auto zeros = static_cast<double>(std::count(mask.begin(), mask.end(), 0.0F));
    CHECK(std::abs(zeros - 0.1 * kCount) < bound(0.1));
  }
  for (int k : {1, 2}) {
    double both = 0.0;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (masks[0][i] == 0.0F && masks[k][i] == 0.0F) both += 1.0;
    }
    CHECK(std::abs(both - 0.01 * kCount) < bound(0.01));
  }
}

TEST_CASE("RandomDropout: ratio 0 keeps everything") {
  const std::vector<double> y = dropout<double>(300, {.ratio = 0.0, .seed = 1, .stream = 1}, 1);
  CHECK(y == std::vector<double>(300, 1.0));
}

}  // namespace trainscope::cpu
