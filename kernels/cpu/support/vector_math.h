// Elementary functions that the compiler can vectorise: polynomials for float, std:: for double.
// At most 2 ulp off (3 for the sigmoid, which is 0 where it should be below 3e-39). NaN gives NaN,
// infinities give the limits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace trainscope::cpu {

// e^x = 2^n e^r with |r| <= ln(2)/2 and e^r = 1 + s.
struct ExpParts {
  float s = 0.0F;
  std::int32_t n = 0;
};

// s = r + r^2 p(r), p a minimax polynomial (error 4e-9).
inline ExpParts exp_parts(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693145752F;  // 15 bits, so that n * kLn2High is exact
  constexpr float kLn2Low = 1.42860677e-6F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.38207339e-3F;
  p = p * r + 8.36867746e-3F;
  p = p * r + 4.16682661e-2F;
  p = p * r + 1.66665211e-1F;
  p = p * r + 4.99999940e-1F;
  return {.s = (r * r) * p + r,
          .n = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound)};
}

// 2^k for k in [-126, 127]
inline float power_of_two(std::int32_t k) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(k + 127) << 23);
}

inline float vector_exp(float x) {
  // Beyond these e^x is infinite or 0 in float. A NaN passes both comparisons unchanged.
  x = x > 89.0F ? 89.0F : x;
  x = x < -105.0F ? -105.0F : x;
  const ExpParts parts = exp_parts(x);
  // 2^n in two factors, because n goes from -152 to 129 and exponents end at -126 and 127.
  const std::int32_t half = parts.n >> 1;
  return (parts.s + 1.0F) * power_of_two(half) * power_of_two(parts.n - half);
}

// e^x for x <= 0, as of a softmax: 0 below -87.7, where e^x is less than 1e-38.
inline float vector_exp_of_negative(float x) {
  x = x < -88.0F ? -88.0F : x;
  const ExpParts parts = exp_parts(x);  // n >= -127, whose power counts as 0
  return parts.s * power_of_two(parts.n) + power_of_two(parts.n);
}

// e^x - 1 for x <= 0, exact near 0 too; a positive x counts as 0.
inline float vector_expm1(float x) {
  x = x > 0.0F ? 0.0F : x;
  x = x < -25.0F ? -25.0F : x;  // where the result is -1 already
  const ExpParts parts = exp_parts(x);
  const float power = power_of_two(parts.n);
  return power * parts.s + (power - 1.0F);
}

// 1 / (1 + e^-x)
inline float vector_sigmoid(float x) { return 1.0F / (1.0F + vector_exp(-x)); }

// x + x^3 p(x^2) near 0 (error 5e-9), else 1 - 2 / (e^2x + 1).
inline float vector_tanh(float x) {
  const float a = std::fabs(x);
  const float s = x * x;
  float p = -5.69229620e-3F;
  p = p * s + 2.06281673e-2F;
  p = p * s - 5.37365153e-2F;
  p = p * s + 1.33314058e-1F;
  p = p * s - 3.33332807e-1F;
  const float near = x + x * (s * p);
  const float far = std::copysign(1.0F - 2.0F / (vector_exp(2.0F * a) + 1.0F), x);
  return a < 0.625F ? near : far;
}

// x + x p(x^2) up to 1 (error 2e-9), else 1 - e^q(x), where q approximates the logarithm of erfc.
inline float vector_erf(float x) {
  const float a = std::fabs(x);
  const float s = x * x;
  float p = 7.80690300e-5F;
  p = p * s - 7.99785310e-4F;
  p = p * s + 5.18716220e-3F;
  p = p * s - 2.68533472e-2F;
  p = p * s + 1.12835790e-1F;
  p = p * s - 3.76126260e-1F;
  p = p * s + 1.28379166e-1F;
  const float near = x + x * p;
  const float t = a > 4.0F ? 4.0F : a;  // erfc(4) is below half an ulp of 1
  float q = 1.87970654e-4F;
  q = q * t - 2.96399556e-3F;
  q = q * t + 2.19064429e-2F;
  q = q * t - 1.03256159e-1F;
  q = q * t - 6.37965024e-1F;
  q = q * t - 1.12720227e+0F;
  q = q * t - 3.12469987e-4F;
  const float far = std::copysign(1.0F - vector_exp(q), x);
  return a < 1.0F ? near : far;
}

inline double vector_exp(double x) { return std::exp(x); }
inline double vector_exp_of_negative(double x) { return std::exp(x); }
inline double vector_expm1(double x) { return std::expm1(x > 0.0 ? 0.0 : x); }
inline double vector_sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double vector_tanh(double x) { return std::tanh(x); }
inline double vector_erf(double x) { return std::erf(x); }

}  // namespace trainscope::cpu
