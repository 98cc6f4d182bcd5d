// --loss in its short form.
#include "cli/flags/loss_spec.h"

#include <doctest/doctest.h>

#include <fstream>

#include "engine/core/error.h"
#include "engine/run/run_settings.h"
#include "tests/cli/program_runner.h"

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

TEST_CASE("loss: class weights from a list or a file, label smoothing, and back to text") {
  const LossOptions listed = parse_loss("cross_entropy:weights=1:0.5:2,label_smoothing=0.1");
  CHECK(listed.class_weights == std::vector<double>{1.0, 0.5, 2.0});
  CHECK(listed.label_smoothing == 0.1);
  LossOptions named = listed;
  named.output = "y";
  const std::string text = loss_text(named);
  CHECK(text ==
        "cross_entropy:output=y,labels=labels,ignore_index=-100,class_axis=-1,weights=1:0.5:2,"
        "label_smoothing=0.1");
  CHECK(loss_text(parse_loss(text)) == text);
  const test::TemporaryFolder folder;
  const std::string file = (folder / "weights.txt").string();
  std::ofstream(file) << "1\n0.5\n 2\n";
  CHECK(parse_loss("cross_entropy:weights=" + file).class_weights == listed.class_weights);
  std::ofstream(file) << "1\nmany\n";
  const auto code_of = [](const std::string& loss) {
    try {
      parse_loss(loss);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kRunFailed;
  };
  CHECK(code_of("cross_entropy:weights=" + file) == ErrorCode::kBadInput);
  CHECK(code_of("cross_entropy:weights=" + file + ".no") == ErrorCode::kIo);
}

TEST_CASE("loss: l1, and the model's own scalar") {
  CHECK(loss_text(parse_loss("l1:labels=t,output=o")) == "l1:output=o,labels=t");
  const LossOptions own = parse_loss("output:total,loss");
  CHECK(own.kind == LossKind::kOutput);
  CHECK(own.output == "total,loss");  // all that follows is the name
  CHECK(loss_text(own) == "output:total,loss");
}

TEST_CASE("loss: a weighted sum, and back to text") {
  const std::string text =
      "bce_with_logits:output=y,labels=x + 0.5*output:kl + -2*huber:output=z,labels=t,delta=1";
  const LossOptions sum = parse_loss(text);
  REQUIRE(sum.further.size() == 2);
  CHECK(sum.weight == 1.0);
  CHECK(sum.further[0].weight == 0.5);
  CHECK(sum.further[0].output == "kl");
  CHECK(sum.further[1].weight == -2.0);
  CHECK(loss_text(sum) == text);
  CHECK(term_name(sum) == "bce_with_logits(y)");
  CHECK(term_name(sum.further[0]) == "kl");
  CHECK(parse_loss("3*mse").weight == 3.0);
  CHECK(parse_loss("output:a*b").output == "a*b");  // a star of a name
  CHECK(parse_loss("2 * output:a*b").output == "a*b");
  LossOptions open = parse_loss("mse + 2*l1:labels=t");
  resolve_loss_output(model_with_outputs("float[2] y"), open);
  CHECK(loss_text(open) == "mse:output=y,labels=labels + 2*l1:output=y,labels=t");
  CHECK(message_of("x*mse").starts_with("--loss: 'x*' is no weight"));
  CHECK(message_of("0*mse").starts_with("--loss: '0*' is no weight"));
  CHECK(message_of("inf*mse").starts_with("--loss: 'inf*' is no weight"));
  CHECK(message_of("mse + ").starts_with("--loss: there is no loss ''"));
  CHECK(message_of("mse + kl").starts_with("--loss: there is no loss 'kl'"));
}

TEST_CASE("loss: mistakes are named") {
  CHECK(message_of("output") == "--loss output needs a name: output:NAME|");
  CHECK(message_of("output:") == "--loss output needs a name: output:NAME|");
  CHECK(message_of("nll:weights=1:2").starts_with("--loss: nll has no key 'weights'|"));
  CHECK(message_of("cross_entropy:weights=1:-2") ==
        "--loss: weights '1:-2' must be numbers of 0 or more, not all 0|");
  CHECK(message_of("cross_entropy:weights=0:0").starts_with("--loss: weights '0:0' must be"));
  CHECK(message_of("cross_entropy:label_smoothing=1.5") ==
        "--loss: label_smoothing is '1.5': expected a number from 0 to 1|");

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
