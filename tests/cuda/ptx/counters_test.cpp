// What the PTX of kernels moves and multiplies: counters.tsv has it for every kernel of our own
// that training GPT-2, BERT, ResNet-18 and an LSTM launches, on an aligned and on a ragged shape.
// Bytes and MMAs are what a formula says, to the byte; of sectors and of passes over the banks of
// shared memory there are hardly more than that takes, or a reason is given.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "engine/compile.h"
#include "engine/core/file.h"
#include "engine/ir/op_def.h"
#include "engine/models/models.h"
#include "engine/onnx/plain_model.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/cuda/ptx/byte_formula.h"
#include "tests/cuda/ptx/counters_table.h"
#include "tests/cuda/ptx/interpreted_case.h"
#include "tests/support/copying_device.h"

namespace trainscope::test {
namespace {

const std::filesystem::path kTable = TRAINSCOPE_SOURCE_DIR "/tests/cuda/ptx/counters.tsv";

// "V13.0.88", as the text of a module says.
std::string compiler_of(const ptx::InterpretedKernels& ptx) {
  const std::string_view text = ptx.places().begin()->second.module->text();
  constexpr std::string_view kBefore = "Cuda compilation tools, release ";
  const std::size_t at = text.find(kBefore);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = text.find("V", at);
  return std::string(text.substr(begin, text.find_first_of("\r\n", begin) - begin));
}

struct Trained {
  std::string_view model;
  ModelArguments sizes;
  std::map<std::string, std::int64_t> dims;  // of the model's inputs
};

// The kernels of our own that a step of training the model launches, by name.
std::set<std::string> launched_by(const Trained& trained, StepPrecision precision) {
  KernelTable kernels;
  for (const KernelTable::Row& row : cpu_kernels().rows()) {
    kernels.add(row.op, row.dtype, row.kernel);
  }
  const KernelTable own = cuda::own_kernels();
  for (const KernelTable::Row& row : own.rows()) kernels.add(row.op, row.dtype, row.kernel);
  const std::string bytes = onnx_bytes(build_model(trained.model, trained.sizes, 1));
  CompileOptions options;
  options.import.dims = trained.dims;
  options.training.mode = GraphMode::kTrain;
  options.training.loss.output = "logits";
  options.training.precision = precision;
  options.training.optimizer.clip_norm = 1.0;
  options.device = cpu_with(kernels);
  const auto compiled = compile(OnnxModel::from_bytes(std::as_bytes(std::span(bytes))), options);
  std::set<std::string> names;
  for (const Call& call : compiled->program.calls) {
    if (call.kernel == nullptr) continue;
    const std::string_view name = call.kernel->name;
    if (name.ends_with(".cuda") || name.ends_with(".tensor")) names.emplace(name);
  }
  return names;
}

}  // namespace

TEST_CASE("ptx counters: bytes and MMAs are those of the formulas, and the table is current") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  CountersTable table = CountersTable::read(kTable);
  const std::string compiler = compiler_of(*ptx);
  REQUIRE(!compiler.empty());
  const char* update = std::getenv("TRAINSCOPE_UPDATE_DATA");
  const bool writes = update != nullptr && std::string_view(update) == "1";
  const bool compares = table.compiler == compiler || writes;
  if (!compares) MESSAGE("sectors and wavefronts of ", table.compiler, " are not compared");
  for (CountersRow& row : table.rows) {
    INFO(row.op, " \"", row.example, "\" ", name_of(row.type));
    const KernelCase each = kernel_case(row.op, row.example, row.type);
    CHECK(each.kernels.front()->name == row.kernel);
    ptx->machine().counters() = {};
    const RunResult result = run_interpreted(*ptx, *each.op_case, *each.kernels.front(), {});
    CHECK(result.faults.empty());
    const ptx::Counters& counters = ptx->machine().counters();
    const OpArgs args = each.op_case->args();
    const Cost cost = cost_of(each.op_case->row(), args);
    CHECK(counters.bytes_read == value_of_formula(row.read, args, cost));
    CHECK(counters.bytes_written == value_of_formula(row.written, args, cost));
    CHECK(counters.multiplies == value_of_formula(row.mma, args, cost));
    const CountedColumns counted(cost.bytes_read + cost.bytes_written, counters);
    if (writes) row.counted = counted;
    if (compares) {
      CHECK_MESSAGE(row.counted == counted, "run this test with TRAINSCOPE_UPDATE_DATA=1");
    }
    row.counted = counted;
    CHECK_MESSAGE(row.is_over_limits() == !row.reason.empty(), "sectors ", counted.sectors, " of ",
                  counted.least_sectors, ", wavefronts ", counted.wavefronts, " of ",
                  counted.least_wavefronts, ", reason: '", row.reason, "'");
  }
  if (!writes) return;
  table.compiler = compiler;
  write_file_atomic(kTable, table.text());
}

TEST_CASE("ptx counters: the table has every kernel that training launches, aligned and ragged") {
  const CountersTable table = CountersTable::read(kTable);
  std::map<std::string, std::set<bool>> shapes;  // aligned or not, by kernel
  for (const CountersRow& row : table.rows) shapes[row.kernel].insert(row.is_aligned);
  for (const auto& [kernel, both] : shapes) CHECK_MESSAGE(both.size() == 2, kernel);
  // The build makes no PTX of these, and a scalar has no shapes to be ragged in.
  const std::set<std::string> left_out{"attention.cuda", "attention_grad.cuda",
                                       "gradient_scale.cuda"};
  const std::map<std::string, std::int64_t> tokens{{"batch", 2}, {"sequence", 8}};
  const Trained all_trained[] = {
      {.model = "gpt2",
       .sizes = {{"layers", 1}, {"heads", 2}, {"embedding", 32}, {"vocab", 64}, {"dropout", 0.1}},
       .dims = tokens},
      {.model = "bert",
       .sizes = {{"layers", 1}, {"heads", 2}, {"embedding", 32}, {"vocab", 64}, {"mask", true}},
       .dims = tokens},
      {.model = "resnet", .sizes = {{"image", 32}, {"classes", 10}}, .dims = {{"batch", 2}}},
      {.model = "lstm",
       .sizes = {{"embedding", 16}, {"hidden", 16}, {"vocab", 64}},
       .dims = tokens},
  };
  for (const Trained& trained : all_trained) {
    for (const StepPrecision precision : {StepPrecision::kF32, StepPrecision::kBF16}) {
      INFO(trained.model, " ", name_of(precision));
      const std::set<std::string> launched = launched_by(trained, precision);
      CHECK(launched.size() > 5);
      for (const std::string& kernel : launched) {
        if (left_out.contains(kernel)) continue;
        CHECK_MESSAGE(shapes.contains(kernel), kernel, " has no row");
      }
    }
  }
}

TEST_CASE("ptx counters: formulas of sizes") {
  const KernelCase each = kernel_case("Add", "[3,5], [5]");
  const OpArgs args = each.op_case->args();
  const Cost cost{.flops = 0, .bytes_read = 7, .bytes_written = 11};
  const auto value = [&](std::string_view formula) {
    return value_of_formula(formula, args, cost);
  };
  CHECK(value("read + 2*written") == 29);
  CHECK(value("x0 + x1.n*(x0.1 - 2)") == 75);
  CHECK(value("y0/32 + x2 + y1") == 2);
  for (const std::string_view wrong : {"", "x", "x0.3", "x2.0", "1 +", "(1", "1)", "2 3", "1/0"}) {
    CHECK_THROWS_AS(value(wrong), std::runtime_error);
  }
}

}  // namespace trainscope::test
