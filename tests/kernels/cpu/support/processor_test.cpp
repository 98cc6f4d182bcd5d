// What kernels may use: the processor's instructions, or less where oneDNN's variable says so.
#include "kernels/cpu/support/processor.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

namespace trainscope::cpu {

TEST_CASE("processor: AVX-512 where there is one and ONEDNN_MAX_CPU_ISA allows it") {
  const char* most = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (most != nullptr) {
    REQUIRE(std::string_view(most) == "AVX2");  // as tests/CMakeLists.txt sets it
    CHECK(!has_avx512());
    CHECK(!has_avx512_bf16());
    CHECK(!prefers_avx512_bf16());
    CHECK(!onednn_has_amx());
    return;
  }
  CHECK(has_avx512() ==
        (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0));
  CHECK(has_avx512_bf16() == (has_avx512() && __builtin_cpu_supports("avx512bf16") != 0));
  CHECK(!(onednn_has_amx() && hides_amx_tiles()));
}

TEST_CASE("processor: tiles of AMX that CPUID names and does not describe") {
  constexpr unsigned kAmxTile = 1U << 24;
  CHECK(hides_amx_tiles(kAmxTile, 0));
  CHECK(!hides_amx_tiles(kAmxTile, 1));
  CHECK(!hides_amx_tiles(~kAmxTile, 0));
}

}  // namespace trainscope::cpu
