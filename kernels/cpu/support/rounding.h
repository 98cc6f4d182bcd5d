// Division and multiples, rounded up, of counts.
#pragma once

#include <type_traits>

namespace trainscope::cpu {

template <class Int>
constexpr Int divide_up(Int n, std::type_identity_t<Int> chunk) {
  return (n + chunk - 1) / chunk;
}

template <class Int>
constexpr Int round_up(Int n, std::type_identity_t<Int> chunk) {
  return divide_up(n, chunk) * chunk;
}

}  // namespace trainscope::cpu
