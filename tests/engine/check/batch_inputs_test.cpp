// Sizes of a model's open dimensions from the tensors of a batch.
#include "engine/check/batch_inputs.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"

namespace trainscope::test {
namespace {

// Two inputs that share a symbol, an input that nothing reads, and scores of a class each.
OnnxModel model_of(const std::string& inputs = "float[N,3] x, float[N,S] z, float[S] unread") {
  return OnnxModel::parse_text("<ir_version: 8, opset_import: [\"\" : 17]> g (" + inputs +
                               ") => (float[N,3] scores) { scores = Relu(x) w = Relu(z) }");
}

Tensor floats_of(Shape shape) { return Tensor({.dtype = DType::kF32, .shape = shape}); }
Tensor labels_of(Shape shape) { return Tensor({.dtype = DType::kI64, .shape = shape}); }

Batch batch_of(std::vector<std::pair<std::string, Tensor>> tensors) {
  Batch batch;
  batch.tensors = std::move(tensors);
  return batch;
}

ImportOptions bound(const OnnxModel& model, const Batch& batch, const LossOptions& loss = {}) {
  ImportOptions import;
  bind_batch_sizes(model, loss, batch, import);
  return import;
}

Error refusal(const OnnxModel& model, const Batch& batch, const LossOptions& loss = {}) {
  try {
    bound(model, batch, loss);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    return error;
  }
  return {ErrorCode::kRunFailed, "nothing was refused"};
}

}  // namespace

TEST_CASE("batch inputs: shapes are the tensors', symbols of others follow") {
  const ImportOptions import =
      bound(model_of(), batch_of({{"x", floats_of({4, 3})}, {"z", floats_of({4, 5})}}));
  CHECK(import.shapes == std::map<std::string, Ints>{{"x", {4, 3}}, {"z", {4, 5}}});
  CHECK(import.dims == std::map<std::string, std::int64_t>{{"S", 5}});  // of `unread`
  const ImportOptions any_rank =
      bound(model_of("float[N,3] x, float[] z"),
            batch_of({{"x", floats_of({4, 3})}, {"z", floats_of({1, 2, 3})}}));
  CHECK(any_rank.shapes.at("z") == Ints{1, 2, 3});
}

TEST_CASE("batch inputs: labels say a size that no input's tensor says") {
  const ImportOptions import =
      bound(model_of("float[3,3] x, float[N,2] z"),
            batch_of({{"x", floats_of({3, 3})}, {"labels", labels_of({3})}}));
  CHECK(import.dims == std::map<std::string, std::int64_t>{{"N", 3}});
  LossOptions mse;
  mse.kind = LossKind::kMse;
  mse.labels = "wanted";
  const ImportOptions whole =
      bound(model_of("float[3,3] x, float[N,2] z"),
            batch_of({{"x", floats_of({3, 3})}, {"wanted", floats_of({3, 3})}}), mse);
  CHECK(whole.dims == std::map<std::string, std::int64_t>{{"N", 3}});
}

TEST_CASE("batch inputs: contradictions name both tensors") {
  CHECK(refusal(model_of(), batch_of({{"x", floats_of({4, 3})}, {"z", floats_of({6, 5})}}))
            .message() == "dimension 'N' of the model is 4 in tensor 'x', but 6 in 'z'");
  CHECK(refusal(model_of(), batch_of({{"x", floats_of({4, 3})},
                                      {"z", floats_of({4, 5})},
                                      {"labels", labels_of({2})}}))
            .message() == "dimension 'N' of the model is 4 in tensor 'x', but 2 in 'labels'");
  CHECK(refusal(model_of(), batch_of({{"x", floats_of({4, 7})}})).message() ==
        "tensor 'x' is f32[4,7], the model has [N,3] there: dimension 1 differs");
  CHECK(refusal(model_of(), batch_of({{"x", floats_of({4})}})).message() ==
        "tensor 'x' is f32[4], the model has 2 dimensions there: [N,3]");
}

TEST_CASE("batch inputs: what no tensor says is listed, with what to do") {
  const Error error = refusal(model_of(), batch_of({{"x", floats_of({4, 3})}}));
  CHECK(error.message() ==
        "the batch's tensors leave sizes of the model's inputs open:\n  input 'z': dimension 1 "
        "'S'\n  input 'unread': dimension 0 'S'");
  CHECK(error.hint() == "add a tensor batch.N:INPUT to the file for each of them");
}

}  // namespace trainscope::test
