// The noise of values whose first elements are not like the rest, that overflow, that are small or
// empty.
#include "engine/run/numerics/noise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace trainscope {
namespace {

constexpr std::int64_t kExamples = 8;

Tensor numbers(std::int64_t elements) {
  Tensor result({.dtype = DType::kF64, .shape = {kExamples, elements / kExamples}});
  for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i) {
    result.values<double>()[i] = 1.0 + 0.5 * std::sin(static_cast<double>(i));
  }
  return result;
}

// Relative errors of the first kHeadElements, and of those behind them.
struct Errors {
  double head = 0.0;
  double tail = 0.0;
};

Tensor with_errors(const Tensor& exact, Errors errors) {
  Tensor result = exact;
  for (std::size_t i = 0; i < static_cast<std::size_t>(exact.elements()); ++i) {
    const bool in_head = static_cast<std::int64_t>(i) < kHeadElements;
    const double sign = (i * 7919) % 13 < 6 ? 1.0 : -1.0;
    result.values<double>()[i] *= 1.0 + sign * (in_head ? errors.head : errors.tail);
  }
  return result;
}

ExampleOrder backwards() {
  ExampleOrder order(kExamples);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

TensorNoise noise_of(const Tensor& exact) {
  const std::span<const std::byte> bytes(exact.data(), exact.bytes());
  return {{exact}, profiler::summary_of(exact.dtype(), bytes), 1};
}

// `first`: of the batch as it is; `other`: of its examples backwards.
std::optional<double> measured(const Tensor& exact, Errors first, Errors other) {
  TensorNoise noise = noise_of(exact);
  noise.measure({with_errors(exact, first)});
  noise.measure({reordered(with_errors(exact, other), 0, backwards())}, backwards(), true);
  return noise.largest();
}

TEST_CASE("noise: the largest of the orders, of a value that is compared whole") {
  const Tensor exact = numbers(kHeadElements / 2);
  CHECK(*measured(exact, {.head = 1e-6}, {.head = 3e-6}) == doctest::Approx(3e-6).epsilon(0.25));
  CHECK(*measured(exact, {.head = 3e-6}, {.head = 1e-6}) == doctest::Approx(3e-6).epsilon(0.25));
}

TEST_CASE("noise: a head that is like the rest stands for it") {
  const Tensor exact = numbers(4 * kHeadElements);
  const Errors first{.head = 1e-6, .tail = 1e-6};
  CHECK(*measured(exact, first, {.head = 3e-6, .tail = 3e-6}) ==
        doctest::Approx(3e-6).epsilon(0.25));
  // It alone is read then.
  CHECK(*measured(exact, first, {.head = 3e-6}) == doctest::Approx(3e-6).epsilon(0.25));
}

TEST_CASE("noise: a quiet head says nothing of a noisy tail") {
  const Tensor exact = numbers(4 * kHeadElements);
  const double of_whole = 3e-6 * std::sqrt(0.75);
  CHECK(*measured(exact, {.tail = 1e-6}, {.tail = 3e-6}) ==
        doctest::Approx(of_whole).epsilon(0.25));
}

TEST_CASE("noise: a noisy head says nothing of a quiet tail") {
  const Tensor exact = numbers(16 * kHeadElements);
  const double of_whole = 1e-4 * std::sqrt(1.0 / 16.0);
  CHECK(*measured(exact, {.head = 1e-4}, {.head = 1e-4}) ==
        doctest::Approx(of_whole).epsilon(0.25));
}

TEST_CASE("noise: an order whose examples are elsewhere does not count") {
  const Tensor exact = numbers(4096);
  TensorNoise noise = noise_of(exact);
  noise.measure({with_errors(exact, {.head = 1e-6})});
  ExampleOrder other = backwards();
  std::swap(other[0], other[1]);
  noise.measure({reordered(exact, 0, other)}, backwards(), true);
  CHECK(*noise.largest() == doctest::Approx(1e-6).epsilon(0.25));
  // What is a sum over examples has none: it is compared as it is.
  noise.measure({with_errors(exact, {.head = 3e-6})}, backwards(), true);
  CHECK(*noise.largest() == doctest::Approx(3e-6).epsilon(0.25));
}

TEST_CASE("noise: of elements that overflow nothing is known, of those around a mask all is") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {inf, -inf, std::nan("")}) {
    const Tensor exact = numbers(4096);
    Tensor rounded = with_errors(exact, {.head = 1e-6});
    rounded.values<double>()[100] = bad;
    TensorNoise overflows = noise_of(exact);
    overflows.measure({rounded});
    overflows.measure({reordered(rounded, 0, backwards())}, backwards(), true);
    CHECK_FALSE(overflows.largest().has_value());
    Tensor masked = exact;
    masked.values<double>()[100] = bad;
    TensorNoise known = noise_of(masked);
    known.measure({rounded});
    REQUIRE(known.largest().has_value());
    CHECK(*known.largest() == doctest::Approx(1e-6).epsilon(0.25));
  }
}

TEST_CASE("noise: a norm that is too large is none") {
  const Tensor exact = numbers(4096);
  Tensor huge = exact;
  for (double& x : huge.values<double>()) x *= 1e200;  // whose squares no double holds
  TensorNoise noise = noise_of(huge);
  noise.measure({exact});
  CHECK_FALSE(noise.largest().has_value());
}

TEST_CASE("noise: one element, zeros and no elements") {
  const Tensor one = Tensor::of<double>(Shape{1}, std::vector<double>{2.0});
  TensorNoise of_one = noise_of(one);
  of_one.measure({Tensor::of<double>(Shape{1}, std::vector<double>{2.5})});
  CHECK(*of_one.largest() == doctest::Approx(0.25));
  for (const Shape& shape : {Shape{kExamples, 3}, Shape{0}, Shape{kExamples, 0}}) {
    const Tensor zeros({.dtype = DType::kF64, .shape = shape});
    TensorNoise noise = noise_of(zeros);
    noise.measure({zeros});
    noise.measure({zeros}, backwards(), true);
    CHECK(noise.largest() == std::optional(0.0));
  }
}

// Terms that cancel in f64, and not in f32.
TEST_CASE("noise: of what is 0 the error itself") {
  const Tensor zeros({.dtype = DType::kF64, .shape = {kExamples, 16}});
  Tensor rounded = zeros;
  for (double& x : rounded.values<double>()) x = 1e-7;
  TensorNoise noise = noise_of(zeros);
  noise.measure({rounded});
  REQUIRE(noise.largest().has_value());
  CHECK(*noise.largest() == doctest::Approx(1e-7 * std::sqrt(kExamples * 16.0)).epsilon(0.25));
}

TEST_CASE("noise: a head of zeros says nothing of the rest") {
  Tensor exact = numbers(4 * kHeadElements);
  std::ranges::fill(exact.values<double>().first(kHeadElements), 0.0);
  Tensor rounded = with_errors(exact, {.tail = 1e-6});
  // By itself it has an error as large as the share that all of it has.
  rounded.values<double>()[0] = 1e-6;
  TensorNoise noise = noise_of(exact);
  noise.measure({rounded});
  noise.measure({reordered(with_errors(exact, {.tail = 3e-6}), 0, backwards())}, backwards(), true);
  CHECK(*noise.largest() == doctest::Approx(3e-6).epsilon(0.25));
}

TEST_CASE("noise: a gradient is divided by its loss scale") {
  const Tensor exact = numbers(4096);
  Tensor scaled = with_errors(exact, {.head = 1e-6});
  for (double& x : scaled.values<double>()) x *= 1024.0;
  TensorNoise noise = noise_of(exact);
  noise.measure({.tensor = scaled, .divisor = 1024.0});
  CHECK(*noise.largest() == doctest::Approx(1e-6).epsilon(0.25));
}

}  // namespace
}  // namespace trainscope
