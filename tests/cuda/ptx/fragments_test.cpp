// Which lanes hold which elements of matrices on tensor cores: the kernels' wrappers in the
// emulator, and the instructions in the interpreter, have them where CuTe says
// (tests/cuda/gates/fragments.tsv).
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#undef TRAINSCOPE_SHARED  // the folder of that name, which no case here reads
#include "kernels/cuda/support/launch.h"
#include "kernels/cuda/support/tensor_core.h"
#include "tests/cuda/interpreter/machine.h"

namespace trainscope::test {
namespace {

using cuda::FragmentA;
using cuda::FragmentB;
using cuda::FragmentC;
using cuda::Pair;

// An element of a matrix [rows, columns], and where it is held: half 0 is the lower one of a
// register's two elements.
struct HeldElement {
  std::size_t lane;
  std::size_t number;  // of the register
  std::size_t half;
  std::size_t row;
  std::size_t column;
};

// The rows of the table of this name.
std::vector<HeldElement> held_elements(std::string_view fragment) {
  std::ifstream table(TRAINSCOPE_SOURCE_DIR "/tests/cuda/gates/fragments.tsv");
  REQUIRE(table.is_open());
  std::vector<HeldElement> held;
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string name;
    HeldElement element{};
    words >> name;
    if (name != fragment) continue;
    words >> element.lane >> element.number >> element.half >> element.row >> element.column;
    REQUIRE_MESSAGE(!words.fail(), line);
    held.push_back(element);
  }
  return held;
}

// Every element of a matrix [rows, columns] is held once, by no two in one place.
void check_whole(const std::vector<HeldElement>& held, std::size_t rows, std::size_t columns) {
  REQUIRE(held.size() == rows * columns);
  std::vector<int> elements(rows * columns);
  std::vector<int> places(std::size_t{32} * 4 * 2);
  for (const HeldElement& each : held) {
    REQUIRE(each.row < rows);
    REQUIRE(each.column < columns);
    REQUIRE(each.lane < 32);
    REQUIRE(each.number < 4);
    REQUIRE(each.half < 2);
    CHECK(++elements[each.row * columns + each.column] == 1);
    CHECK(++places[(each.lane * 4 + each.number) * 2 + each.half] == 1);
  }
}

// --- MMAs ----------------------------------------------------------------------------------------

// What the lanes of a warp hold: c += a b.
struct WarpFragments {
  std::vector<FragmentA> a = std::vector<FragmentA>(32);
  std::vector<FragmentB> b = std::vector<FragmentB>(32);
  std::vector<FragmentC> c = std::vector<FragmentC>(32);
};

template <typename T>
__global__ void multiply_fragments(const FragmentA* a, const FragmentB* b, FragmentC* c) {
  cuda::multiply_add<T>(c[threadIdx.x], a[threadIdx.x], b[threadIdx.x]);
}

template <typename T>
void emulate_multiply(WarpFragments& warp) {
  const CallContext call;
  cuda::launch(call, {.blocks = 1, .threads = 32}, multiply_fragments<T>, warp.a.data(),
               warp.b.data(), warp.c.data());
}

// Runs a kernel "k" on a warp, whose parameters are addresses of the memory given.
struct Memory {
  void* address;
  std::size_t bytes;
};
void interpret_warp(const std::string& text, const std::vector<Memory>& operands) {
  ptx::Machine machine;
  ptx::Module module("k.ptx", text);
  std::vector<std::byte> arguments(operands.size() * sizeof(void*));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    machine.memory().allow(operands[i].address, operands[i].bytes);
    std::memcpy(&arguments[i * sizeof(void*)], &operands[i].address, sizeof(void*));
  }
  machine.run(module, "k", {.blocks = {}, .threads = {.x = 32}, .arguments = arguments});
  CHECK(machine.races().empty());
}

template <typename T>
void interpret_multiply(WarpFragments& warp) {
  std::string text = R"(.version 9.0
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1,
	.param .u64 k_param_2
)
{
	.reg .b32 %r<20>;
	.reg .b64 %rd<20>;
	ld.param.u64 %rd1, [k_param_0];
	ld.param.u64 %rd2, [k_param_1];
	ld.param.u64 %rd3, [k_param_2];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd4, %r1, 16;
	add.s64 %rd5, %rd1, %rd4;
	ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd5];
	mul.wide.u32 %rd6, %r1, 8;
	add.s64 %rd7, %rd2, %rd6;
	ld.global.v2.u32 {%r6, %r7}, [%rd7];
	add.s64 %rd8, %rd3, %rd4;
	ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd8];
	mma.sync.aligned.m16n8k16.row.col.f32.TYPE.TYPE.f32 {%r8,%r9,%r10,%r11}, {%r2,%r3,%r4,%r5}, {%r6,%r7}, {%r8,%r9,%r10,%r11};
	st.global.v4.u32 [%rd8], {%r8, %r9, %r10, %r11};
	ret;
}
)";
  for (std::size_t at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE")) {
    text.replace(at, 4, std::is_same_v<T, BFloat16> ? "bf16" : "f16");
  }
  interpret_warp(text, {{warp.a.data(), 32 * sizeof(FragmentA)},
                        {warp.b.data(), 32 * sizeof(FragmentB)},
                        {warp.c.data(), 32 * sizeof(FragmentC)}});
}

template <typename T>
Pair in_half(int value, std::size_t half) {
  return Pair{static_cast<T>(static_cast<float>(value)).bits} << (16 * half);
}

// Matrices of small integers, whose products and sums are exact, go into registers and come out of
// them by the table.
template <typename T>
void check_multiply(void (*multiply)(WarpFragments&)) {
  const std::vector<HeldElement> held_a = held_elements("a");
  const std::vector<HeldElement> held_b = held_elements("b");
  const std::vector<HeldElement> held_c = held_elements("c");
  std::mt19937 numbers(7);
  const auto next = [&numbers] { return static_cast<int>(numbers() % 17) - 8; };
  int a[16][16] = {};
  int b[16][8] = {};
  int c[16][8] = {};
  WarpFragments warp;
  for (const HeldElement& each : held_a) {
    a[each.row][each.column] = next();
    warp.a[each.lane].pairs[each.number] |= in_half<T>(a[each.row][each.column], each.half);
  }
  for (const HeldElement& each : held_b) {
    b[each.row][each.column] = next();
    warp.b[each.lane].pairs[each.number] |= in_half<T>(b[each.row][each.column], each.half);
  }
  for (const HeldElement& each : held_c) {
    c[each.row][each.column] = next();
    warp.c[each.lane].values[each.number] = static_cast<float>(c[each.row][each.column]);
  }
  multiply(warp);
  for (const HeldElement& each : held_c) {
    int sum = c[each.row][each.column];
    for (std::size_t k = 0; k < 16; ++k) sum += a[each.row][k] * b[k][each.column];
    INFO("element ", each.row, ", ", each.column);
    CHECK(warp.c[each.lane].values[each.number] == static_cast<float>(sum));
  }
}

// --- Matrices from shared memory -----------------------------------------------------------------

// Row i % 8 of matrix i / 8 begins where lane i tells: rows [32, 8], what the lanes get [32, 4].
using MatrixRows = std::array<std::uint16_t, 32 * 8>;
using LoadedPairs = std::array<Pair, 32 * 4>;

template <bool kTransposed>
__global__ void load_fragments(const Float16* rows, Pair* pairs) {
  Pair own[4];
  cuda::load_matrices<kTransposed>(own, rows + std::size_t{8} * threadIdx.x);
  std::memcpy(pairs + std::size_t{4} * threadIdx.x, own, sizeof own);
}

template <bool kTransposed>
void emulate_load(MatrixRows& rows, LoadedPairs& pairs) {
  std::vector<Float16> elements(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) elements[i].bits = rows[i];
  const CallContext call;
  cuda::launch(call, {.blocks = 1, .threads = 32}, load_fragments<kTransposed>, elements.data(),
               pairs.data());
}

template <bool kTransposed>
void interpret_load(MatrixRows& rows, LoadedPairs& pairs) {
  std::string text = R"(.version 9.0
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1
)
{
	.reg .b32 %r<20>;
	.reg .b64 %rd<20>;
	.shared .align 16 .b8 rows[512];
	ld.param.u64 %rd1, [k_param_0];
	ld.param.u64 %rd2, [k_param_1];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 16;
	add.s64 %rd4, %rd1, %rd3;
	ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd4];
	shl.b32 %r6, %r1, 4;
	mov.u32 %r7, rows;
	add.s32 %r8, %r7, %r6;
	st.shared.v4.u32 [%r8], {%r2, %r3, %r4, %r5};
	bar.warp.sync -1;
	ldmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 {%r2,%r3,%r4,%r5}, [%r8];
	add.s64 %rd5, %rd2, %rd3;
	st.global.v4.u32 [%rd5], {%r2, %r3, %r4, %r5};
	ret;
}
)";
  text.replace(text.find("TRANS"), 5, kTransposed ? ".trans" : "");
  interpret_warp(text, {{rows.data(), sizeof rows}, {pairs.data(), sizeof pairs}});
}

// Each element of the rows is its own number, by which it is found.
void check_load(std::string_view fragment, void (*load)(MatrixRows&, LoadedPairs&)) {
  alignas(16) MatrixRows rows;
  alignas(16) LoadedPairs pairs{};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint16_t>(i);
  load(rows, pairs);
  for (const HeldElement& each : held_elements(fragment)) {
    const Pair pair = pairs[each.lane * 4 + each.number];
    INFO(fragment, ": lane ", each.lane, ", register ", each.number);
    CHECK((pair >> (16 * each.half) & 0xFFFFU) == each.row * 8 + each.column);
  }
}

}  // namespace

TEST_CASE("tensor cores: the table of fragments has each element of each matrix once") {
  check_whole(held_elements("a"), 16, 16);
  check_whole(held_elements("b"), 16, 8);
  check_whole(held_elements("c"), 16, 8);
  check_whole(held_elements("matrices"), 32, 8);
  check_whole(held_elements("transposed"), 32, 8);
}

TEST_CASE("tensor cores: an MMA has its operands' and its result's elements where CuTe says") {
  check_multiply<BFloat16>(emulate_multiply<BFloat16>);
  check_multiply<Float16>(emulate_multiply<Float16>);
  check_multiply<BFloat16>(interpret_multiply<BFloat16>);
  check_multiply<Float16>(interpret_multiply<Float16>);
}

TEST_CASE("tensor cores: matrices from shared memory come to the lanes where CuTe says") {
  check_load("matrices", emulate_load<false>);
  check_load("transposed", emulate_load<true>);
  check_load("matrices", interpret_load<false>);
  check_load("transposed", interpret_load<true>);
}

}  // namespace trainscope::test
