// Loops over the elements of traces in wide registers, where the processor has them. Compiled for
// AVX2 without fused multiply-adds, which would round otherwise than the same loop elsewhere.
#pragma once

namespace trainscope::profiler {

#if defined(__x86_64__)
// f() with all that it calls and whose code is visible inlined.
template <class F>
[[gnu::target("avx512f,avx512dq,avx512vl"), gnu::flatten, gnu::noinline]] void in_avx512(
    const F& f) {
  f();
}
template <class F>
[[gnu::target("avx2"), gnu::flatten, gnu::noinline]] void in_avx2(const F& f) {
  f();
}
#endif

// For loops of integers, sums and copies: nothing that could become a fused multiply-add.
template <class F>
void in_widest_registers(const F& f) {
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0 &&
                                 __builtin_cpu_supports("avx512dq") != 0 &&
                                 __builtin_cpu_supports("avx512vl") != 0;
  if (has_avx512) return in_avx512(f);
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return in_avx2(f);
#endif
  f();
}

// For sums over four lanes.
template <class F>
void in_four_lanes(const F& f) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return in_avx2(f);
#endif
  f();
}

}  // namespace trainscope::profiler
