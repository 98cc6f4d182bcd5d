// Losses, optimizers, averages, early stopping and predictions from the command line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "engine/bundle/reader.h"
#include "engine/core/safetensors.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

const std::string kMlp = test_model("mlp/model.onnx").string();

constexpr const char* kModel =
    "<ir_version: 8, opset_import: [\"\" : 17]> c (float[N,2] x) => (float[N,3] y)"
    " <float[2,3] w = {0.1,0.2,0.3,-0.1,-0.2,0.4}> { y = MatMul(x, w) }";

Finished call(const TemporaryFolder& folder, const Words& words) {
  return run(words, {}, folder.path());
}

Json facts(const TemporaryFolder& folder, Words words) {
  words.insert(words.end(), {"--json", "-q"});
  const Finished finished = call(folder, words);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return finished.json();
}

std::string refused(const TemporaryFolder& folder, const Words& words) {
  const Finished finished = call(folder, words);
  CHECK(finished.exit_code == 2);
  return finished.err;
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

Words train(const Words& more) {
  Words words = {"train",     kMlp, "--data",    "synthetic,examples=34,validation=0.5",
                 "--steps",   "8",  "--threads", "1",
                 "--run-dir", "r"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("losses: huber and focal train, with numbers of their own") {
  const TemporaryFolder folder;
  write_model(kModel, folder / "c.onnx");
  Tensor x({.dtype = DType::kF32, .shape = {12, 2}});
  Tensor labels({.dtype = DType::kI64, .shape = {12, 3}});  // whole numbers serve a float loss
  for (std::size_t n = 0; n < 12; ++n) {
    x.values<float>()[2 * n + n % 2] = 1.0F;
    labels.values<std::int64_t>()[3 * n + n % 2] = 1;
  }
  const std::vector<NamedTensor> tensors = {{.name = "x", .tensor = x.view()},
                                            {.name = "labels", .tensor = labels.view()}};
  write_safetensors(folder / "d.safetensors", tensors);
  for (const char* loss : {"huber", "huber:delta=0.5", "focal", "focal:gamma=1.5,alpha=none"}) {
    INFO(loss);
    fs::remove_all(folder / "r");
    const Json json =
        facts(folder, {"train", "c.onnx", "--data", "d.safetensors", "--loss", loss, "--batch", "5",
                       "--lr", "0.05", "--steps", "9", "--run-dir", "r"});
    CHECK(json.get<double>("last_loss") < json.get<double>("first_loss"));
    CHECK(facts(folder, {"eval", "r"}).get<double>("loss") ==
          json.at("validation").get<double>("loss"));
  }
  has(refused(folder, train({"--loss", "huber:delta=0"})),
      "delta is '0': expected a number above 0");
  has(refused(folder, train({"--loss", "huber:gamma=1"})), "huber has no key 'gamma'");
  has(refused(folder, train({"--loss", "focal:gamma=-1"})), "gamma is '-1'");
  has(refused(folder, train({"--loss", "focal:alpha=2"})),
      "expected a number from 0 to 1, or none");
  has(refused(folder, train({"--loss", "hubr"})), "did you mean 'huber'?");
}

TEST_CASE("losses: CTC learns labels without times of their own") {
  const TemporaryFolder folder;
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> c (float[T,batch,3] x) => (float[T,batch,3] y)"
      " <float[3,3] w = {0.1,0,0,0,0.1,0,0,0,0.1}> { y = MatMul(x, w) }",
      folder / "c.onnx");
  // 8 times of 12 examples: the class shown at each time, labels without repetitions.
  Tensor x({.dtype = DType::kF32, .shape = {8, 12, 3}});
  Tensor labels({.dtype = DType::kI64, .shape = {12, 2}});
  Tensor times({.dtype = DType::kI64, .shape = {12}});
  Tensor counts({.dtype = DType::kI64, .shape = {12}});
  for (std::size_t n = 0; n < 12; ++n) {
    const std::size_t first = 1 + n % 2;
    for (std::size_t t = 0; t < 8; ++t) {
      const std::size_t shown = t < 3 ? first : t < 5 ? 0 : 3 - first;
      x.values<float>()[(t * 12 + n) * 3 + shown] = 1.0F;
    }
    labels.values<std::int64_t>()[2 * n] = static_cast<std::int64_t>(first);
    labels.values<std::int64_t>()[2 * n + 1] = static_cast<std::int64_t>(3 - first);
    times.values<std::int64_t>()[n] = n == 3 ? 7 : 8;
    counts.values<std::int64_t>()[n] = n == 4 ? 1 : 2;
  }
  const std::vector<NamedTensor> tensors = {{.name = "x", .tensor = x.view()},
                                            {.name = "labels", .tensor = labels.view()},
                                            {.name = "input_lengths", .tensor = times.view()},
                                            {.name = "label_lengths", .tensor = counts.view()}};
  write_safetensors(folder / "d.safetensors", tensors);
  const Words words = {
      "train", "c.onnx",   "--data", "d.safetensors", "--loss", "ctc",       "--batch",
      "5",     "--epochs", "40",     "--lr",          "0.1",    "--run-dir", "r"};
  const Json json = facts(folder, words);
  CHECK(json.get<double>("first_loss") > 1.0);
  CHECK(json.get<double>("last_loss") < 0.3);
  CHECK(facts(folder, {"eval", "r"}).get<double>("loss") ==
        json.at("validation").get<double>("loss"));
  const auto with_loss = [&](const char* loss, const char* data) {
    return refused(folder, {"train", "c.onnx", "--data", data, "--loss", loss, "--steps", "1",
                            "--shape", "T=8"});
  };
  has(with_loss("ctc", "synthetic"), "--loss ctc:most_labels=S");
  has(with_loss("ctc:blank=3", "d.safetensors"), "blank=3, but 'y' has 3 classes");
  has(with_loss("ctc:time_axis=2", "d.safetensors"), "time_axis is '2'");
}

TEST_CASE("optimizers: rmsprop and lion train, with flags of their own") {
  for (const Words& words : std::vector<Words>{
           {"--optimizer", "rmsprop"},
           {"--optimizer", "rmsprop", "--alpha", "0.9", "--momentum", "0.5", "--centered"},
           {"--optimizer", "lion", "--lr", "1e-3", "--weight-decay", "0.1"},
           {"--optimizer", "lion", "--betas", "0.8,0.9"}}) {
    const TemporaryFolder folder;
    INFO(words[1]);
    const Json json = facts(folder, train(words));
    CHECK(json.get<double>("last_loss") < json.get<double>("first_loss"));
  }
  const TemporaryFolder folder;
  has(refused(folder, train({"--optimizer", "lion", "--eps", "1"})), "--eps means nothing");
  has(refused(folder, train({"--optimizer", "rmsprop", "--betas", "0.1,0.1"})),
      "--betas means nothing");
  has(refused(folder, train({"--alpha", "0.9"})), "--alpha means nothing with --optimizer adamw");
  has(refused(folder, train({"--optimizer", "rmsprop", "--alpha", "1"})), "--alpha is '1'");
}

TEST_CASE(
    "averages: evaluations and the exported model use them, a resumed run goes on with them") {
  const TemporaryFolder folder;
  const Words more = {"--lr", "0.05", "--eval-every", "2", "--save-every", "2"};
  const Json plain = facts(folder, train(more));
  Words averaged = more;
  averaged.insert(averaged.end(), {"--ema", "0.7"});
  const auto with = [&](const char* run_dir, Words words) {
    words = train(words);
    words[9] = run_dir;
    return words;
  };
  const Json json = facts(folder, with("e", averaged));
  CHECK(json.get<double>("last_loss") == plain.get<double>("last_loss"));  // training is the same
  CHECK(json.at("validation").get<double>("loss") != plain.at("validation").get<double>("loss"));
  CHECK(facts(folder, {"eval", "e"}).get<double>("loss") ==
        json.at("validation").get<double>("loss"));
  CHECK(facts(folder, {"eval", "e", "--best"}).get<double>("loss") ==
        json.at("best").get<double>("loss"));
  fs::remove_all(folder / "e/checkpoints/step-00000008");
  const Json again = facts(folder, {"train", "--resume", "e"});
  CHECK(again.get<int>("from_step") == 6);
  CHECK(again.at("validation").get<double>("loss") == json.at("validation").get<double>("loss"));
  Words other = averaged;
  other.back() = "0.8";
  other.insert(other.end(), {"--resume", "auto"});
  has(refused(folder, with("e", other)), "ema was 0.7, is 0.8");
  has(refused(folder, train({"--ema", "1"})),
      "--ema is '1': expected a number of 0 or more, below 1");
}

TEST_CASE("early stopping: the run ends when the validation loss does not fall") {
  const TemporaryFolder folder;
  // A rate of 0 changes nothing: the first evaluation stays the best.
  const Words still = {"--lr", "0", "--eval-every", "2"};
  Words words = train(still);
  words.insert(words.end(), {"--early-stop", "2"});
  const Finished finished = call(folder, words);
  INFO(finished.err);
  CHECK(finished.exit_code == 0);
  has(finished.out, "ended early after step 6 of 8");
  has(finished.out, "best        step 2");
  CHECK(RunReader::open(folder / "r").manifest().sessions.back().status == RunStatus::kFinished);
  CHECK(fs::exists(folder / "r/checkpoints/step-00000002"));
  // A gain that is too small is none.
  words = train({"--lr", "1e-6", "--eval-every", "2", "--early-stop", "1,min_delta=0.5"});
  words[9] = "small";
  CHECK(facts(folder, words).get<bool>("ended_early"));
  // One that counts goes on.
  words = train({"--eval-every", "2", "--early-stop", "100"});
  words[9] = "on";
  CHECK(!facts(folder, words).contains("ended_early"));
  has(refused(folder, train({"--early-stop", "2"})), "--eval-every N");
  has(refused(folder, train({"--early-stop", "0", "--eval-every", "1"})), "--early-stop is '0'");
  has(refused(folder, train({"--early-stop", "1,gain=2", "--eval-every", "1"})), "min_delta=X");
  words = train({"--early-stop", "1", "--eval-every", "1"});
  words[3] = "synthetic,examples=34,validation=0";
  has(refused(folder, words), "no examples validate");
}

TEST_CASE("predict: a row for each example, in their order") {
  const TemporaryFolder folder;
  write_model(kModel, folder / "c.onnx");
  std::ofstream(folder / "d.csv") << "u,v,kind\n1,0,a\n0,1,b\n1,1,a\n2,0,b\n0,0,a\n";
  const Json json = facts(
      folder, {"predict", "c.onnx", "--data", "d.csv,label=kind", "--batch", "2", "-o", "y.csv"});
  CHECK(json.get<int>("examples") == 5);
  CHECK(read_text(folder / "y.csv") ==
        "y_0,y_1,y_2\n0.1,0.2,0.3\n-0.1,-0.2,0.4\n0,0,0.70000005\n0.2,0.4,0.6\n0,0,0\n");
  // A split in the source says nothing of what is predicted.
  CHECK(facts(folder,
              {"predict", "c.onnx", "--data", "d.csv,label=kind,validation=0.2", "-o", "z.csv"})
            .get<int>("examples") == 5);
  facts(folder,
        {"predict", "c.onnx", "--data", "d.csv,label=kind", "--batch", "4", "-o", "y.safetensors"});
  const SafetensorsFile file = SafetensorsFile::open((folder / "y.safetensors").string());
  CHECK(file.type("y") == TensorType{.dtype = DType::kF32, .shape = {5, 3}});
  CHECK(file.tensor("y").values<float>()[11] == doctest::Approx(0.6));
  facts(folder, {"train", "c.onnx", "--data", "d.csv,label=kind", "--batch", "2", "--epochs", "2",
                 "--run-dir", "r"});
  CHECK(facts(folder, {"predict", "r", "-o", "t.csv"}).get<int>("examples") == 5);
  CHECK(read_text(folder / "t.csv") != read_text(folder / "y.csv"));
  // Columns by name, those of the labels among them: a run's own, and of a file without them.
  const std::string by_name = "columns=labels:kind;x:v+u";
  facts(folder, {"train", "c.onnx", "--data", "d.csv," + by_name, "--batch", "2", "--epochs", "2",
                 "--run-dir", "n"});
  CHECK(facts(folder, {"predict", "n", "-o", "n.csv"}).get<int>("examples") == 5);
  std::ofstream(folder / "f.csv") << "v,u\n0,1\n1,0\n1,1\n0,2\n0,0\n";
  facts(folder, {"predict", "n", "--data", "f.csv," + by_name, "-o", "m.csv"});
  CHECK(read_text(folder / "m.csv") == read_text(folder / "n.csv"));
  has(refused(folder, {"predict", "n", "--data", "f.csv,columns=z:v+u;labels:u", "-o", "m.csv"}),
      "columns says nothing of 'x'");
  has(refused(folder, {"predict", "c.onnx", "--data", "d.csv,label=kind", "-o", "y.txt"}),
      "expected FILE.safetensors or FILE.csv");
  const Finished wrong = call(folder, {"predict", "c.onnx", "--data", "d.csv", "-o", "y.csv"});
  CHECK(wrong.exit_code == 3);
  has(wrong.err, "columns=A+B takes some of them");
}

}  // namespace trainscope::test
