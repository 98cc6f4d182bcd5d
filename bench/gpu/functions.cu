// Bits of the device's approximate and library functions against f64, over every f32 there is:
// largest error, how many results are rounded right, a hash of all results, and for some each
// result's distance from the right one over a binade.
#include <cstring>
#include <fstream>

#include "bench/gpu/support.cuh"

namespace {

using trainscope::bench::check;
using trainscope::bench::check_launch;
using trainscope::bench::DeviceArray;
using trainscope::bench::Line;

// One instruction each, by its name in PTX; .ftz flushes subnormal inputs and results.
#define INSTRUCTION(name, text)                       \
  __device__ float name(float x) {                    \
    float y;                                          \
    asm volatile(text " %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                         \
  }
INSTRUCTION(ex2_approx, "ex2.approx.f32")
INSTRUCTION(ex2_approx_ftz, "ex2.approx.ftz.f32")
INSTRUCTION(lg2_approx, "lg2.approx.f32")
INSTRUCTION(lg2_approx_ftz, "lg2.approx.ftz.f32")
INSTRUCTION(rsqrt_approx, "rsqrt.approx.f32")
INSTRUCTION(rsqrt_approx_ftz, "rsqrt.approx.ftz.f32")
INSTRUCTION(sqrt_approx, "sqrt.approx.f32")
INSTRUCTION(rcp_approx, "rcp.approx.f32")
INSTRUCTION(rcp_approx_ftz, "rcp.approx.ftz.f32")
INSTRUCTION(tanh_approx, "tanh.approx.f32")
INSTRUCTION(sin_approx, "sin.approx.f32")
INSTRUCTION(cos_approx, "cos.approx.f32")
#undef INSTRUCTION

// ROW(name, what is measured, what is right in f64)
#define FUNCTIONS(ROW)                                   \
  ROW("ex2.approx", ex2_approx(x), exp2(d))              \
  ROW("ex2.approx.ftz", ex2_approx_ftz(x), exp2(d))      \
  ROW("lg2.approx", lg2_approx(x), log2(d))              \
  ROW("lg2.approx.ftz", lg2_approx_ftz(x), log2(d))      \
  ROW("rsqrt.approx", rsqrt_approx(x), rsqrt(d))         \
  ROW("rsqrt.approx.ftz", rsqrt_approx_ftz(x), rsqrt(d)) \
  ROW("sqrt.approx", sqrt_approx(x), sqrt(d))            \
  ROW("rcp.approx", rcp_approx(x), 1.0 / d)              \
  ROW("rcp.approx.ftz", rcp_approx_ftz(x), 1.0 / d)      \
  ROW("tanh.approx", tanh_approx(x), tanh(d))            \
  ROW("sin.approx", sin_approx(x), sin(d))               \
  ROW("cos.approx", cos_approx(x), cos(d))               \
  ROW("__expf", __expf(x), exp(d))                       \
  ROW("__logf", __logf(x), log(d))                       \
  ROW("expf", expf(x), exp(d))                           \
  ROW("exp2f", exp2f(x), exp2(d))                        \
  ROW("expm1f", expm1f(x), expm1(d))                     \
  ROW("logf", logf(x), log(d))                           \
  ROW("log2f", log2f(x), log2(d))                        \
  ROW("log1pf", log1pf(x), log1p(d))                     \
  ROW("tanhf", tanhf(x), tanh(d))                        \
  ROW("erff", erff(x), erf(d))                           \
  ROW("erfcf", erfcf(x), erfc(d))                        \
  ROW("sinf", sinf(x), sin(d))                           \
  ROW("cosf", cosf(x), cos(d))                           \
  ROW("rsqrtf", rsqrtf(x), rsqrt(d))                     \
  ROW("sqrtf", sqrtf(x), sqrt(d))                        \
  ROW("1 / x", 1.0f / x, 1.0 / d)                        \
  ROW("1 / sqrtf", 1.0f / sqrtf(x), rsqrt(d))

struct Summary {
  unsigned long long compared;      // inputs whose right answer is finite
  unsigned long long right;         // bits as if rounded once
  unsigned long long within_one;    // at most one unit in the last place off that
  unsigned long long far;           // more than 1000 units off
  unsigned long long not_a_number;  // results that are no number where the right one is, or so
  unsigned long long hash;          // of each input with its result, whatever the order
  unsigned long long worst;         // thousandths of a unit << 32 | bits of the input
};

constexpr double kFar = 1000;

// Distance in units of the last place of the right answer's f32; units of subnormals at the bottom.
__device__ double units_between(float result, double right) {
  const auto rounded = static_cast<float>(right);
  const int exponent = max(ilogbf(rounded == 0.0f ? 1e-45f : rounded), -126);
  return fabs(static_cast<double>(result) - right) / ldexp(1.0, exponent - 23);
}

__device__ void add_result(Summary& sum, float x, float y, double right) {
  const std::uint32_t in = __float_as_uint(x);
  // The bits of a result that is no number are left out.
  const std::uint32_t out = isnan(y) ? 0x7fffffffu : __float_as_uint(y);
  sum.hash += trainscope::bench::mixed((static_cast<std::uint64_t>(in) << 32) | out);
  if (isnan(right) || isinf(right)) {
    if (isnan(y) != isnan(right)) ++sum.not_a_number;
    return;
  }
  if (isnan(y)) {
    ++sum.not_a_number;
    return;
  }
  const auto rounded = static_cast<float>(right);
  ++sum.compared;
  if (y == rounded) ++sum.right;
  if (isinf(rounded) || isinf(y)) {
    if (y != rounded) ++sum.far;
    return;
  }
  const double units = units_between(y, right);
  if (units <= 1.0) ++sum.within_one;
  if (units > kFar) {
    ++sum.far;
    return;
  }
  const auto worst = (static_cast<unsigned long long>(units * 1000.0) << 32) | in;
  sum.worst = max(sum.worst, worst);
}

__device__ void combine(Summary* total, const Summary& sum) {
  atomicAdd(&total->compared, sum.compared);
  atomicAdd(&total->right, sum.right);
  atomicAdd(&total->within_one, sum.within_one);
  atomicAdd(&total->far, sum.far);
  atomicAdd(&total->not_a_number, sum.not_a_number);
  atomicAdd(&total->hash, sum.hash);
  atomicMax(&total->worst, sum.worst);
}

// Every f32 whose number is a multiple of `stride`.
template <class Function>
__global__ void sweep(Function function, unsigned long long stride, Summary* total) {
  Summary sum = {};
  const unsigned long long first =
      (static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x) * stride;
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x * stride;
  for (unsigned long long i = first; i < (1ull << 32); i += step) {
    const float x = __uint_as_float(static_cast<std::uint32_t>(i));
    add_result(sum, x, function.result(x), function.right(x));
  }
  combine(total, sum);
}

// Bits of the result less those of the right one, cut to a byte, of the 2^23 numbers whose bits
// begin as `first` has them.
template <class Function>
__global__ void distances(Function function, unsigned first, signed char* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = __uint_as_float(first | i);
  const auto right = static_cast<float>(function.right(x));
  const int distance = __float_as_int(function.result(x)) - __float_as_int(right);
  out[i] = static_cast<signed char>(max(-128, min(127, distance)));
}

template <class Function>
__global__ void sample(Function function, const float* in, float* out) {
  out[threadIdx.x] = function.result(in[threadIdx.x]);
}

constexpr int kSamples = 64;

std::vector<float> sampled_inputs() {
  std::vector<float> inputs = {0.0f,   -0.0f, 1.0f,   -1.0f,   0.5f,    2.0f,    3.0f,   -3.0f,
                               0.1f,   10.0f, 88.0f,  -88.0f,  89.0f,   -104.0f, 1e-10f, 1e10f,
                               1e-40f, 1e38f, 127.5f, -126.5f, -149.0f, 128.0f};
  while (inputs.size() < kSamples)
    inputs.push_back(8 * trainscope::bench::random_number(7, inputs.size()));
  return inputs;
}

template <class Function>
void report(const char* name, const Function& function, unsigned long long stride) {
  DeviceArray<Summary> total(1);
  check(cudaMemset(total.get(), 0, sizeof(Summary)), "cudaMemset");
  sweep<<<2112, 256>>>(function, stride, total.get());
  check_launch(name);
  const Summary sum = total.host()[0];
  const std::vector<float> inputs = sampled_inputs();
  DeviceArray<float> in(kSamples);
  DeviceArray<float> out(kSamples);
  check(cudaMemcpy(in.get(), inputs.data(), kSamples * sizeof(float), cudaMemcpyHostToDevice),
        name);
  sample<<<1, kSamples>>>(function, in.get(), out.get());
  const std::vector<float> outputs = out.host();
  std::string samples;
  for (std::size_t i = 0; i < kSamples; ++i) {
    std::uint32_t bits[2];
    std::memcpy(&bits[0], &inputs[i], 4);
    std::memcpy(&bits[1], &outputs[i], 4);
    char text[40];
    std::snprintf(text, sizeof text, "%s[\"%08x\", \"%08x\"]", i == 0 ? "" : ", ", bits[0],
                  bits[1]);
    samples += text;
  }
  Line("function")
      .text("name", name)
      .count("stride", static_cast<long long>(stride))
      .count("compared", static_cast<long long>(sum.compared))
      .count("rounded_right", static_cast<long long>(sum.right))
      .count("within_one_unit", static_cast<long long>(sum.within_one))
      .count("more_than_1000_units", static_cast<long long>(sum.far))
      .count("not_a_number", static_cast<long long>(sum.not_a_number))
      .number("largest_units", static_cast<double>(sum.worst >> 32) / 1000.0)
      .bits("at", sum.worst & 0xffffffffu)
      .bits("hash", sum.hash)
      .raw("samples", "[" + samples + "]")
      .print();
}

template <class Function>
void write_distances(const std::string& folder, const std::string& name, const Function& function,
                     unsigned first) {
  DeviceArray<signed char> out(1 << 23);
  distances<<<(1 << 23) / 256, 256>>>(function, first, out.get());
  check_launch(name.c_str());
  const std::vector<signed char> bytes = out.host();
  char file[80];
  std::snprintf(file, sizeof file, "%s-%08x.i8", name.c_str(), first);
  std::ofstream stream(folder + "/" + file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

template <class Result, class Right>
struct Function {
  Result result;
  Right right;
};

template <class Result, class Right>
__host__ Function<Result, Right> function_of(Result result, Right right) {
  return {result, right};
}

#define ROW_OF(result_expression, right_expression)                 \
  function_of([] __device__(float x) { return result_expression; }, \
              [] __device__(float x) {                              \
                [[maybe_unused]] const double d = x;                \
                return right_expression;                            \
              })

// Binades from 1 and 2, where they tell all; below 1 and below 0 where arguments are reduced.
void write_all_distances(const std::string& folder) {
  for (const unsigned first : {0x3e800000u, 0x3f000000u, 0x3f800000u, 0x40000000u, 0xbe800000u,
                               0xbf000000u, 0xbf800000u, 0xc0000000u})
    write_distances(folder, "ex2", ROW_OF(ex2_approx_ftz(x), exp2(d)), first);
  for (const unsigned first : {0x3e800000u, 0x3f000000u, 0x3f800000u, 0x40000000u, 0x41000000u})
    write_distances(folder, "lg2", ROW_OF(lg2_approx_ftz(x), log2(d)), first);
  write_distances(folder, "rcp", ROW_OF(rcp_approx_ftz(x), 1.0 / d), 0x3f800000u);
  for (const unsigned first : {0x3f800000u, 0x40000000u}) {
    write_distances(folder, "rsqrt", ROW_OF(rsqrt_approx_ftz(x), rsqrt(d)), first);
    write_distances(folder, "sqrt", ROW_OF(sqrt_approx(x), sqrt(d)), first);
  }
  for (const unsigned first : {0x3e800000u, 0x3f000000u, 0x3f800000u, 0x40000000u})
    write_distances(folder, "tanh", ROW_OF(tanh_approx(x), tanh(d)), first);
}

}  // namespace

// functions [FOLDER [STRIDE]]: FOLDER takes the distances; of every STRIDE-th f32, each where none.
int main(int argument_count, char** arguments) {
  const unsigned long long stride =
      argument_count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
#define ROW(name, result, right) report(name, ROW_OF(result, right), stride);
  FUNCTIONS(ROW)
#undef ROW
  if (argument_count > 1) write_all_distances(arguments[1]);
  return 0;
}
