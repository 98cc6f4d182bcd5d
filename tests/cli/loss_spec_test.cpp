// --loss in its short form.
#include "cli/loss_spec.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"

namespace trainscope {
namespace {

std::string message_of(std::string_view text) {
  try {
    parse_loss(text);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message() + "|" + error.hint();
  }
  return "no error";
}

OnnxModel model_with_outputs(const std::string& outputs) {
  return OnnxModel::parse_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (" +
                               outputs + ") { y = Relu(x) z = Neg(x) logits = Abs(x) }");
}

TEST_CASE("loss: defaults are those of the form") {
  const LossOptions loss = parse_loss("cross_entropy");
  CHECK(loss.kind == LossKind::kCrossEntropy);
  CHECK(loss.output.empty());  // "logits" where the model has it
  CHECK(loss.labels == "labels");
  CHECK(loss.ignore_index == -100);
  CHECK(loss.class_axis == -1);
}

TEST_CASE("loss: every key, and back to text") {
  const std::string text = "nll:output=log_probs,labels=y,ignore_index=-1,class_axis=1";
  const LossOptions loss = parse_loss(text);
  CHECK(loss.kind == LossKind::kNll);
  CHECK(loss.class_axis == 1);
  CHECK(loss_text(loss) == text);
  CHECK(loss_text(parse_loss("mse:labels=t,output=o")) == "mse:output=o,labels=t");
  CHECK(parse_loss("bce_with_logits").kind == LossKind::kBceWithLogits);
}

TEST_CASE("loss: mistakes are named") {
  CHECK(message_of("cros_entropy") ==
        "--loss: there is no loss 'cros_entropy'|did you mean 'cross_entropy'?");
  CHECK(message_of("mse:class_axis=1").starts_with("--loss: mse has no key 'class_axis'|"));
  CHECK(message_of("nll:outptu=a") == "--loss: nll has no key 'outptu'|did you mean 'output'?");
  CHECK(message_of("nll:output=") == "--loss: output has no value|");
  CHECK(message_of("nll:output") == "--loss: output has no value|");
  CHECK(message_of("nll:class_axis=one") ==
        "--loss: class_axis is 'one': expected a whole number|");
  CHECK(message_of("nll:") != "no error");
  CHECK(message_of("") != "no error");
}

TEST_CASE("loss: the output it reads when none is named") {
  LossOptions loss;
  resolve_loss_output(model_with_outputs("float[2] y, float[2] logits"), loss);
  CHECK(loss.output == "logits");
  loss.output.clear();
  resolve_loss_output(model_with_outputs("float[2] y"), loss);
  CHECK(loss.output == "y");
  resolve_loss_output(model_with_outputs("float[2] z"), loss);
  CHECK(loss.output == "y");  // named: kept, the loss pass looks for it
  loss.output.clear();
  CHECK_THROWS_AS(resolve_loss_output(model_with_outputs("float[2] y, float[2] z"), loss), Error);
}

}  // namespace
}  // namespace trainscope
