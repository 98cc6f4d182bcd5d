// Loops in the widest registers that the processor has: one source, compiled for AVX2 (the flags of
// this folder) and again for AVX-512, chosen when the program runs.
#pragma once

#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {

// f(arguments...), with all that it calls and whose code is visible inlined: no other function has
// such instructions, so what the linker shares between files runs everywhere.
template <class F, class... Arguments>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), gnu::flatten, gnu::noinline]] void in_avx512(
    const F& f, Arguments... arguments) {
  f(arguments...);
}

// The same in AVX2: once, however many callers there are.
template <class F, class... Arguments>
[[gnu::flatten, gnu::noinline]] void in_avx2(const F& f, Arguments... arguments) {
  f(arguments...);
}

template <class F, class... Arguments>
void in_widest_registers(const F& f, Arguments... arguments) {
  if (has_avx512()) {
    in_avx512(f, arguments...);
  } else {
    in_avx2(f, arguments...);
  }
}

}  // namespace trainscope::cpu
