// RotaryEmbedding: exact values, both orders of pairs, elements that stay, and in place.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

constexpr AxisParams kHalves{.axis = 0};
constexpr AxisParams kNeighbours{.axis = 1};

struct Tables {
  Literal cos;
  Literal sin;
};

template <class T>
std::vector<T> rotate(std::string_view op, const AxisParams& params, const Literal& x,
                      const Tables& tables, int threads = 1) {
  return call({.op = op,
               .key = kDTypeOf<T>,
               .params = params,
               .inputs = {x, tables.cos, tables.sin},
               .outputs = {x.type},
               .threads = threads})[0]
      .template values<T>();
}

}  // namespace

TEST_CASE("rotary: rotations by 90 degrees, of halves and of neighbours") {
  const Literal x = Literal::of<double>({2, 5}, {1, 2, 3, 4, 9, 5, 6, 7, 8, 9});
  // The first row stays, the first pair of the second one is rotated by 90 degrees.
  const Tables tables{.cos = Literal::of<double>({2, 2}, {1, 1, 0, 1}),
                      .sin = Literal::of<double>({2, 2}, {0, 0, 1, 0})};
  CHECK(rotate<double>("RotaryEmbedding", kHalves, x, tables) ==
        std::vector<double>{1, 2, 3, 4, 9, -7, 6, 5, 8, 9});
  CHECK(rotate<double>("RotaryEmbedding", kNeighbours, x, tables) ==
        std::vector<double>{1, 2, 3, 4, 9, -6, 5, 7, 8, 9});
  CHECK(rotate<double>("RotaryEmbeddingGrad", kHalves, x, tables) ==
        std::vector<double>{1, 2, 3, 4, 9, 7, 6, -5, 8, 9});
}

TEST_CASE("rotary: tables are broadcast, rotating back restores, threads change no bit") {
  const std::int64_t tokens = 37;
  const std::int64_t pairs = 19;
  const Shape shape{3, tokens, 5, 2 * pairs + 3};
  std::vector<float> x;
  std::vector<float> cosines;
  std::vector<float> sines;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    x.push_back(static_cast<float>(std::sin(0.37 * static_cast<double>(i))));
  }
  for (std::int64_t i = 0; i < tokens * pairs; ++i) {
    cosines.push_back(static_cast<float>(std::cos(0.11 * static_cast<double>(i))));
    sines.push_back(static_cast<float>(std::sin(0.11 * static_cast<double>(i))));
  }
  const Tables tables{.cos = Literal::of({tokens, 1, pairs}, cosines),
                      .sin = Literal::of({tokens, 1, pairs}, sines)};
  for (const AxisParams& params : {kHalves, kNeighbours}) {
    const bool interleaved = params.axis == 1;
    const Literal given = Literal::of(shape, x);
    const std::vector<float> y = rotate<float>("RotaryEmbedding", params, given, tables);
    CHECK(rotate<float>("RotaryEmbedding", params, given, tables, 3) == y);
    const std::vector<float> back =
        rotate<float>("RotaryEmbeddingGrad", params, Literal::of(shape, y), tables);
    double worst = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, static_cast<double>(std::fabs(back[i] - x[i])));
    }
    CHECK(worst < 4e-7);
    // Token 2 of the second example, head 4, pair 6.
    const std::size_t row = static_cast<std::size_t>(((tokens + 2) * 5 + 4) * (2 * pairs + 3));
    const std::size_t first = row + (interleaved ? 12 : 6);
    const std::size_t second = row + (interleaved ? 13 : 6 + static_cast<std::size_t>(pairs));
    const std::size_t angle = 2 * static_cast<std::size_t>(pairs) + 6;
    CHECK(y[first] ==
          doctest::Approx(x[first] * cosines[angle] - x[second] * sines[angle]).epsilon(1e-6));
    CHECK(y[second] ==
          doctest::Approx(x[second] * cosines[angle] + x[first] * sines[angle]).epsilon(1e-6));
  }
}

}  // namespace trainscope::cpu
