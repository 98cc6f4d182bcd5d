// Mutants on short texts: which there are, what they leave out, and what shows that it is left out.
#include "tests/cuda/interpreter/mutants.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda/interpreter/machine.h"

namespace trainscope::test {
namespace {

using ptx::Mutant;
using ptx::MutantKind;

// A kernel "k" of an address, which %rd1 holds, and a number, in %r2; %r1 is the thread, %rd2 the
// address of the thread's word, %r5 that of its word in shared memory.
struct MutatedText {
  explicit MutatedText(const std::string& body)
      : module("k.ptx", R"(.version 9.0
.visible .entry k(
	.param .u64 k_param_0,
	.param .u32 k_param_1
)
{
	.reg .pred %p<10>;
	.reg .b32 %r<20>;
	.reg .b64 %rd<20>;
	.shared .align 4 .b8 words[256];
	ld.param.u64 %rd1, [k_param_0];
	ld.param.u32 %r2, [k_param_1];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd2, %rd1, %rd3;
	shl.b32 %r3, %r1, 2;
	mov.u32 %r4, words;
	add.s32 %r5, %r4, %r3;
)" + body + "\nEND:\n\tret;\n}\n"),
        kernel(module.kernel("k")),
        mutants(ptx::mutants_of(kernel)) {}

  // On 64 threads with so many words of memory, which the number says, too.
  void run(std::uint32_t words) {
    memory.assign(words, 0);
    machine.forget_races();
    machine.memory().forbid_all();
    machine.memory().allow(memory.data(), 4 * std::size_t{words});
    const void* address = memory.data();
    std::vector<std::byte> arguments(12);
    std::memcpy(arguments.data(), &address, 8);
    std::memcpy(arguments.data() + 8, &words, 4);
    machine.run(module, "k", {.blocks = {}, .threads = {.x = 64}, .arguments = arguments});
  }
  // What the kernel does as a mutant.
  std::string shown(const Mutant& mutant, std::uint32_t words) {
    run(words);
    const std::vector<std::uint32_t> whole = memory;
    const ptx::Mutation mutation(kernel, mutant);
    try {
      run(words);
    } catch (const ptx::Fault&) {
      return "stopped";
    }
    if (!machine.races().empty()) return "a race";
    return memory == whole ? "nothing" : "other results";
  }
  bool differs(const Mutant& mutant, std::uint32_t words) {
    const ptx::MutantWatch mutant_watch(kernel, mutants);
    run(words);
    return mutant_watch.differs(mutant);
  }
  std::string opcode(const Mutant& mutant) const { return kernel.code[mutant.place].opcode; }

  ptx::Module module;
  ptx::Kernel& kernel;
  std::vector<Mutant> mutants;
  ptx::Machine machine;
  std::vector<std::uint32_t> memory;
};

}  // namespace

TEST_CASE(
    "ptx mutants: a check of the thread's own index is one, of the launch's numbers is none") {
  MutatedText text(R"(
	setp.lt.u32 %p1, %r2, 1;
	@%p1 bra END;
	setp.ge.u32 %p2, %r1, %r2;
	@%p2 bra END;
	st.global.u32 [%rd2], %r1;)");
  REQUIRE(text.mutants.size() == 1);
  CHECK(text.mutants[0].kind == MutantKind::kBound);
  CHECK(text.opcode(text.mutants[0]) == "setp.ge.u32");
  CHECK(!text.mutants[0].passes);
  CHECK(text.shown(text.mutants[0], 20) == "stopped");
  CHECK(text.shown(text.mutants[0], 64) == "nothing");
  CHECK(text.differs(text.mutants[0], 20));
  CHECK(!text.differs(text.mutants[0], 64));
  text.run(20);  // as it was
  CHECK(text.memory[19] == 19);
}

TEST_CASE("ptx mutants: checks that are joined are one each, whichever way they are joined") {
  MutatedText text(R"(
	setp.lt.u32 %p1, %r1, %r2;
	setp.gt.s32 %p2, %r1, 3;
	not.pred %p3, %p2;
	and.pred %p4, %p1, %p3;
	@%p4 st.global.u32 [%rd2], %r1;)");
  REQUIRE(text.mutants.size() == 2);
  CHECK(text.mutants[0].passes);
  CHECK(!text.mutants[1].passes);
  CHECK(text.shown(text.mutants[0], 2) == "stopped");
  CHECK(text.shown(text.mutants[1], 64) == "other results");
}

TEST_CASE("ptx mutants: the condition of a loop, and a choice between two paths, are none") {
  const MutatedText text(R"(
	mov.u32 %r6, %r1;
AGAIN:
	ld.global.u32 %r7, [%rd2];
	add.s32 %r6, %r6, 64;
	setp.lt.u32 %p1, %r6, %r2;
	@%p1 bra AGAIN;
	setp.lt.u32 %p2, %r1, 7;
	@%p2 bra FEW;
	st.global.u32 [%rd2], %r6;
	bra END;
FEW:
	st.global.u32 [%rd2], %r7;)");
  CHECK(text.mutants.empty());
}

TEST_CASE("ptx mutants: what the threads' numbers decide alike for all of them is none") {
  const MutatedText text(R"(
	setp.gt.u32 %p1, %r1, 1023;
	@%p1 bra END;
	max.u32 %r6, %r1, 1023;
	setp.eq.s32 %p2, %r6, 1023;
	@%p2 bra REST;
	setp.ge.u32 %p3, %r1, %r2;
	@%p3 bra END;
	ld.global.u32 %r7, [%rd2];
REST:
	st.global.u32 [%rd2], %r1;)");
  CHECK(text.mutants.empty());
}

TEST_CASE("ptx mutants: where a loop begins is one, how many rounds it has is none") {
  const MutatedText text(R"(
	.loc 1 7 3
	setp.ge.u32 %p1, %r1, %r2;
	@%p1 bra END;
	sub.s32 %r6, %r2, %r1;
	setp.lt.u32 %p2, %r6, 4;
	@%p2 bra REST;
	st.global.u32 [%rd2], %r1;
REST:
	st.global.u32 [%rd2], %r6;
	add.s32 %r6, %r6, -1;
	setp.ne.s32 %p3, %r6, 0;
	@%p3 bra REST;)");
  REQUIRE(text.mutants.size() == 1);
  CHECK(text.opcode(text.mutants[0]) == "setp.ge.u32");
}

TEST_CASE("ptx mutants: a barrier is one where there is something to order") {
  MutatedText text(R"(
	bar.sync 0;
	st.shared.u32 [%r5], %r1;
	bar.sync 0;
	xor.b32 %r6, %r5, 252;
	ld.shared.u32 %r7, [%r6];
	st.global.u32 [%rd2], %r7;)");
  REQUIRE(text.mutants.size() == 1);
  CHECK(text.mutants[0].kind == MutantKind::kBarrier);
  CHECK(text.shown(text.mutants[0], 64) == "a race");
  CHECK(text.differs(text.mutants[0], 64));
  text.run(64);
  CHECK(text.machine.races().empty());
  CHECK(text.memory[0] == 63);
}

TEST_CASE("ptx mutants: of a barrier with votes the order goes, the votes stay") {
  MutatedText text(R"(
	setp.eq.u32 %p1, %r1, 40;
	st.shared.u32 [%r5], %r1;
	bar.red.or.pred %p2, 0, %p1;
	xor.b32 %r6, %r5, 252;
	ld.shared.u32 %r7, [%r6];
	selp.b32 %r8, %r7, 0, %p2;
	st.global.u32 [%rd2], %r8;)");
  REQUIRE(text.mutants.size() == 1);
  CHECK(text.shown(text.mutants[0], 64) == "a race");
  CHECK(text.memory[0] == 63);
}

TEST_CASE(
    "ptx mutants: a wait for copies is one, and so is the check that says how much they copy") {
  MutatedText text(R"(
	shl.b32 %r6, %r1, 4;
	add.s32 %r7, %r4, %r6;
	mul.wide.u32 %rd4, %r1, 16;
	add.s64 %rd5, %rd1, %rd4;
	setp.lt.u32 %p1, %r1, 8;
	selp.b32 %r8, 16, 0, %p1;
	setp.gt.u32 %p2, %r1, 15;
	@%p2 bra END;
	cp.async.cg.shared.global [%r7], [%rd5], 16, %r8;
	cp.async.commit_group;
	cp.async.wait_group 0;
	ld.shared.u32 %r9, [%r7];
	add.s32 %r9, %r9, 1;
	st.global.u32 [%rd2], %r9;)");
  REQUIRE(text.mutants.size() == 3);
  CHECK(text.mutants[0].kind == MutantKind::kBound);
  CHECK(text.mutants[0].passes);
  CHECK(text.shown(text.mutants[0], 32) == "stopped");
  CHECK(text.mutants[1].kind == MutantKind::kBound);
  CHECK(!text.mutants[1].passes);
  CHECK(text.mutants[2].kind == MutantKind::kWait);
  CHECK(text.shown(text.mutants[2], 32) == "other results");
}

TEST_CASE("ptx mutants: what goes round in circles is stopped") {
  MutatedText text(R"(
AGAIN:
	add.s32 %r6, %r6, 1;
	bra AGAIN;)");
  text.machine.limit_launches(10'000);
  CHECK_THROWS_WITH_AS(text.run(64), doctest::Contains("too many instructions"), ptx::Fault);
}

}  // namespace trainscope::test
