// The instructions that kernels may use: what the processor has, or less if oneDNN's variable
// ONEDNN_MAX_CPU_ISA asks for it (AVX2, AVX512_CORE ..), so that both always agree.
#pragma once

namespace trainscope::cpu {

// AVX-512 F, BW, DQ and VL.
bool has_avx512();
// AVX512_BF16: products of bf16.
bool has_bf16_products();

}  // namespace trainscope::cpu
