// The instructions that kernels may use: what the processor has, or less if oneDNN's variable
// ONEDNN_MAX_CPU_ISA asks for it (AVX2, AVX512_CORE ..), so that both always agree.
#pragma once

namespace trainscope::cpu {

// AVX-512 F, BW, DQ and VL.
bool has_avx512();
// AVX512_BF16: multiply-adds of pairs of bf16.
bool has_avx512_bf16();
// Whether our GEMM in bf16 should use them: on AMD's processors. Intel's are slower than f32's FMAs
// (docs/performance.md, on bf16).
bool prefers_avx512_bf16();
// Whether oneDNN computes matmuls in bf16 with AMX.
bool onednn_has_amx();

// Whether a processor names AMX in CPUID leaf 7 (edx of its subleaf 0) but has no palette of tiles
// in leaf 0x1D (eax of its subleaf 0), as some virtual machines show it: tiles cannot be
// configured.
constexpr bool hides_amx_tiles(unsigned features, unsigned palettes) {
  constexpr unsigned kAmxTile = 1U << 24;
  return (features & kAmxTile) != 0 && palettes == 0;
}
bool hides_amx_tiles();  // this processor
// Keeps oneDNN from AMX where hides_amx_tiles(): it looks at leaf 7 alone, and its matmuls in bf16
// then end in an illegal instruction. Must come before any other use of oneDNN, otherwise throws
// std::logic_error; the functions above and cpu_kernels() see to it. ONEDNN_MAX_CPU_ISA, where it
// is set, has its way.
void limit_onednn();

}  // namespace trainscope::cpu
