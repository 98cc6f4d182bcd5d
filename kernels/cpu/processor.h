// The instructions that kernels may use: what the processor has, or less if oneDNN's variable
// ONEDNN_MAX_CPU_ISA asks for it (AVX2, AVX512_CORE ..), so that both always agree.
#pragma once

namespace trainscope::cpu {

// AVX-512 F, BW, DQ and VL.
bool has_avx512();
// Whether products of bf16 are worth their instructions: AVX512_BF16 on AMD's processors. On
// Intel's VDPBF16PS is slower than FMAs of the same numbers as f32 (measured on family 6 model 207:
// steps of w3 take 1.45 times as long; docs/performance.md).
bool has_bf16_products();

// Whether the processor names AMX (CPUID leaf 7) but no sizes of its tiles (leaf 0x1D), as some
// virtual machines have it: they cannot be configured then.
bool hides_amx_tiles();
// Keeps oneDNN from AMX where hides_amx_tiles(): it looks at leaf 7 alone, and its products of bf16
// then end in an illegal instruction. Must come before any other use of oneDNN; has_avx512(),
// has_bf16_products() and cpu_kernels() see to it. Where ONEDNN_MAX_CPU_ISA is set, it has its way.
void limit_onednn();

}  // namespace trainscope::cpu
