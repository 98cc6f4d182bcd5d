// The interpreter on short texts: what instructions compute, what is counted, what ends a run.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/cuda/interpreter/machine.h"

namespace trainscope::test {
namespace {

using ptx::Fault;
using ptx::Machine;
using ptx::Module;

// A kernel "k" with one parameter, the address of memory, which %rd1 holds; %r1 is the thread,
// %rd2 the address of the thread's word.
std::string kernel_text(const std::string& body) {
  return R"(.version 9.0
.visible .entry k(
	.param .u64 k_param_0
)
{
	.reg .pred %p<10>;
	.reg .b16 %rs<10>;
	.reg .b32 %r<20>;
	.reg .b64 %rd<20>;
	ld.param.u64 %rd1, [k_param_0];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd2, %rd1, %rd3;
)" + body +
         "\n\tret;\n}\n";
}

struct Ran {
  Machine machine;
  std::vector<std::uint32_t> words;
};

// The words of memory after threads have run.
Ran run(const std::string& body, unsigned threads, std::size_t words = 64) {
  Ran ran{.machine = {}, .words = std::vector<std::uint32_t>(words)};
  Module module("k.ptx", kernel_text(body));
  ran.machine.memory().allow(ran.words.data(), 4 * words);
  const void* address = ran.words.data();
  std::vector<std::byte> arguments(sizeof address);
  std::memcpy(arguments.data(), &address, sizeof address);
  ran.machine.run(module, "k", {.blocks = {}, .threads = {.x = threads}, .arguments = arguments});
  return ran;
}

// One thread's result in %r2.
std::uint32_t result(const std::string& body) {
  return run(body + "\n\tst.global.u32 [%rd2], %r2;", 1).words[0];
}

std::string fault_of(const std::string& body, unsigned threads) {
  try {
    run(body, threads);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kExchange = R"(
	.shared .align 4 .b8 words[256];
	shl.b32 %r3, %r1, 2;
	mov.u32 %r4, words;
	add.s32 %r5, %r4, %r3;
	st.shared.u32 [%r5], %r1;
	BARRIER
	xor.b32 %r6, %r5, 252;
	ld.shared.u32 %r7, [%r6];
	st.global.u32 [%rd2], %r7;)";

std::string exchange_with(const std::string& barrier) {
  std::string text = kExchange;
  return text.replace(text.find("BARRIER"), 7, barrier);
}

}  // namespace

TEST_CASE("ptx interpreter: integers wrap around, and narrow ones keep their sign") {
  CHECK(result("mov.u32 %r3, 7; mad.lo.s32 %r2, %r3, -3, 1;") == static_cast<std::uint32_t>(-20));
  CHECK(result("mov.u32 %r3, -1; mul.hi.u32 %r2, %r3, %r3;") == 0xFFFFFFFEU);
  CHECK(result("mov.u32 %r3, -9; shr.s32 %r2, %r3, 1;") == static_cast<std::uint32_t>(-5));
  CHECK(result("mov.u32 %r3, 1; shl.b32 %r2, %r3, 40;") == 0);
  CHECK(result("mov.u16 %rs1, -2; cvt.s32.s16 %r2, %rs1;") == static_cast<std::uint32_t>(-2));
  CHECK(result("mov.u16 %rs1, -2; cvt.u32.u16 %r2, %rs1;") == 0xFFFE);
  CHECK(result("mov.u32 %r3, -7; div.s32 %r2, %r3, 2;") == static_cast<std::uint32_t>(-3));
  CHECK(result("mov.u32 %r3, 0xAB; bfi.b32 %r2, %r3, -1, 8, 4;") == 0xFFFFFBFFU);
  CHECK(result("mov.u32 %r3, 0x8001; prmt.b32 %r2, %r3, 7, 0x9410;") == 0xFF078001U);
  CHECK(result("mov.u32 %r3, 300; cvt.u8.u32 %rs1, %r3; cvt.u32.u16 %r2, %rs1;") == 44);
}

TEST_CASE("ptx interpreter: floats round as IEEE has it, conversions end at the type's ends") {
  CHECK(result("mov.f32 %r3, 0f3F800000; div.rn.f32 %r2, %r3, 0f40400000;") == 0x3EAAAAAB);
  CHECK(result("mov.f32 %r3, 0f3FC00000; cvt.rni.s32.f32 %r2, %r3;") == 2);
  CHECK(result("mov.f32 %r3, 0fCF800000; cvt.rzi.s32.f32 %r2, %r3;") == 0x80000000U);
  CHECK(result("mov.f32 %r3, 0f7FC00000; max.f32 %r2, %r3, 0fBF800000;") == 0xBF800000U);
  CHECK(result("mov.f32 %r3, 0f7FC00000; setp.neu.f32 %p1, %r3, %r3; selp.b32 %r2, 1, 2, %p1;") ==
        1);
  CHECK(result("mov.f32 %r3, 0f7FC00000; setp.ne.f32 %p1, %r3, %r3; selp.b32 %r2, 1, 2, %p1;") ==
        2);
}

TEST_CASE("ptx interpreter: lanes that part meet again, and a shuffle waits for all of them") {
  const Ran ran = run(R"(
	and.b32 %r3, %r1, 1;
	setp.eq.s32 %p1, %r3, 0;
	mov.u32 %r4, 10;
	@%p1 bra EVEN;
	add.s32 %r4, %r4, %r1;
EVEN:
	shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;
	shfl.sync.up.b32 %r6|%p2, %r1, 2, 0, -1;
	selp.b32 %r7, 1, 0, %p2;
	mad.lo.s32 %r8, %r5, 100, %r6;
	mad.lo.s32 %r8, %r8, 2, %r7;
	st.global.u32 [%rd2], %r8;)",
                      32);
  CHECK(ran.words[0] == 2 * (11 * 100 + 0) + 0);
  CHECK(ran.words[5] == 2 * (10 * 100 + 3) + 1);
  CHECK(ran.words[30] == 2 * (41 * 100 + 28) + 1);
  CHECK(has(fault_of("setp.lt.u32 %p1, %r1, 7; @%p1 bra END; bar.warp.sync -1;\nEND:", 32),
            "lanes wait for others that do not come"));
}

TEST_CASE("ptx interpreter: two threads that use a byte with no barrier between them race") {
  const Ran ordered = run(exchange_with("bar.sync 0;"), 64);
  CHECK(ordered.machine.races().empty());
  for (std::uint32_t i = 0; i < 64; ++i) CHECK(ordered.words[i] == 63 - i);
  Ran racing = run(exchange_with(""), 64);
  REQUIRE(!racing.machine.races().empty());
  CHECK(has(*racing.machine.races().begin(), "k, k.ptx:"));
  // Among the lanes of one warp their own barrier orders, a shuffle does not.
  CHECK(!run(exchange_with("bar.warp.sync -1;"), 64).machine.races().empty());
  std::string text = exchange_with("bar.warp.sync -1;");
  text.replace(text.find("252"), 3, "124");
  CHECK(run(text, 64).machine.races().empty());
  text.replace(text.find("bar.warp.sync -1;"), 17, "shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;");
  CHECK(!run(text, 64).machine.races().empty());
}

TEST_CASE(
    "ptx interpreter: memory that was not given, and addresses that are not aligned, end it") {
  const std::string beyond = fault_of("st.global.u32 [%rd2+256], %r1;", 1);
  CHECK(has(beyond, "k, k.ptx:14"));
  CHECK(has(beyond, "outside of the memory that was given"));
  CHECK(has(fault_of("ld.global.u32 %r3, [%rd2+2];", 1), "is not aligned"));
  CHECK(has(fault_of("ld.global.u32 %r3, [%rd2+224];", 9), "thread 8,0,0"));
  CHECK(has(fault_of(".shared .align 4 .b8 words[8]; mov.u32 %r3, words;"
                     " ld.shared.u32 %r4, [%r3+16];",
                     1),
            "beyond the shared memory"));
}

TEST_CASE("ptx interpreter: a barrier that some threads miss, and an unknown opcode, are named") {
  CHECK(has(fault_of("setp.lt.u32 %p1, %r1, 40; @%p1 bar.sync 0;", 64),
            "a barrier is not reached by every thread of the block"));
  CHECK(has(fault_of("setp.lt.u32 %p1, %r1, 40; @%p1 bra ONE; bar.sync 0; bra END;\n"
                     "ONE:\n bar.sync 0;\nEND:",
                     64),
            "threads of a block meet at different barriers"));
  const std::string unknown = fault_of("\n\tfrob.b32 %r2, %r1;", 1);
  CHECK(has(unknown, "k.ptx:15: unknown opcode: frob.b32"));
}

TEST_CASE("ptx interpreter: counts bytes, sectors and passes over the banks") {
  Ran near = run("ld.global.u32 %r3, [%rd2]; st.global.u32 [%rd2], %r3;", 64);
  const ptx::Counters& few = near.machine.counters();
  CHECK(few.bytes_read == 256);
  CHECK(few.bytes_written == 256);
  CHECK(few.least_sectors == 16);
  CHECK(few.sectors >= 16);
  // Words that are 32 apart lie in one bank: 32 passes for a warp.
  std::string text = exchange_with("bar.sync 0;");
  text.replace(text.find("[256]"), 5, "[4096]");
  text.replace(text.find("%r1, 2"), 6, "%r1, 7");
  text.replace(text.find("252"), 3, "3968");
  Ran conflicting = run(text, 32);
  CHECK(conflicting.machine.counters().wavefronts == 64);
  CHECK(conflicting.machine.counters().least_wavefronts == 2);
  CHECK(conflicting.machine.counters().barriers == 1);
}

}  // namespace trainscope::test
