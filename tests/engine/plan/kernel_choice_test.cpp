// Which of an op's kernels computes a call, and what is said of the others.
#include "engine/plan/kernel_choice.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/plan/kernel_call.h"
#include "engine/plan/lower.h"
#include "kernels/api/tf32.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

void nothing(const RunArgs&) {}

KernelTable picky_table() {
  KernelTable table;
  table.add("Op", DType::kF32, {.name = "plain", .run = nothing});
  table.add("Op", DType::kF32, {.name = "library", .run = nothing, .same_for_any_threads = false});
  table.add("Op", DType::kF32, {.name = "transformed", .run = nothing, .transforms = true});
  table.add("Op", DType::kF32,
            {.name = "picky",
             .supports = [](const PrepareArgs&) -> Support { return {"the moon is full"}; },
             .run = nothing});
  return table;
}

// MatMul has a form in TF32, which takes what is no more than 1 wide.
KernelTable tf32_table() {
  KernelTable table;
  table.add("MatMul", DType::kF32, {.name = "reference", .run = nothing});
  table.add("MatMul", DType::kF32, {.name = "exact", .run = nothing});
  table.add(tf32_form("MatMul"), DType::kF32,
            {.name = "rounding",
             .supports = [](const PrepareArgs& args) -> Support {
               return supported_if(args.inputs[0].shape()[0] == 1, "it is wide");
             },
             .run = nothing});
  return table;
}

std::string_view chosen_for_tf32(KernelChoice choice, bool tf32, std::int64_t width) {
  static const KernelTable table = tf32_table();
  static const Params params = MatMulParams{};
  const TensorView input{.type = {.dtype = DType::kF32, .shape = {width}}};
  return choose_kernel(table, {.op = "MatMul",
                               .dtype = DType::kF32,
                               .args = {.params = params, .inputs = {&input, 1}, .outputs = {}},
                               .choice = choice,
                               .tf32 = tf32})
      .kernel->name;
}

KernelChoiceResult chosen(KernelChoice choice, SameBits same_bits) {
  static const KernelTable table = picky_table();
  static const Params params = NoParams{};
  return choose_kernel(table, {.op = "Op",
                               .dtype = DType::kF32,
                               .args = {.params = params, .inputs = {}, .outputs = {}},
                               .choice = choice,
                               .same_bits = same_bits});
}

}  // namespace

TEST_CASE("choose_kernel: the form in TF32 where it is asked for and takes the call") {
  CHECK(chosen_for_tf32(KernelChoice::kFastest, false, 1) == "exact");
  CHECK(chosen_for_tf32(KernelChoice::kFastest, true, 1) == "rounding");
  CHECK(chosen_for_tf32(KernelChoice::kReference, true, 1) == "rounding");
  CHECK(chosen_for_tf32(KernelChoice::kFastest, true, 2) == "exact");
  CHECK(chosen_for_tf32(KernelChoice::kReference, true, 2) == "reference");
  CHECK(computes_tf32(tf32_table()));
  CHECK_FALSE(computes_tf32(picky_table()));
}

TEST_CASE("choose_kernel: the first that takes the call, and why the ones before it do not") {
  const KernelChoiceResult fastest = chosen(KernelChoice::kFastest, SameBits::kSameThreads);
  REQUIRE(fastest.kernel != nullptr);
  CHECK(fastest.kernel->name == "transformed");
  CHECK(refusals_text(fastest.others.refused) == "picky: the moon is full");
  const std::string later = "later in the list, which has the preferred kernel first";
  CHECK(refusals_text(fastest.others.behind) == fmt::format("library: {0}; plain: {0}", later));

  const KernelChoiceResult strict = chosen(KernelChoice::kDirect, SameBits::kAnyThreads);
  CHECK(strict.kernel->name == "plain");
  REQUIRE(strict.others.refused.size() == 3);
  CHECK(strict.others.refused[0].kernel == "picky");
  CHECK(strict.others.refused[1].kernel == "transformed");
  CHECK(strict.others.refused[1].why.find("--kernels direct") != std::string_view::npos);
  CHECK(strict.others.refused[2].kernel == "library");
  CHECK(strict.others.refused[2].why.find("--deterministic strict") != std::string_view::npos);
  CHECK(strict.others.behind.empty());
}

TEST_CASE("choose_kernel: the reference is the first of the table; without kernels there is none") {
  const KernelChoiceResult plain = chosen(KernelChoice::kReference, SameBits::kSameThreads);
  CHECK(plain.kernel->name == "plain");
  CHECK(plain.others.refused.empty());
  const Params params = NoParams{};
  const KernelChoiceResult none = choose_kernel(
      picky_table(),
      {.op = "Op", .dtype = DType::kF64, .args = {.params = params, .inputs = {}, .outputs = {}}});
  CHECK(none.kernel == nullptr);
  CHECK(none.others.refused.empty());
}

TEST_CASE("lower: what kernels there are say why they do not take a call") {
  KernelTable table;
  table.add("Exp", DType::kF32,
            {.name = "exp.picky",
             .supports = [](const PrepareArgs&) -> Support { return {"the moon is full"}; },
             .run = nothing});
  const std::optional<Error> error = error_of([&] {
    (void)lower(graph("(float[2] x) => (float[2] y) { y = Exp(x) }"), cpu_with(std::move(table)),
                {});
  });
  REQUIRE(error.has_value());
  REQUIRE(error->context().size() == 1);
  CHECK(error->context()[0] == "Exp for f32 (exp.picky: the moon is full): 1 node: Exp_0");
}

TEST_CASE("cost_of a kernel: its own estimate, or the op's cost") {
  const Params params = NoParams{};
  const PrepareArgs args{.params = params, .inputs = {}, .outputs = {}};
  const Cost definition{.flops = 10, .bytes_read = 20, .bytes_written = 30};
  CHECK(cost_of(Kernel{.name = "plain", .run = nothing}, args, definition).flops == 10);
  const Kernel doubled{
      .name = "doubled", .run = nothing, .estimate = [](const PrepareArgs&, const Estimate& of) {
        return Estimate{.flops = 2 * of.flops,
                        .bytes_read = of.bytes_read,
                        .bytes_written = of.bytes_written + 1};
      }};
  const Cost own = cost_of(doubled, args, definition);
  CHECK(own.flops == 20);
  CHECK(own.bytes_read == 20);
  CHECK(own.bytes_written == 31);
}

}  // namespace trainscope::test
