// --batch, --seq and --shape against what a model leaves open.
#include "cli/flags/sizes.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"

namespace trainscope {
namespace {

OnnxModel model_with_inputs(const std::string& inputs) {
  return OnnxModel::parse_text("<ir_version: 8, opset_import: [\"\" : 17]> g (" + inputs +
                               ") => (float[A] y) { y = Cast<to = 1>(x) }");
}

std::string message_of(const OnnxModel& model, const SizeRequest& request) {
  try {
    resolve_sizes(model, request);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message() + "|" + error.hint();
  }
  return "no error";
}

TEST_CASE("sizes: open dimensions take --batch and --seq") {
  const OnnxModel model = model_with_inputs("int64[B,T] x, float[B,T,7] mask");
  const Sizes sizes = resolve_sizes(model, {.batch = 4, .sequence = 9, .shapes = {}});
  CHECK(sizes.batch == 4);
  CHECK(sizes.sequence == 9);
  CHECK(sizes.dims == std::map<std::string, std::int64_t>{{"B", 4}, {"T", 9}});
  CHECK(resolve_sizes(model, {}).batch == kDefaultBatch);
  CHECK(open_symbols(model, resolve_sizes(model, {})) == std::vector<std::string>{"T"});
}

TEST_CASE("sizes: the axis of examples is the one that is called a batch, or asked for") {
  const auto axes = [](const std::string& inputs, const SizeRequest& request = {}) {
    return resolve_sizes(model_with_inputs(inputs), request).batch_axes;
  };
  using Axes = BatchAxes;
  CHECK(axes("float[B,T] x, float[T,B] z") == Axes{{"z", 1}});
  CHECK(axes("float[time,batch_size,7] x") == Axes{{"x", 1}});
  CHECK(axes("float[time,s0,7] x").empty());
  CHECK(axes("float[2,batch] x") == Axes{{"x", 1}});
  CHECK(axes("float[1,N] x").empty());  // one letter beside a number says nothing
  CHECK(axes("float[N,N] x").empty());
  CHECK(axes("float[p,q] x", {.shapes = {}, .batch_axes = {{"x", 1}}}) == Axes{{"x", 1}});
  const Sizes ids = resolve_sizes(model_with_inputs("int64[T,batch] x"),
                                  {.batch = 3, .sequence = 5, .shapes = {}});
  CHECK(ids.batch == 3);
  CHECK(ids.sequence == 5);
  CHECK(ids.dims == std::map<std::string, std::int64_t>{{"T", 5}, {"batch", 3}});
  CHECK(message_of(model_with_inputs("float[p,q] x"), {.shapes = {}, .batch_axes = {{"w", 1}}})
            .starts_with("--batch-axis: the model has no input or output 'w'"));
}

TEST_CASE("sizes: what the model fixes wins, another --batch is an error") {
  const OnnxModel model = model_with_inputs("int64[3,24] x");
  const Sizes sizes = resolve_sizes(model, {});
  CHECK(sizes.batch == 3);
  CHECK(sizes.sequence == 24);
  CHECK(resolve_sizes(model, {.batch = 3, .sequence = 24, .shapes = {}}).batch == 3);
  CHECK(message_of(model, {.batch = 8, .sequence = 0, .shapes = {}}) ==
        "--batch 8 does not fit the model: input 'x' has 3 there|leave out --batch, or export the "
        "model with an open dimension");
  CHECK(message_of(model, {.batch = 0, .sequence = 8, .shapes = {}})
            .starts_with("--seq 8 does not fit the model: input 'x' has 24 there"));
}

TEST_CASE("sizes: what a batch of no examples, or none at all, is refused with") {
  const auto refusal_of = [](const OnnxModel& model) {
    try {
      require_examples(model, resolve_sizes(model, {}));
    } catch (const Error& error) {
      return std::pair(error.code(), error.message());
    }
    return std::pair(ErrorCode::kUsage, std::string("no error"));
  };
  const auto refusal = [&](const std::string& inputs) {
    return refusal_of(model_with_inputs(inputs));
  };
  CHECK(refusal("int64[1] x").second == "no error");
  const auto [empty_code, empty] = refusal("int64[0,24] x");
  CHECK(empty_code == ErrorCode::kBadInput);
  CHECK(empty ==
        "a batch has 0 examples, by the first dimension of input 'x': there is nothing to compute");
  CHECK(refusal("float[N,4] w, float[0,4] x").second == empty);  // not w, which is open
  const auto [none_code, none] = refusal("int64 x");
  CHECK(none_code == ErrorCode::kUsage);
  CHECK(none == "no input has a batch dimension: 'x' is a scalar or of unknown shape");
  const auto [no_input_code, no_input] = refusal_of(OnnxModel::parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g () => (float[2] y) <float[2] x = {1, 2}> "
      "{ y = Exp(x) }"));
  CHECK(no_input_code == ErrorCode::kUsage);
  CHECK(no_input == "the model has no inputs, so there are no examples");
}

TEST_CASE("sizes: a batch of no examples by --shape is a mistake there") {
  const OnnxModel model = model_with_inputs("float[B,4] x, float[N,4] w");
  const std::string hint = "|give it a first dimension of 1 or more";
  CHECK(message_of(model, {.batch = 0, .sequence = 0, .shapes = {{"x", {0, 4}}}}) ==
        "--shape x=0,4: a batch of 0 examples" + hint);
  CHECK(message_of(model, {.batch = 0, .sequence = 0, .shapes = {{"w", {0, 4}}}}) ==
        "--shape w=0,4: a batch of 0 examples" + hint);
  CHECK(message_of(model, {.batch = 0, .sequence = 0, .shapes = {{"N", {0}}}}) ==
        "--shape N=0: a batch of 0 examples" + hint);
}

TEST_CASE("sizes: --shape binds an input or a symbol") {
  const OnnxModel model = model_with_inputs("int64[B,T] x");
  const Sizes whole = resolve_sizes(model, {.batch = 0, .sequence = 0, .shapes = {{"x", {2, 5}}}});
  CHECK(whole.batch == 2);
  CHECK(whole.sequence == 5);
  const Sizes symbol = resolve_sizes(model, {.batch = 0, .sequence = 0, .shapes = {{"T", {6}}}});
  CHECK(symbol.sequence == 6);
  CHECK(symbol.batch == kDefaultBatch);
  CHECK(message_of(model, {.batch = 0, .sequence = 0, .shapes = {{"TT", {6}}}}) != "no error");
  CHECK(message_of(model, {.batch = 3, .sequence = 0, .shapes = {{"x", {2, 5}}}})
            .starts_with("--batch 3 does not fit"));
}

TEST_CASE("sizes: --seq needs a sequence input") {
  CHECK(message_of(model_with_inputs("float[B,3] x"), {.batch = 0, .sequence = 4, .shapes = {}}) ==
        "--seq 4: the model has no integer input of two dimensions|");
}

}  // namespace
}  // namespace trainscope
