// What kernels may use: the processor's instructions, or less where oneDNN's variable says so.
#include "kernels/cpu/processor.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

namespace trainscope::cpu {

TEST_CASE("processor: AVX-512 where there is one and ONEDNN_MAX_CPU_ISA allows it") {
  const char* most = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (most != nullptr) {
    REQUIRE(std::string_view(most) == "AVX2");  // as tests/CMakeLists.txt sets it
    CHECK(!has_avx512());
    CHECK(!has_bf16_products());
    return;
  }
  CHECK(has_avx512() ==
        (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0));
  CHECK(has_bf16_products() == (has_avx512() && __builtin_cpu_supports("avx512bf16") != 0 &&
                                __builtin_cpu_is("amd") != 0));
}

TEST_CASE("processor: oneDNN has no AMX where its tiles cannot be configured") {
  limit_onednn();
  const auto amx = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
  const auto used = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  CHECK(((used & amx) != amx || !hides_amx_tiles()));
}

}  // namespace trainscope::cpu
