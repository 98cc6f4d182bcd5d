// Arithmetic of integers of 8 to 64 bits, with and without a sign, against that of C++ on each
// number.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

// Extremes, their neighbours and small numbers.
template <class T>
std::vector<T> numbers() {
  using Limits = std::numeric_limits<T>;
  const T low = Limits::min();
  const T high = Limits::max();
  return {low,
          static_cast<T>(low + 1),
          T{0},
          T{1},
          T{2},
          T{7},
          static_cast<T>(high / 2),
          high,
          static_cast<T>(high - 1),
          static_cast<T>(-1),
          static_cast<T>(-3)};
}

// Each number with each.
template <class T>
struct Pairs {
  std::vector<T> a;
  std::vector<T> b;
  Pairs() {
    for (T x : numbers<T>()) {
      for (T y : numbers<T>()) {
        a.push_back(x);
        b.push_back(y);
      }
    }
  }
  Shape shape() const { return {static_cast<std::int64_t>(a.size())}; }
};

template <class T>
std::vector<Literal> binary(std::string_view op, DType result, Params params = NoParams{}) {
  const Pairs<T> pairs;
  return call(
      {.op = op,
       .key = kDTypeOf<T>,
       .params = std::move(params),
       .inputs = {Literal::of<T>(pairs.shape(), pairs.a), Literal::of<T>(pairs.shape(), pairs.b)},
       .outputs = {{.dtype = result, .shape = pairs.shape()}}});
}

template <class T, class F>
void check_arithmetic(std::string_view op, F expected, Params params = NoParams{}) {
  const Pairs<T> pairs;
  const std::vector<T> got = binary<T>(op, kDTypeOf<T>, std::move(params))[0].template values<T>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const T want = expected(pairs.a[i], pairs.b[i]);
    CHECK_MESSAGE(got[i] == want, op, " of ", +pairs.a[i], " and ", +pairs.b[i], " is ", +got[i],
                  ", not ", +want);
  }
}

template <class T, class F>
void check_comparison(std::string_view op, F expected) {
  const Pairs<T> pairs;
  const std::vector<bool> got = binary<T>(op, DType::kBool)[0].template values<bool>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK_MESSAGE(got[i] == expected(pairs.a[i], pairs.b[i]), op, " of ", +pairs.a[i], " and ",
                  +pairs.b[i]);
  }
}

// In 128 bits nothing of these wraps around.
using Wide = __int128;
template <class T>
T wrapped(Wide x) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x));
}

template <class T>
T floored_rest(T a, T b) {
  if (b == 0) return 0;
  const Wide rest = Wide{a} % Wide{b};
  return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

}  // namespace

TEST_CASE_TEMPLATE("integers: arithmetic wraps around, quotients are those of the numbers", T,
                   std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                   std::uint64_t) {
  check_arithmetic<T>("Add", [](T a, T b) { return wrapped<T>(Wide{a} + b); });
  check_arithmetic<T>("Sub", [](T a, T b) { return wrapped<T>(Wide{a} - b); });
  check_arithmetic<T>("Mul", [](T a, T b) {
    return wrapped<T>(
        static_cast<Wide>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)));
  });
  check_arithmetic<T>("Div", [](T a, T b) { return b == 0 ? T{0} : wrapped<T>(Wide{a} / b); });
  check_arithmetic<T>("Mod", floored_rest<T>, ModParams{});
  check_arithmetic<T>(
      "Mod", [](T a, T b) { return b == 0 ? T{0} : wrapped<T>(Wide{a} % b); },
      ModParams{.truncated = true});
  check_arithmetic<T>("Maximum", [](T a, T b) { return a > b ? a : b; });
  check_arithmetic<T>("Minimum", [](T a, T b) { return a < b ? a : b; });
  check_arithmetic<T>("BitwiseAnd", [](T a, T b) { return static_cast<T>(a & b); });
  check_arithmetic<T>("BitwiseOr", [](T a, T b) { return static_cast<T>(a | b); });
  check_arithmetic<T>("BitwiseXor", [](T a, T b) { return static_cast<T>(a ^ b); });
  constexpr Wide kBits = 8 * sizeof(T);
  check_arithmetic<T>("ShiftLeft", [](T a, T b) {
    return b < 0 || b >= kBits ? T{0} : wrapped<T>(Wide{a} * (Wide{1} << b));
  });
  check_arithmetic<T>("ShiftRight", [](T a, T b) {  // rounds down
    return wrapped<T>(Wide{a} >> (b < 0 || b >= kBits ? kBits : Wide{b}));
  });
  check_comparison<T>("Less", [](T a, T b) { return a < b; });
  check_comparison<T>("GreaterOrEqual", [](T a, T b) { return a >= b; });
  check_comparison<T>("Equal", [](T a, T b) { return a == b; });
}

TEST_CASE_TEMPLATE("integers: functions of one", T, std::uint8_t, std::int8_t, std::uint16_t,
                   std::int16_t, std::uint32_t, std::uint64_t) {
  const std::vector<T> x = numbers<T>();
  const Shape shape{static_cast<std::int64_t>(x.size())};
  const auto unary = [&](std::string_view op) {
    return call({.op = op,
                 .key = kDTypeOf<T>,
                 .inputs = {Literal::of<T>(shape, x)},
                 .outputs = {{.dtype = kDTypeOf<T>, .shape = shape}}})[0]
        .template values<T>();
  };
  const std::vector<T> negative = unary("Neg");
  const std::vector<T> magnitude = unary("Abs");
  const std::vector<T> sign = unary("Sign");
  const std::vector<T> other_bits = unary("BitwiseNot");
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(negative[i] == wrapped<T>(-Wide{x[i]}));
    CHECK(magnitude[i] == wrapped<T>(x[i] < 0 ? -Wide{x[i]} : Wide{x[i]}));
    CHECK(other_bits[i] == static_cast<T>(~x[i]));
    CHECK(sign[i] == static_cast<T>((x[i] > 0 ? 1 : 0) - (x[i] < 0 ? 1 : 0)));
  }
}

TEST_CASE_TEMPLATE("integers: reductions, places of extremes, running sums", T, std::uint8_t,
                   std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::uint64_t) {
  const std::vector<T> x = numbers<T>();
  const Shape shape{static_cast<std::int64_t>(x.size())};
  ReduceParams all;
  all.reduced[0] = true;
  const auto reduced = [&](std::string_view op) {
    return call({.op = op,
                 .key = kDTypeOf<T>,
                 .params = all,
                 .inputs = {Literal::of<T>(shape, x)},
                 .outputs = {{.dtype = kDTypeOf<T>, .shape = {}}}})[0]
        .template values<T>()[0];
  };
  Wide sum = 0;
  for (T number : x) sum += number;
  CHECK(reduced("ReduceSum") == wrapped<T>(sum));
  CHECK(reduced("ReduceMax") == std::numeric_limits<T>::max());
  CHECK(reduced("ReduceMin") == std::numeric_limits<T>::min());

  const std::vector<std::int64_t> place =
      call({.op = "ArgMax",
            .key = kDTypeOf<T>,
            .params = ArgParams{.axis = 0},
            .inputs = {Literal::of<T>(shape, x)},
            .outputs = {{.dtype = DType::kI64, .shape = {}}}})[0]
          .template values<std::int64_t>();
  CHECK(x[static_cast<std::size_t>(place[0])] == std::numeric_limits<T>::max());

  const std::vector<T> running = call({.op = "CumSum",
                                       .key = kDTypeOf<T>,
                                       .params = ScanParams{.axis = 0},
                                       .inputs = {Literal::of<T>(shape, x), Literal::absent()},
                                       .outputs = {{.dtype = kDTypeOf<T>, .shape = shape}}})[0]
                                     .template values<T>();
  CHECK(running.back() == wrapped<T>(sum));
}

}  // namespace trainscope::cpu
