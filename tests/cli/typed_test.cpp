// What people type: names of other tools, lengths in epochs, forms of data, help.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "engine/bundle/reader.h"
#include "engine/core/safetensors.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

// A folder with both models and d.csv of 20 rows: u, v, t (a number), kind (text).
struct Place {
  TemporaryFolder folder;
  Place() {
    write_two_models(folder.path());
    std::ofstream file(folder / "d.csv");
    file << "u,v,t,kind\n";
    const char* kinds[] = {"plum", "fig", "apple"};
    for (int i = 0; i < 20; ++i) {
      file << fmt::format("{},{},{},{}\n", 0.1 * i, 1.0 - 0.05 * i, 0.3 * i, kinds[i % 3]);
    }
  }
  Finished call(const Words& words) const { return run(words, {}, folder.path()); }
  Json facts(const Words& words) const {
    Words all = words;
    all.insert(all.end(), {"--json", "-q"});
    const Finished finished = call(all);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return finished.json();
  }
  // The error of a call that is refused with the code.
  std::string error(const Words& words, int code = 2) const {
    const Finished finished = call(words);
    CHECK(finished.exit_code == code);
    CHECK(finished.err.starts_with("error: "));
    return finished.err;
  }
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

Words train(const Words& more) {
  Words words = {"train", "c.onnx", "--data", "d.csv,label=kind,columns=u+v", "--batch", "4"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("typed: all that a call lacks is said at once") {
  const Place place;
  has(place.error({"train"}), "train needs MODEL.onnx, --data and --steps or --epochs");
  has(place.error({"train", "c.onnx"}), "train needs --data and --steps or --epochs");
  has(place.error({"train", "c.onnx", "--steps", "1"}), "train needs --data\n");
  has(place.error({"predict", "c.onnx"}), "predict needs --data and -o FILE");
}

TEST_CASE("typed: help shows what matters, --help-all everything") {
  const std::string brief = run({"train", "--help"}).out;
  const std::string whole = run({"train", "--help-all"}).out;
  CHECK(std::ranges::count(brief, '\n') < 40);
  has(brief, "--epochs N");
  has(brief, "--help-all` explains all of its");
  CHECK(brief.find("--nesterov") == std::string::npos);
  has(whole, "--nesterov");
  has(whole, "(also --learning-rate)");
  CHECK(whole == run({"help", "train"}).out);
}

TEST_CASE("typed: names of other tools") {
  const Place place;
  place.facts({"train", "c.onnx", "--dataset", "d.csv,label=kind,columns=u+v", "--batch-size", "4",
               "--max-steps", "3", "--learning-rate", "0.5", "--wd", "0.1", "--output-dir", "r"});
  const Json options = RunReader::open(place.folder / "r").manifest().options;
  CHECK(options.get<double>("lr") == 0.5);
  CHECK(options.get<double>("weight-decay") == 0.1);
  CHECK(options.get<int>("batch") == 4);
  CHECK(options.get<int>("steps") == 3);
}

TEST_CASE("typed: epochs are as many steps as the data have whole batches") {
  const Place place;
  // 18 of 20 examples train: 4 batches of 4 an epoch.
  CHECK(place.facts(train({"--epochs", "3", "--run-dir", "r"})).get<int>("step") == 12);
  CHECK(place.facts(train({"--epochs", "3", "--accumulate", "5", "--run-dir", "a"}))
            .get<int>("step") == 2);
  place.facts(train({"--epochs", "2", "--schedule", "linear", "--lr", "1", "--run-dir", "s"}));
  CHECK(RunReader::open(place.folder / "s").metrics().steps.back().learning_rate == 0.0);
  has(place.error(train({"--epochs", "1", "--steps", "1"})), "--steps and --epochs: give one");
  has(place.error(train({"--epochs", "0"})), "expected a whole number of 1 or more");
  std::ofstream(place.folder / "file.toml") << "steps = 9\n";
  CHECK(place.facts(train({"--config", "file.toml", "--epochs", "1", "--run-dir", "f"}))
            .get<int>("step") == 4);
}

TEST_CASE("typed: without shuffling the examples come as they are") {
  const Place place;
  const Words common = {"--lr", "0", "--validation", "none", "--batch", "5", "--epochs", "2"};
  const auto run_losses = [&](const Words& more, const char* folder) {
    Words words = {"train", "c.onnx", "--data", "d.csv,label=kind,columns=u+v"};
    words.insert(words.end(), common.begin(), common.end());
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--run-dir", folder});
    place.facts(words);
    return losses_of(place.folder / folder);
  };
  const std::vector<double> plain = run_losses({"--shuffle", "none"}, "a");
  REQUIRE(plain.size() == 8);
  for (std::size_t i = 0; i < 4; ++i) CHECK(plain[i] == plain[i + 4]);
  CHECK(run_losses({}, "b") != plain);
  has(place.error(train({"--steps", "1", "--shuffle", "never"})), "expected epoch, none");
  // A run goes on in its own order alone.
  Words words = {"train",     "c.onnx", "--data",   "d.csv,label=kind,columns=u+v",
                 "--run-dir", "a",      "--resume", "auto"};
  words.insert(words.end(), common.begin(), common.end());
  has(place.error(words), "shuffle was \"none\", is not set");
}

TEST_CASE("typed: which examples validate") {
  const Place place;
  const auto validated = [&](const Words& more, const char* folder) {
    Words words = train({"--steps", "2", "--lr", "0", "--run-dir", folder});
    words.insert(words.end(), more.begin(), more.end());
    return place.facts(words);
  };
  const auto loss = [](const Json& json) { return json.at("validation").get<double>("loss"); };
  CHECK(validated({}, "a").at("validation").get<int>("examples") == 2);
  CHECK(!validated({"--validation", "none"}, "b").contains("validation"));
  const Json last = validated({"--validation", "0.3"}, "c");
  CHECK(last.at("validation").get<int>("examples") == 6);
  const Json drawn = validated({"--validation", "0.3,seed=7"}, "d");
  CHECK(drawn.at("validation").get<int>("examples") == 6);
  CHECK(loss(drawn) != loss(last));
  CHECK(loss(validated({"--validation", "0.3,seed=7"}, "e")) == loss(drawn));
  CHECK(place.facts({"eval", "d"}).get<double>("loss") == loss(drawn));
  std::ofstream(place.folder / "v.csv") << "kind,v,u\nfig,1,0.5\nplum,0,2\nfig,1,1\n";
  const Words own = {"--validation-data", "v.csv,label=kind,columns=u+v"};
  const Json other = validated(own, "f");
  CHECK(other.at("validation").get<int>("examples") == 3);
  CHECK(place.facts({"eval", "f"}).get<double>("loss") == loss(other));
  // With data of its own `eval` forgets the run's split.
  CHECK(place.facts({"eval", "f", "--data", "v.csv,label=kind,columns=u+v,validation=1"})
            .get<double>("loss") == loss(other));
  const auto refused = [&](const Words& more) {
    Words words = train({"--steps", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return place.error(words);
  };
  has(refused({"--validation", "2"}), "--validation is '2': expected a number from 0 to 1");
  has(refused({"--validation", "v.csv"}), "--validation-data SPEC");
  has(refused({"--validation", "0.1,sed=1"}), "FRACTION,seed=N");
  has(refused({"--validation", "0.1", own[0], own[1]}), "give one");
  std::ofstream(place.folder / "w.csv") << "kind,v,u\nkiwi,1,0.5\n";
  has(place.error(train({"--steps", "1", "--validation-data", "w.csv,label=kind,columns=u+v"}), 3),
      "'kiwi' is none of the classes apple, fig, plum");
  const Finished twice =
      place.call({"train", "c.onnx", "--data", "d.csv,label=kind,columns=u+v,validation=0.2",
                  "--steps", "1", "--validation", "0.1"});
  CHECK(twice.exit_code == 2);
  has(twice.err, "give one of the two");
}

TEST_CASE("typed: an empty cell is the mean of the training data in every file") {
  const Place place;
  std::ofstream(place.folder / "t.csv") << "u,v,kind\n1,2,fig\n,4,plum\n3,6,apple\n5,,fig\n";
  std::ofstream(place.folder / "v.csv") << "u,v,kind\n,9,fig\n0.5,,plum\n";
  std::ofstream(place.folder / "filled.csv") << "u,v,kind\n3,9,fig\n0.5,4,plum\n";
  const std::string rest = ",label=kind,missing=mean";
  const Json json = place.facts({"train", "c.onnx", "--data", "t.csv" + rest, "--validation-data",
                                 "v.csv" + rest, "--batch", "2", "--steps", "2", "--run-dir", "r"});
  const double loss = json.at("validation").get<double>("loss");
  CHECK(RunReader::open(place.folder / "r").manifest().data.at("column_means").dump() ==
        "{\"u\":3.0,\"v\":4.0}");
  CHECK(place.facts({"eval", "r"}).get<double>("loss") == loss);
  const auto evaluated = [&](const std::string& file) {
    return place.facts({"eval", "r", "--data", file}).get<double>("loss");
  };
  CHECK(evaluated("filled.csv,label=kind,validation=1") == loss);
  CHECK(evaluated("v.csv" + rest + ",validation=1") == loss);
  place.facts({"predict", "r", "--data", "v.csv" + rest, "-o", "a.csv"});
  place.facts({"predict", "r", "--data", "filled.csv,label=kind", "-o", "b.csv"});
  CHECK(read_text(place.folder / "a.csv") == read_text(place.folder / "b.csv"));
  has(place.error({"eval", "r", "--data", "v.csv,label=kind,validation=1"}, 3),
      "the cell is empty");
}

TEST_CASE("typed: classes that are text are printed and kept in the run") {
  const Place place;
  const Finished finished = place.call(train({"--steps", "2", "--run-dir", "r"}));
  CHECK(finished.exit_code == 0);
  has(finished.err, "classes: 0 apple, 1 fig, 2 plum");
  CHECK(RunReader::open(place.folder / "r").manifest().data.at("class_names").dump() ==
        "[\"apple\",\"fig\",\"plum\"]");
  // A file with two of the classes only: their numbers stay.
  std::ofstream(place.folder / "v.csv") << "u,v,kind\n1,0,plum\n0,1,fig\n";
  CHECK(
      place.facts({"eval", "r", "--data", "v.csv,label=kind,validation=1"}).get<int>("examples") ==
      2);
}

TEST_CASE("typed: a class of one column is refused, numbers are offered") {
  const Place place;
  const std::string error =
      place.error({"train", "n.onnx", "--data", "csv:d.csv,label=t,columns=u+v", "--steps", "1"});
  has(error, "cross_entropy over one class is always 0");
  has(error, "bce_with_logits");
  const Json json = place.facts({"train", "n.onnx", "--data", "csv:d.csv,label=t,columns=u+v",
                                 "--loss", "mse", "--lr", "0.1", "--epochs", "9", "--batch", "6"});
  CHECK(json.get<double>("last_loss") < json.get<double>("first_loss"));
}

TEST_CASE("typed: a refusal says what to do") {
  const Place place;
  const auto try_of = [&](const Words& words, int code) {
    const std::string error = place.error(words, code);
    const std::size_t at = error.find("try: ");
    INFO(error);
    REQUIRE(at != std::string::npos);
    return error.substr(at);
  };
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> b (uint8[N,2] x) => (float[N,3] y) "
      "<float[2,3] w = {1,2,3,4,5,6}> { f = Cast<to = 1>(x)  y = MatMul(f, w) }",
      place.folder / "bytes.onnx");
  Tensor x({.dtype = DType::kF32, .shape = {6, 2}});
  Tensor labels({.dtype = DType::kI64, .shape = {6}});
  labels.values<std::int64_t>()[1] = 3;
  const std::vector<NamedTensor> tensors = {{.name = "x", .tensor = x.view()},
                                            {.name = "labels", .tensor = labels.view()}};
  write_safetensors(place.folder / "d.safetensors", tensors);
  const auto trained = [](const char* model) {
    return Words{"train", model, "--data", "d.safetensors", "--steps", "1", "--batch", "2"};
  };
  has(try_of(trained("bytes.onnx"), 3), "write 'x' as u8, whole numbers, or export the model");
  has(try_of(trained("c.onnx"), 3), "number the classes from 0; the model's scores are of 3");
  Words words = train({"--steps", "1", "--train", "nosuch"});
  has(try_of(words, 2), "`trainscope check MODEL.onnx` lists them");
  words = train({"--steps", "1", "--freeze", "ww"});
  has(try_of(words, 2), "did you mean 'w'?; `trainscope check");
  has(try_of({"plan", "c.onnx", "--link", "1GB"}, 2), "did you mean '--link-rate'?");
  const auto checked = [&](const char* op, const char* node, const char* advice) {
    write_model(fmt::format("<ir_version: 8, opset_import: [\"\" : 17, \"mine\" : 1]> "
                            "o (float[2,2] x) => (float[2,3] y) <float[2,3] w = {{1,2,3,4,5,6}}> "
                            "{{ f = {}  y = MatMul(f, w) }}",
                            node),
                place.folder / "o.onnx");
    const std::string error = place.error({"check", "o.onnx"}, 3);
    has(error, op);
    has(error, std::string("try: ") + advice);
  };
  checked("mine.Twist (opset 1, 1 node)", "mine.Twist(x)",
          "write the op of your own as a function");
  checked("NonZero (opset 17, 1 node)", "NonZero(x)", "replace what it selects by a mask");
  checked("Unique (opset 17, 1 node)", "Unique(x)", "leave it out of the model");
  checked("Scaled (opset 17, 1 node)", "Scaled(x)", "replace it by ops that docs/ops.md lists");
}

TEST_CASE("typed: examples that a fixed batch leaves out of the validation are named") {
  const Place place;
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> f (float[4,2] x) => (float[4,1] y)"
      " <float[2,1] w = {0.1,0.2}> { y = MatMul(x, w) }",
      place.folder / "f.onnx");
  const auto call = [&](const std::string& share, const Words& more) {
    Words words = {"train",        "f.onnx", "--data",  "d.csv,label=t,columns=u+v",
                   "--loss",       "mse",    "--steps", "2",
                   "--validation", share};
    words.insert(words.end(), more.begin(), more.end());
    return place.call(words);
  };
  const Finished some = call("0.3", {"--run-dir", "r"});
  CHECK(some.exit_code == 0);
  has(some.err, "2 of 6 examples that validate do not fill a batch of 4, which the model fixes");
  has(some.out, "over 4 examples");
  const Finished all = call("0.1", {});
  CHECK(all.exit_code == 0);
  has(all.err, "2 of 2 examples that validate");
  CHECK(call("0.2", {}).err.find("left out") == std::string::npos);
  const Finished early = call("0.1", {"--early-stop", "1", "--eval-every", "1"});
  CHECK(early.exit_code == 2);
  has(early.err, "no examples validate: 2 of 2 examples");
  const Finished none =
      place.call({"eval", "r", "--data", "d.csv,label=t,columns=u+v,validation=0.1"});
  CHECK(none.exit_code == 3);
  has(none.err, "have no examples to evaluate: 2 of 2 examples that validate do not fill");
}

TEST_CASE("typed: a run is resumed by its name alone") {
  const Place place;
  place.facts(train({"--steps", "6", "--lr", "0.1", "--save-every", "3", "--run-dir", "whole"}));
  place.facts(train(
      {"--steps", "6", "--lr", "0.1", "--save-every", "3", "--run-dir", "part", "--threads", "1"}));
  fs::remove_all(place.folder / "part/checkpoints/step-00000006");
  const Json json = place.facts({"train", "--resume", "part"});
  CHECK(json.get<int>("from_step") == 3);
  CHECK(json.get<int>("step") == 6);
  CHECK(losses_of(place.folder / "part") == losses_of(place.folder / "whole"));
  has(place.error({"train", "--resume", "nowhere"}, 6), "there is no model or run 'nowhere'");
  has(place.error({"train", "--resume", "c.onnx"}), "'c.onnx' is no run");
}

TEST_CASE("typed: a time-major model is trained along its batch axis") {
  const TemporaryFolder folder;
  const auto model = [&](const char* dims, int axis, const char* file) {
    write_model(
        fmt::format("<ir_version: 8, opset_import: [\"\" : 17]> m (float[{}] x) => "
                    "(float[batch,3] y) <float[2,3] w = {{0.1,0.2,0.3,-0.1,-0.2,0.4}}> "
                    "{{ h = ReduceMean <axes = [{}], keepdims = 0> (x)  y = MatMul(h, w) }}",
                    dims, axis),
        folder / file);
  };
  model("T,batch,2", 0, "named.onnx");
  model("T,M,2", 0, "asked.onnx");
  model("batch,T,2", 1, "plain.onnx");
  // Three times, 12 examples, two numbers.
  Tensor by_time({.dtype = DType::kF32, .shape = {3, 12, 2}});
  Tensor by_example({.dtype = DType::kF32, .shape = {12, 3, 2}});
  Tensor labels({.dtype = DType::kI64, .shape = {12}});
  for (int t = 0; t < 3; ++t) {
    for (int n = 0; n < 12; ++n) {
      for (int c = 0; c < 2; ++c) {
        const float value = std::sin(static_cast<float>(t + 3 * n + 40 * c));
        const auto at = [](int i) { return static_cast<std::size_t>(i); };
        by_time.values<float>()[at((t * 12 + n) * 2 + c)] = value;
        by_example.values<float>()[at((n * 3 + t) * 2 + c)] = value;
      }
      labels.values<std::int64_t>()[static_cast<std::size_t>(n)] = n % 3;
    }
  }
  const auto put = [&](const char* file, const Tensor& x) {
    const std::vector<NamedTensor> tensors = {{.name = "x", .tensor = x.view()},
                                              {.name = "labels", .tensor = labels.view()}};
    write_safetensors(folder / file, tensors);
  };
  put("time.safetensors", by_time);
  put("example.safetensors", by_example);
  const auto run_losses = [&](const Words& words, const std::string& to) {
    Words all = {"train"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--batch", "4", "--epochs", "2", "-q", "--run-dir", to, "--threads", "1",
                           "--validation", "0.2", "--lr", "0.1"});
    const Finished finished = run(all, {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    std::vector<double> list = losses_of(folder / to);
    list.push_back(RunReader::open(folder / to).metrics().evaluations.back().loss);
    return list;
  };
  const auto plain = run_losses({"plain.onnx", "--data", "example.safetensors"}, "a");
  CHECK(run_losses({"named.onnx", "--data", "time.safetensors"}, "b") == plain);
  CHECK(run_losses({"asked.onnx", "--data", "time.safetensors", "--batch-axis", "x=1"}, "c") ==
        plain);
  const auto refused = [&](const Words& more) {
    Words all = {"train", "asked.onnx", "--data", "time.safetensors", "--steps", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all, {}, folder.path());
  };
  const Finished untold = refused({"--shape", "M=12"});
  CHECK(untold.exit_code == 3);
  has(untold.err, "--batch-axis");
  has(refused({"--batch-axis", "x=3"}).err, "it has 3 dimensions");
  const Finished beyond = refused({"--batch-axis", "x=1", "--batch-axis", "labels=5"});
  CHECK(beyond.exit_code == 2);
  has(beyond.err, "--batch-axis labels=5: they are");
  has(refused({"--batch-axis", "z=1"}).err, "the model has no input or output 'z'");
  has(refused({"--batch-axis", "x"}).err, "expected NAME=AXIS");
}

}  // namespace trainscope::test
