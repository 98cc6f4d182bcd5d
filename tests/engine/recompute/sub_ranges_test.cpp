// Steps with values inside others: trained as they are, recomputed, sent to host memory.
#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/models/models.h"
#include "engine/session.h"
#include "kernels/api/random.h"
#include "kernels/cpu/support/processor.h"
#include "tests/support/copying_device.h"
#include "tests/support/program_check.h"

namespace trainscope::test {
namespace {

struct Subject {
  std::string model;
  ModelArguments arguments;
  std::int64_t loss_chunks = 1;
  std::int64_t class_axis = -1;
  std::int64_t kinds = 2;  // integers are below
};

// At batch 1 the channels that a U-Net joins lie one after another, as the chunks of a loss do.
const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kSubjects = {
      {.model = "unet",
       .arguments = {{"depth", 2}, {"width", 8}, {"image", 16}, {"classes", 2}},
       .class_axis = 1},
      {.model = "gpt2",
       .arguments =
           {{"layers", 2}, {"heads", 2}, {"embedding", 16}, {"vocab", 300}, {"context", 64}},
       .loss_chunks = 4,
       .kinds = 300},
      {.model = "vit",
       .arguments = {{"layers", 2},
                     {"heads", 2},
                     {"embedding", 16},
                     {"feed-forward", 32},
                     {"patch", 4},
                     {"image", 16},
                     {"classes", 2}}},
  };
  return kSubjects;
}

class SameBatch final : public BatchSource {
 public:
  SameBatch(const Graph& graph, std::int64_t kinds) {
    for (ValueId v : graph.inputs) {
      const Value& value = graph.value(v);
      Tensor tensor(value.type);
      const std::uint64_t stream = batch_.tensors.size();
      std::uint64_t index = 0;
      if (value.type.dtype == DType::kF32) {
        for (float& x : tensor.values<float>()) {
          x = static_cast<float>(random_normal(3, stream, index++));
        }
      } else if (value.type.dtype == DType::kI64) {
        for (std::int64_t& x : tensor.values<std::int64_t>()) {
          x = static_cast<std::int64_t>(
              random_below(3, stream, index++, static_cast<std::uint64_t>(kinds)));
        }
      }
      if (value.name == "labels" || stream == 0) {
        batch_.tensors.emplace_back(value.name, std::move(tensor));
      }
    }
    batch_.examples = 1;
  }
  const Batch* next() override { return &batch_; }

 private:
  Batch batch_;
};

OnnxModel model_of(const Subject& subject) {
  const std::string bytes = onnx_bytes(build_model(subject.model, subject.arguments, 1));
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

CompileOptions options_of(const Subject& subject) {
  CompileOptions options;
  options.device = test_device();
  options.import.dims = {{"batch", 1}};
  if (subject.arguments.contains("context")) options.import.dims["sequence"] = 64;
  options.training.mode = GraphMode::kTrain;
  options.training.keep_gradients = false;
  options.training.loss.output = "logits";
  options.training.loss.class_axis = subject.class_axis;
  options.training.loss_chunks = subject.loss_chunks;
  return options;
}

struct Trained {
  Session session;
  std::vector<double> losses;

  Trained(const Subject& subject, const CompileOptions& options)
      : session(model_of(subject), options) {
    SameBatch batch(program().graph, subject.kinds);
    Trainer trainer(session.shared_executor(), 1);
    for (std::int64_t step = 1; step <= 3; ++step) {
      losses.push_back(trainer.run_step(step, 1e-3, batch).loss);
    }
    check_placements(program(), session.compiled().stages);
    CHECK(session.executor().used_bytes() == program().arena().bytes);
    CHECK(session.executor().used_host_bytes() == program().space(Space::kHost).bytes);
  }

  const Program& program() const { return session.compiled().program; }
  std::int64_t bytes_of(ValueId v) const {
    return static_cast<std::int64_t>(program().graph.value(v).type.bytes());
  }
  // Of values that lie inside another.
  std::int64_t bytes_inside() const {
    std::int64_t bytes = 0;
    for (ValueId v : program().graph.live_values()) {
      const PlannedBuffer* buffer = program().buffer_of(v);
      if (buffer == nullptr || buffer->space == Space::kHost) continue;
      if (buffer->bytes > bytes_of(v)) bytes += bytes_of(v);
    }
    return bytes;
  }
};

// Losses and parameters.
void check_same(Trained& plain, Trained& other) {
  CHECK(plain.losses == other.losses);
  const Graph& graph = plain.program().graph;
  for (ValueId v : graph.values_of(ValueKind::kParameter)) {
    const std::string& name = graph.value(v).name;
    const Tensor a = plain.session.executor().read(name);
    const Tensor b = other.session.executor().read(name);
    CHECK_MESSAGE(std::memcmp(a.data(), b.data(), a.bytes()) == 0, name);
  }
}

}  // namespace

TEST_CASE("sub-ranges: models that join and cut train the same") {
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.model);
    CompileOptions options = options_of(subject);
    std::int64_t most_inside = 0;  // of the orders
    for (OpOrder order : {OpOrder::kGiven, OpOrder::kMemory}) {
      options.order = order;
      options.lower.in_place = true;
      Trained inside(subject, options);
      most_inside = std::max(most_inside, inside.bytes_inside());
      options.lower.in_place = false;
      Trained apart(subject, options);
      CHECK(apart.bytes_inside() == 0);
      check_same(apart, inside);
      CHECK(inside.program().arena().lower_bound_bytes <=
            apart.program().arena().lower_bound_bytes);
    }
    // Workspaces decide what is worth it: those of the matmuls for AVX2 leave nothing in GPT-2.
    if (subject.model != "gpt2" || cpu::has_avx512()) CHECK(most_inside > 0);
  }
}

TEST_CASE("sub-ranges: recomputed joins and cuts have the same bits, as predicted") {
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.model);
    CompileOptions options = options_of(subject);
    Trained plain(subject, options);
    std::vector<RecomputeOptions> all = {{.mode = RecomputeMode::kLevel1},
                                         {.mode = RecomputeMode::kLevel2}};
    if (subject.model != "vit") {
      all.push_back({.mode = RecomputeMode::kAuto, .max_overhead = 0.1});
      all.push_back({.mode = RecomputeMode::kAuto, .max_overhead = 0.4, .link = HostLink{1e13, 0}});
    }
    std::int64_t rematerialized = 0;
    for (const RecomputeOptions& recompute : all) {
      options.recompute = recompute;
      Trained other(subject, options);
      check_same(plain, other);
      rematerialized += other.session.compiled().recompute->repeats;
    }
    CHECK(rematerialized > 0);
  }
}

}  // namespace trainscope::test
