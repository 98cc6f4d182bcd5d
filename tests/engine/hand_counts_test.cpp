// FLOPs and bytes that plans have for the ops of the standard workloads, beside counts that are
// made here from nothing but shapes (docs/performance.md has the table). A multiplication, addition
// or comparison is one FLOP, a division or root 4, an exponential 8, tanh and erf 16, and a random
// number 20.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/file.h"
#include "engine/models/models.h"
#include "engine/record_plan.h"
#include "engine/session.h"

namespace trainscope::test {
namespace {

struct Workload {
  const char* name;
  const char* model;
  ModelArguments arguments;
  std::int64_t batch;
  std::int64_t sequence;  // 0: none
  OptimizerKind optimizer = OptimizerKind::kAdamW;
};

// As `trainscope bench` has them.
std::vector<Workload> workloads() {
  return {
      {"w1-sgd", "mlp", {{"dims", Ints{784, 512, 512, 10}}}, 128, 0, OptimizerKind::kSgd},
      {"w1-adamw", "mlp", {{"dims", Ints{784, 512, 512, 10}}}, 128, 0},
      {"w2-lenet", "lenet", {}, 32, 0},
      {"w2-resnet18", "resnet", {{"size", std::string("18-cifar")}}, 32, 0},
      {"w3",
       "gpt2",
       {{"layers", 6},
        {"heads", 6},
        {"embedding", 384},
        {"vocab", 65},
        {"bias", false},
        {"activation", std::string("gelu")},
        {"context", 256}},
       12,
       256},
      {"w4", "gpt2", {{"size", std::string("124M")}, {"vocab", 50304}, {"context", 1024}}, 4, 64},
      {"w5", "bert", {{"layers", 4}, {"context", 512}, {"dropout", 0.1}}, 8, 128},
      {"w6-lstm", "lstm", {}, 16, 128},
      {"gru", "lstm", {{"cell", std::string("gru")}, {"vocab", 100}, {"hidden", 64}}, 4, 16},
      {"rnn", "lstm", {{"cell", std::string("rnn")}, {"vocab", 100}, {"hidden", 64}}, 4, 16}};
}

PlanRecord plan_of(const Workload& workload) {
  CompileOptions options;
  options.import.dims["batch"] = workload.batch;
  if (workload.sequence > 0) options.import.dims["sequence"] = workload.sequence;
  options.training.mode = GraphMode::kTrain;
  options.training.loss = {.kind = LossKind::kCrossEntropy, .output = "logits", .labels = "labels"};
  options.training.optimizer = {.kind = workload.optimizer, .momentum = 0.9, .weight_decay = 0.1};
  options.passes.keep = KeepGraphs::kLast;
  options.lower.threads = 2;
  const OnnxModel model = shapes_of(build_model(workload.model, workload.arguments, 0));
  return plan_record(*compile(model, options));
}

// A call's operands, by what the record says of them.
class Counted {
 public:
  Counted(const PlanView& plan, const PlanCall& call) : plan_(plan), call_(call) {}

  const PlanCall& call() const { return call_; }
  std::vector<std::int64_t> in(std::uint32_t i) const { return shape(call_.inputs, i); }
  std::vector<std::int64_t> out(std::uint32_t i) const { return shape(call_.outputs, i); }
  bool has(std::uint32_t i) const {
    return i < call_.inputs.count && plan_.operands[call_.inputs.begin + i].value != kNoRow;
  }
  std::uint32_t outputs() const { return call_.outputs.count; }
  std::int64_t in_elements(std::uint32_t i) const { return elements(in(i)); }
  std::int64_t out_elements(std::uint32_t i) const { return elements(out(i)); }
  std::int64_t in_bytes(std::uint32_t i) const { return bytes(call_.inputs, i); }
  std::int64_t all_in_bytes() const { return all_bytes(call_.inputs); }
  std::int64_t all_out_bytes() const { return all_bytes(call_.outputs); }

 private:
  static std::int64_t elements(const std::vector<std::int64_t>& dims) {
    std::int64_t product = 1;
    for (const std::int64_t dim : dims) product *= dim;
    return product;
  }
  std::vector<std::int64_t> shape(RowRange range, std::uint32_t i) const {
    const auto dims = rows_of(plan_.dims, plan_.operands[range.begin + i].shape);
    return {dims.begin(), dims.end()};
  }
  std::int64_t bytes(RowRange range, std::uint32_t i) const {
    const PlanOperand& operand = plan_.operands[range.begin + i];
    if (operand.value == kNoRow) return 0;
    const std::string_view dtype = plan_.text(operand.dtype);
    const std::int64_t size = dtype == "i64" || dtype == "f64" ? 8 : 4;
    return size * elements(shape(range, i));
  }
  std::int64_t all_bytes(RowRange range) const {
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < range.count; ++i) sum += bytes(range, i);
    return sum;
  }

  const PlanView& plan_;
  const PlanCall& call_;
};

struct HandCount {
  double flops = 0.0;
  double bytes_read = 0.0;
  double bytes_written = 0.0;
};

// Rows by columns and columns by rows: the inner size is all that both have and the result lacks.
double inner_of(const Counted& c) {
  return std::sqrt(static_cast<double>(c.in_elements(0)) * static_cast<double>(c.in_elements(1)) /
                   static_cast<double>(c.out_elements(0)));
}

// Multiply-adds of a convolution: each number of the result (or its gradient) by each weight of its
// channel.
double convolved(std::int64_t results, const std::vector<std::int64_t>& weight) {
  double products = static_cast<double>(results);
  for (std::size_t axis = 1; axis < weight.size(); ++axis) {
    products *= static_cast<double>(weight[axis]);
  }
  return 2.0 * products;
}

// Pairs of a query and a key, in all heads: q is [batch, tokens, heads, width], or q, k and v in
// one. A causal mask leaves half of them, as the rows of Attention say.
double scores_of(const std::vector<std::int64_t>& y, std::int64_t keys, bool causal) {
  const double all = static_cast<double>(y[0] * y[1] * y[2]) * static_cast<double>(keys);
  return causal ? all / 2.0 : all;
}

// Products of x [T, N, D] and of the state by the weights of each unit [1, gates H, D] and [1,
// gates H, H], and functions of each unit.
double cell(const Counted& c, std::uint32_t x, double products, double functions) {
  const std::vector<std::int64_t> steps = c.in(x);
  const double rows = static_cast<double>(steps[0] * steps[1]);
  const double weights = static_cast<double>(c.in_elements(x + 1) + c.in_elements(x + 2));
  return 2.0 * products * rows * weights +
         functions * rows * static_cast<double>(c.in(x + 2).back());
}

using Flops = double (*)(const Counted&);
double elements_of_out(const Counted& c) { return static_cast<double>(c.out_elements(0)); }
double elements_of_in(const Counted& c) { return static_cast<double>(c.in_elements(0)); }

double addend(const Counted& c) { return c.has(2) ? 2.0 * elements_of_out(c) : 0.0; }
double matmul(const Counted& c) { return 2.0 * elements_of_out(c) * inner_of(c) + addend(c); }
double several_matmuls(const Counted& c) {
  double flops = 0.0;
  for (std::uint32_t i = 0; i < c.outputs(); ++i) {
    const double terms = static_cast<double>(c.in(0).back()) + (c.has(1 + c.outputs() + i) ? 1 : 0);
    flops += 2.0 * static_cast<double>(c.out_elements(i)) * terms;
  }
  return flops;
}
// Packed heads are those of GPTs, which are causal and drop nothing out; others BERT's, which drop
// weights out.
double attention(const Counted& c) {
  const bool packed = !c.has(1);
  const std::vector<std::int64_t> y = c.out(0);
  const std::int64_t keys = packed ? y[1] : c.in(1)[1];
  const double others = packed ? 12.0 : 32.0;
  return scores_of(y, keys, packed) * (4.0 * static_cast<double>(y[3]) + others);
}
double attention_grad(const Counted& c) {
  const bool packed = !c.has(4);
  const std::vector<std::int64_t> y = c.in(0);
  const std::int64_t keys = packed ? y[1] : c.in(4)[1];
  const double others = packed ? 12.0 : 32.0;
  return scores_of(y, keys, packed) * (10.0 * static_cast<double>(y[3]) + others);
}
// A third of the parameters' step is parameters; the others are gradients and as many of each
// state.
double updated_elements(const Counted& c, std::uint32_t groups) {
  double sum = 0.0;
  const std::uint32_t parameters = (c.call().inputs.count - 3) / groups;
  for (std::uint32_t i = 0; i < parameters; ++i) sum += static_cast<double>(c.in_elements(i));
  return sum;
}

const std::map<std::string, Flops>& flops_by_op() {
  static const std::map<std::string, Flops> kFlops = {
      {"MatMul", matmul},
      {"Gemm", matmul},
      {"BatchMatMul", matmul},
      {"MatMulAdd", matmul},
      {"MultiMatMul", several_matmuls},
      {"Conv", [](const Counted& c) { return convolved(c.out_elements(0), c.in(1)); }},
      {"ConvGradInput", [](const Counted& c) { return convolved(c.in_elements(0), c.in(1)); }},
      {"ConvGradWeight", [](const Counted& c) { return convolved(c.in_elements(1), c.out(0)); }},
      {"Attention", attention},
      {"AttentionGrad", attention_grad},
      {"Add", elements_of_out},
      {"Mul", elements_of_out},
      {"Relu", elements_of_out},
      {"ReluGrad", elements_of_out},
      {"ReduceSum", elements_of_in},
      {"ReduceMean", elements_of_in},
      // Windows of LeNet do not overlap: each number is compared once.
      {"MaxPool", elements_of_in},
      {"MaxPoolGrad", elements_of_out},
      // x / sqrt(2), erf, + 1, x / 2.
      {"Gelu", [](const Counted& c) { return (1.0 + 16 + 1 + 2) * elements_of_out(c); }},
      // Maximum and exp of each score's difference, and its sum; then the same with a factor.
      {"CrossEntropy", [](const Counted& c) { return (1.0 + 8 + 1) * elements_of_in(c); }},
      {"CrossEntropyGrad", [](const Counted& c) { return (1.0 + 8 + 1) * elements_of_out(c); }},
      {"RandomDropout", [](const Counted& c) { return 20.0 * elements_of_out(c); }},
      // Mean (1), variance (3), difference and factor (2), weight and bias (2).
      {"LayerNormalization",
       [](const Counted& c) { return (1.0 + 3 + 2 + 2) * elements_of_in(c); }},
      // The same without weight and bias (6), dy w (1), two sums of it (1 + 2), dx (4), dw (2).
      {"LayerNormalizationGrad",
       [](const Counted& c) { return (6.0 + 1 + 3 + 4 + 2) * elements_of_in(c); }},
      {"BatchNormalization",
       [](const Counted& c) { return (1.0 + 3 + 2 + 2) * elements_of_in(c); }},
      {"GatherGrad", elements_of_in},
      // tanh; the sum of both gradients, 1 - y^2 by it (3), the bias's sum.
      {"Rnn", [](const Counted& c) { return cell(c, 0, 1, 16.0); }},
      {"RnnGrad", [](const Counted& c) { return cell(c, 3, 2, 1.0 + 3 + 1); }},
      // Three sigmoids of 12, two tanh, c = f c + i g (3), h = o tanh(c).
      {"Lstm", [](const Counted& c) { return cell(c, 0, 1, 3.0 * 12 + 2 * 16 + 3 + 1); }},
      // The sum; tanh(c) again; do (1 + 3); dc += dh o (1 - tanh^2) (1 + 3 + 1); di, df and dg (1 +
      // 3 each); dc f; sums of four biases.
      {"LstmGrad", [](const Counted& c) { return cell(c, 5, 2, 1.0 + 16 + 4 + 5 + 12 + 1 + 4); }},
      // Two sigmoids, tanh, r by the product, (1 - z) g + z h (4).
      {"Gru", [](const Counted& c) { return cell(c, 0, 1, 2.0 * 12 + 16 + 1 + 4); }},
      // The sum; dz = dh (h - g) and dg = dh (1 - z) (2 + 3 each); dr (1 + 3); its product's; z dh
      // and its sum (2); sums of three biases.
      {"GruGrad", [](const Counted& c) { return cell(c, 4, 2, 1.0 + 5 + 5 + 4 + 1 + 2 + 3); }},
      // m: 3, v: 4, root 4, correction and epsilon 2, division 4, rate and decay 3.
      {"AdamWStep",
       [](const Counted& c) { return (3.0 + 4 + 4 + 2 + 4 + 3) * updated_elements(c, 4); }},
      // Decay 2, momentum 2 and dampening 1, rate 2.
      {"SgdStep", [](const Counted& c) { return (2.0 + 3 + 2) * updated_elements(c, 3); }},
  };
  return kFlops;
}

// Moves bytes alone.
const std::set<std::string>& movers() {
  static const std::set<std::string> kMovers = {"Gather", "Slice", "SliceGrad", "Expand",
                                                "Transpose"};
  return kMovers;
}

// Norms and activations of which the row's number stands for one of several ways to compute them.
const std::map<std::string, double>& rounded_by_element() {
  static const std::map<std::string, double> kNumbers = {{"GeluGrad", 34.0},
                                                         {"BatchNormRelu", 10.0},
                                                         {"BatchNormReluGrad", 14.0},
                                                         {"BatchNormalizationGrad", 12.0}};
  return kNumbers;
}

std::optional<HandCount> hand_count(const std::string& op, const Counted& c) {
  HandCount count{.bytes_read = static_cast<double>(c.all_in_bytes()),
                  .bytes_written = static_cast<double>(c.all_out_bytes())};
  // Tables are read where they are looked up; the result of a slice is all that is read of it.
  if (op == "Gather" || op == "Slice" || op == "SliceGrad") count.bytes_read = count.bytes_written;
  // Added in place, rows that are named alone are read and written.
  if (op == "GatherGrad" && c.has(2)) {
    count.bytes_read = static_cast<double>(2 * c.in_bytes(0) + c.in_bytes(1));
    count.bytes_written = static_cast<double>(c.in_bytes(0));
  }
  if (movers().contains(op)) return count;
  const auto rounded = rounded_by_element().find(op);
  if (rounded != rounded_by_element().end()) {
    count.flops = rounded->second * elements_of_in(c);
    return count;
  }
  const auto flops = flops_by_op().find(op);
  if (flops == flops_by_op().end()) return std::nullopt;
  count.flops = flops->second(c);
  return count;
}

// What the counts of all calls of a workload's step add up to.
struct OpSum {
  std::int64_t calls = 0;
  double flops = 0.0;
  double bytes = 0.0;  // read and written
};
using OpSums = std::map<std::string, OpSum>;  // by op

// Three digits at least, all before the point.
std::string digits(double number) {
  return number < 1000.0 ? fmt::format("{:.3g}", number) : fmt::format("{:.0f}", number);
}

std::string cell_text(const OpSum& sum) {
  if (sum.calls == 0) return "";
  return fmt::format("{} x: {}, {}", sum.calls, digits(sum.flops / 1e6), digits(sum.bytes / 1e6));
}

// A row for each op, a column for each workload.
std::string counts_markdown(const std::vector<std::pair<std::string, OpSums>>& workloads) {
  std::string head = "| op |";
  std::string line = "|---|";
  std::set<std::string> ops;
  for (const auto& [name, sums] : workloads) {
    head += " " + name + " |";
    line += "---|";
    for (const auto& [op, sum] : sums) ops.insert(op);
  }
  std::string text = head + "\n" + line + "\n";
  const auto row = [&](const std::string& name, const auto& sum_of) {
    text += "| " + name + " |";
    for (const auto& [workload, sums] : workloads) text += " " + cell_text(sum_of(sums)) + " |";
    text += "\n";
  };
  for (const std::string& op : ops) {
    row(op, [&](const OpSums& sums) { return sums.contains(op) ? sums.at(op) : OpSum{}; });
  }
  row("all", [](const OpSums& sums) {
    OpSum all;
    for (const auto& [op, sum] : sums) {
      all.calls += sum.calls;
      all.flops += sum.flops;
      all.bytes += sum.bytes;
    }
    return all;
  });
  return text;
}

void check_table_is_current(const std::string& table) {
  const std::filesystem::path file = TRAINSCOPE_SOURCE_DIR "/docs/performance.md";
  const std::string page = read_file(file, std::size_t{1} << 20);
  const std::string begin = "<!-- hand counts -->\n";
  const std::size_t from = page.find(begin) + begin.size();
  const std::size_t to = page.find("<!-- end of hand counts -->");
  REQUIRE(to != std::string::npos);
  const std::string want = page.substr(0, from) + table + page.substr(to);
  const char* update = std::getenv("TRAINSCOPE_UPDATE_DOCS");
  if (update != nullptr && std::string(update) == "1") write_file_atomic(file, want);
  const bool is_current = read_file(file, std::size_t{1} << 20) == want;
  CHECK_MESSAGE(is_current, "run this test with TRAINSCOPE_UPDATE_DOCS=1");
}

TEST_CASE("hand counts: every op of the standard workloads has the FLOPs and bytes of its shapes") {
  std::vector<std::pair<std::string, OpSums>> counted_workloads;
  for (const Workload& workload : workloads()) {
    CAPTURE(workload.name);
    const PlanRecord record = plan_of(workload);
    const PlanView plan = view_of(record);
    int counted = 0;
    OpSums sums;
    for (const PlanCall& call : plan.calls) {
      if (call.kind != PlanCallKind::kKernel) continue;
      const std::string op(plan.op_of(call));
      CAPTURE(op);
      CAPTURE(plan.name_of(call));
      const std::optional<HandCount> count = hand_count(op, Counted(plan, call));
      REQUIRE_MESSAGE(count.has_value(), "nobody has counted this op");
      CHECK(static_cast<double>(call.flops) == doctest::Approx(count->flops).epsilon(1e-12));
      CHECK(static_cast<double>(call.bytes_read) == count->bytes_read);
      CHECK(static_cast<double>(call.bytes_written) == count->bytes_written);
      ++counted;
      OpSum& sum = sums[op];
      ++sum.calls;
      sum.flops += count->flops;
      sum.bytes += count->bytes_read + count->bytes_written;
    }
    CHECK(counted > 10);
    const bool is_standard = std::string_view(workload.name).starts_with("w");
    if (is_standard) counted_workloads.emplace_back(workload.name, std::move(sums));
  }
  check_table_is_current(counts_markdown(counted_workloads));
}

}  // namespace
}  // namespace trainscope::test
