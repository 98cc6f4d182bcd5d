// Writes fragments.tsv: which element of which matrix a lane's register holds, of mma.m16n8k16 and
// ldmatrix.x4.
//
// It is what the layouts of CuTe say, NVIDIA's own, of A [16, 16], B [16, 8], C [16, 8] (the sums),
// and of four matrices [8, 8] one below the other, row i where lane i tells, plain and transposed.
// Half 0 is the lower one of a register's two elements. Compiled by scripts/sass_gate.sh, for the
// host.
#include <cutlass/version.h>

#include <cstdio>
#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/tensor.hpp>

namespace {

constexpr int kLanes = 32;
constexpr int kBits = 128;  // that a lane gives or gets of four matrices
constexpr int kElementBits = 16;

void write_row(const char* fragment, int lane, int number, int half, int row, int column) {
  std::printf("%s\t%d\t%d\t%d\t%d\t%d\n", fragment, lane, number, half, row, column);
}

// (lane, element) to the element's place in a matrix whose first index runs first: M of A and C, N
// of B.
template <class Layout>
void write_operand(const char* fragment, const Layout& layout, int elements, int halves,
                   int first_size, bool first_is_row) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < elements; ++i) {
      const int place = static_cast<int>(layout(lane, i));
      const int first = place % first_size;
      const int second = place / first_size;
      write_row(fragment, lane, i / halves, i % halves, first_is_row ? first : second,
                first_is_row ? second : first);
    }
  }
}

// (lane, bit) that a lane gets to the place of that bit, and the lane that gives it.
template <class Traits>
void write_load(const char* fragment) {
  const typename Traits::SrcLayout given;
  const typename Traits::DstLayout got;
  static int lane_of[kLanes * kBits];
  static int bit_of[kLanes * kBits];
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int bit = 0; bit < kBits; ++bit) {
      const int place = static_cast<int>(given(lane, bit));
      lane_of[place] = lane;
      bit_of[place] = bit;
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kBits / kElementBits; ++i) {
      const int place = static_cast<int>(got(lane, i * kElementBits));
      write_row(fragment, lane, i / 2, i % 2, lane_of[place], bit_of[place] / kElementBits);
    }
  }
}

}  // namespace

int main() {
  using Bf16 = cute::MMA_Traits<cute::SM80_16x8x16_F32BF16BF16F32_TN>;
  using F16 = cute::MMA_Traits<cute::SM80_16x8x16_F32F16F16F32_TN>;
  static_assert(cute::is_same<Bf16::ALayout, F16::ALayout>::value &&
                    cute::is_same<Bf16::BLayout, F16::BLayout>::value &&
                    cute::is_same<Bf16::CLayout, F16::CLayout>::value,
                "one table for both types");
  std::printf("# Of CuTe, CUTLASS %d.%d.%d\n", CUTLASS_MAJOR, CUTLASS_MINOR, CUTLASS_PATCH);
  std::printf("fragment\tlane\tregister\thalf\trow\tcolumn\n");
  write_operand("a", Bf16::ALayout{}, 8, 2, 16, true);
  write_operand("b", Bf16::BLayout{}, 4, 2, 8, false);
  write_operand("c", Bf16::CLayout{}, 4, 1, 16, true);
  write_load<cute::Copy_Traits<cute::SM75_U32x4_LDSM_N>>("matrices");
  write_load<cute::Copy_Traits<cute::SM75_U16x8_LDSM_T>>("transposed");
}
