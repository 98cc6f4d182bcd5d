// Attention whose weights drop out: the mask is that of RandomDropout, for any sizes and threads.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "kernels/api/random.h"
#include "tests/kernels/cpu/view_runner.h"

namespace trainscope::cpu {

void add_attention(KernelTable& table);

namespace {

constexpr DropoutParams kDropout{.ratio = 0.3, .seed = 0x123456789ABCDEF0, .stream = 6};
constexpr std::int64_t kStep = 5;

struct Case {
  std::int64_t batch = 2;
  std::int64_t tokens = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 3;
  bool causal = false;

  std::int64_t scores() const { return batch * heads * tokens * keys; }
};

template <typename T>
std::vector<T> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(random_normal(seed, 1, i));
  }
  return values;
}

// Results of Attention and its gradient, on heads as wide as there are keys.
template <typename T>
struct Results {
  std::vector<T> y, statistics, dq, dk, dv;
};

template <typename T>
Results<T> attention(const Case& c, std::vector<T> v, int threads) {
  KernelTable table;
  add_attention(table);
  const Shape by_query{c.batch, c.tokens, c.heads, c.keys};
  const Shape by_key{c.batch, c.keys, c.heads, c.keys};
  std::vector<T> q = numbers<T>(by_query.elements(), 1);
  std::vector<T> k = numbers<T>(by_key.elements(), 2);
  std::vector<T> dy = numbers<T>(by_query.elements(), 3);
  Results<T> r{.y = std::vector<T>(q.size()),
               .statistics = std::vector<T>(static_cast<std::size_t>(2 * c.scores() / c.keys)),
               .dq = std::vector<T>(q.size()),
               .dk = std::vector<T>(k.size()),
               .dv = std::vector<T>(k.size())};
  const Shape rows{c.batch, c.heads, c.tokens, 2};
  std::int64_t step = kStep;
  const AttentionParams params{
      .heads = c.heads, .kv_heads = c.heads, .scale = 0.1, .causal = c.causal, .dropout = kDropout};
  const std::vector<TensorView> inputs{view_of(q, by_query), view_of(k, by_key), view_of(v, by_key),
                                       TensorView{.type = {}, .data = nullptr, .present = false},
                                       scalar_view(step)};
  run_on_views(table, {.op = "Attention",
                       .dtype = kDTypeOf<T>,
                       .params = params,
                       .inputs = inputs,
                       .outputs = {view_of(r.y, by_query), view_of(r.statistics, rows)},
                       .threads = threads});
  std::vector<TensorView> all{view_of(dy, by_query), view_of(r.y, by_query),
                              view_of(r.statistics, rows)};
  all.insert(all.end(), inputs.begin(), inputs.end());
  run_on_views(table,
               {.op = "AttentionGrad",
                .dtype = kDTypeOf<T>,
                .params = params,
                .inputs = all,
                .outputs = {view_of(r.dq, by_query), view_of(r.dk, by_key), view_of(r.dv, by_key)},
                .threads = threads});
  return r;
}

// Values that are the unit matrix for each head: the results are the weights.
template <typename T>
std::vector<T> unit_values(const Case& c) {
  std::vector<T> v(static_cast<std::size_t>(c.batch * c.keys * c.heads * c.keys));
  for (std::int64_t i = 0; i < c.batch * c.keys * c.heads; ++i) {
    v[static_cast<std::size_t>(i * c.keys + i / c.heads % c.keys)] = T{1};
  }
  return v;
}

template <typename T>
void check_mask(const Case& c) {
  CAPTURE(c.tokens);
  CAPTURE(c.keys);
  const std::vector<T> y = attention<T>(c, unit_values<T>(c), 1).y;
  const std::uint64_t key = random_u64(kDropout.seed, kDropout.stream, kStep);
  int wrong = 0;
  for (std::int64_t i = 0; i < c.scores(); ++i) {
    const std::int64_t j = i % c.keys;
    const std::int64_t query = i / c.keys % c.tokens;
    const std::int64_t head = i / c.keys / c.tokens % c.heads;
    const std::int64_t batch = i / c.keys / c.tokens / c.heads;
    const float drawn = random_uniform(key, kDropout.stream, static_cast<std::uint64_t>(i));
    const bool kept = static_cast<double>(drawn) >= kDropout.ratio && (!c.causal || j <= query);
    const std::int64_t at = ((batch * c.tokens + query) * c.heads + head) * c.keys + j;
    if ((y[static_cast<std::size_t>(at)] != T{0}) != kept) ++wrong;
  }
  CHECK(wrong == 0);
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// The last weights are not at the end of a block of four random numbers.
constexpr Case kCases[] = {{.tokens = 5, .keys = 7},
                           {.tokens = 50, .keys = 17},
                           {.batch = 1, .tokens = 3, .keys = 601, .heads = 1},
                           {.tokens = 101, .keys = 101, .heads = 2, .causal = true}};

}  // namespace

TEST_CASE("attention: the weights that drop out are those of RandomDropout") {
  for (const Case& each : kCases) {
    check_mask<float>(each);
    check_mask<double>(each);
  }
}

TEST_CASE("attention: what is left of the weights is scaled, f32 as f64") {
  for (const Case& each : kCases) {
    const auto count = static_cast<std::int64_t>(each.batch * each.keys * each.heads * each.keys);
    const Results<float> single = attention<float>(each, numbers<float>(count, 4), 1);
    const Results<double> twice = attention<double>(each, numbers<double>(count, 4), 1);
    const auto largest_difference = [](const std::vector<float>& a, const std::vector<double>& b) {
      double largest = 0.0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
      }
      return largest;
    };
    CHECK(largest_difference(single.y, twice.y) < 1e-5);
    CHECK(largest_difference(single.dq, twice.dq) < 1e-4);
    CHECK(largest_difference(single.dk, twice.dk) < 1e-4);
    CHECK(largest_difference(single.dv, twice.dv) < 1e-4);
  }
}

TEST_CASE("attention: dropout draws the same on one thread and on two") {
  for (const Case& each : kCases) {
    const auto count = static_cast<std::int64_t>(each.batch * each.keys * each.heads * each.keys);
    const Results<float> one = attention<float>(each, numbers<float>(count, 4), 1);
    const Results<float> two = attention<float>(each, numbers<float>(count, 4), 2);
    CHECK(same_bits(one.y, two.y));
    CHECK(same_bits(one.dq, two.dq));
    CHECK(same_bits(one.dk, two.dk));
    CHECK(same_bits(one.dv, two.dv));
  }
}

}  // namespace trainscope::cpu
