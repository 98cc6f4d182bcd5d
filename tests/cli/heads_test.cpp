// Several losses and heads follow PyTorch's usual loops: a variational autoencoder, CTC, pairs of
// pictures and texts, adversarial nets. tests/data/heads/make.py says what was run there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "engine/bundle/reader.h"
#include "engine/core/file.h"
#include "engine/core/safetensors.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

const fs::path kHeads = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/heads";
constexpr double kLimit = 1e-5;

// `train` on the batches of a case in their order.
Words train_words(const std::string& name, const Words& more) {
  Words words = {"train",     (kHeads / (name + ".onnx")).string(),
                 "--data",    "tensors:" + (kHeads / (name + ".safetensors")).string(),
                 "--shuffle", "none",
                 "--steps",   "10",
                 "--batch",   "6",
                 "--run-dir", "r"};
  words.insert(words.end(), more.begin(), more.end());
  if (std::ranges::find(more, "--threads") == more.end()) {
    words.insert(words.end(), {"--threads", "1"});
  }
  return words;
}

void trains(const TemporaryFolder& folder, const std::string& name, Words more) {
  more.insert(more.end(), {"--validation", "none"});
  const Finished finished = run(train_words(name, more), {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
}

double term_of(const StepRecord& step, const std::string& name) {
  if (name == "loss") return step.loss;
  const auto found = std::ranges::find(step.terms, name, &std::pair<std::string, double>::first);
  REQUIRE(found != step.terms.end());
  return found->second;
}

// The largest difference of the losses of all steps, over the loss where that is above 1.
double largest_difference(const fs::path& run_folder, const std::string& name) {
  const Json numbers = read_json_file(kHeads / "losses.json");
  const Metrics metrics = RunReader::open(run_folder).metrics();
  REQUIRE(metrics.steps.size() == 10);
  double largest = 0.0;
  for (const JsonMember& losses : numbers.at("losses").at(name).as_object()) {
    for (std::size_t i = 0; i < metrics.steps.size(); ++i) {
      const double want = losses.value.as_array()[i].as_number();
      const double got = term_of(metrics.steps[i], losses.key);
      largest = std::max(largest, std::abs(got - want) / std::max(1.0, std::abs(want)));
    }
  }
  return largest;
}

// The same of the trained tensors that have one name in both; `count`: how many these must be.
double trained_difference(const fs::path& run_folder, const std::string& name, int count) {
  const SafetensorsFile want = SafetensorsFile::open(kHeads / (name + "-trained.safetensors"));
  const SafetensorsFile got =
      SafetensorsFile::open(run_folder / "checkpoints/step-00000010/model.safetensors");
  double largest = 0.0;
  int compared = 0;
  for (const std::string& tensor : want.names()) {
    if (!got.contains(tensor)) continue;
    ++compared;
    const Tensor a = want.tensor(tensor);
    const Tensor b = got.tensor(tensor);
    REQUIRE(a.shape() == b.shape());
    for (std::size_t i = 0; i < a.values<float>().size(); ++i) {
      const double difference = std::abs(a.values<float>()[i] - b.values<float>()[i]);
      largest = std::max(largest, difference);
    }
  }
  CHECK(compared == count);
  return largest;
}

void follows(const std::string& name, const Words& more, int tensors) {
  const TemporaryFolder folder;
  trains(folder, name, more);
  const double losses = largest_difference(folder / "r", name);
  const double trained = trained_difference(folder / "r", name, tensors);
  MESSAGE(fmt::format("{}: losses differ by at most {:.2g}, trained tensors by {:.2g}", name,
                      losses, trained));
  CHECK(losses <= kLimit);
  CHECK(trained <= kLimit);
}

const Words kVae = {"--loss",      "bce_with_logits:output=scores,labels=x + 0.05*output:kl",
                    "--optimizer", "adam",
                    "--lr",        "0.01"};

const Words kGan = {"--alternate", "d_loss=discriminator.*:optimizer=adam,lr=0.02,beta1=0.5",
                    "--alternate", "g_loss=generator.*:optimizer=sgd,lr=0.05,momentum=0.5",
                    "--optimizer", "adam",
                    "--lr",        "0.01"};

}  // namespace

TEST_CASE("heads: an autoencoder's two losses follow PyTorch") { follows("vae", kVae, 10); }

TEST_CASE("heads: CTC follows PyTorch, with an empty text and one that no path can spell") {
  follows("ctc",
          {"--loss", "ctc:output=scores,time_axis=1,zero_infinity=1", "--optimizer", "sgd", "--lr",
           "0.1", "--momentum", "0.9"},
          6);
}

TEST_CASE("heads: a contrastive loss of two inputs follows PyTorch") {
  follows("pairs",
          {"--loss", "output:loss", "--train", "logit_scale", "--optimizer", "adamw", "--lr",
           "0.01", "--weight-decay", "0.1"},
          8);
}

TEST_CASE("heads: two nets with optimizers of their own follow PyTorch, statistics included") {
  follows("gan", kGan, 14);
}

TEST_CASE("heads: updates that alternate go on after a resume, and with recomputation") {
  const TemporaryFolder folder;
  Words half = kGan;
  half.insert(half.end(), {"--session-steps", "4"});
  trains(folder, "gan", half);
  const Finished finished = run({"train", "--resume", "r", "--threads", "1"}, {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK(largest_difference(folder / "r", "gan") <= kLimit);
  for (const Words& more : std::vector<Words>{{"--recompute", "2"}, {"--threads", "2"}}) {
    const TemporaryFolder other;
    Words words = kGan;
    words.insert(words.end(), more.begin(), more.end());
    trains(other, "gan", words);
    CHECK(largest_difference(other / "r", "gan") <= kLimit);
  }
}

TEST_CASE("heads: what cannot alternate is refused with what to do") {
  const TemporaryFolder folder;
  const auto refused = [&](const Words& more) {
    const Finished finished = run(train_words("gan", more), {}, folder.path());
    CHECK(finished.exit_code == 2);
    return finished.err;
  };
  const std::string d = "d_loss=discriminator.*";
  const std::string g = "g_loss=generator.*";
  CHECK(text_has(refused({"--alternate", d}), "one loss has nothing to alternate with"));
  CHECK(text_has(refused({"--alternate", "d_loss", "--alternate", g}),
                 "expected OUTPUT=PATTERN[:optimizer=KIND,lr=X,...]"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", d}), "names the loss 'd_loss' twice"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", "g_loss=generator.0.*"}),
                 "is in none of the groups that alternate"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", "g_loss=*"}),
                 "is in several of the groups that alternate"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", "g_loss=*or.*:lr=1"}), "several"));
  CHECK(text_has(refused({"--alternate", "d_loss=*", "--alternate", "g_loss=no*"}),
                 "'no*' of the loss 'g_loss' matches no parameter"));
  CHECK(text_has(refused({"--alternate", d + ":rate=1", "--alternate", g}), "no key 'rate'"));
  CHECK(text_has(refused({"--alternate", d + ":beta1=1", "--alternate", g}), "beta1 is '1'"));
  CHECK(text_has(refused({"--alternate", d + ":optimizer=sgd,eps=1", "--alternate", g}),
                 "eps means nothing with sgd"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", "loss=generator.*"}),
                 "reads output 'loss', which the model does not have"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", g, "--loss", "output:d_loss"}),
                 "--alternate and --loss do not go together"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", g, "--accumulate", "2"}),
                 "do not go together with accumulation"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", g, "--clip", "1"}),
                 "do not go together with clipping"));
  CHECK(text_has(refused({"--alternate", d, "--alternate", g, "--skip-ignored"}),
                 "do not go together with --skip-ignored"));
}

TEST_CASE("heads: a sum is evaluated, resumed and refused where its labels do not fit") {
  const TemporaryFolder folder;
  Words words = kVae;
  words.insert(words.end(), {"--validation", "0.4", "--epochs", "1"});
  words = train_words("vae", words);
  words.erase(words.begin() + 6, words.begin() + 8);  // --steps 10
  const Finished trained = run(words, {}, folder.path());
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const Finished evaluated = run({"eval", "r", "--json"}, {}, folder.path());
  REQUIRE(evaluated.exit_code == 0);
  const Json manifest = read_json_file(folder / "r/manifest.json");
  CHECK(manifest.at("options").get<std::string>("loss") ==
        "bce_with_logits:output=scores,labels=x + 0.05*output:kl");
  const Metrics metrics = RunReader::open(folder / "r").metrics();
  REQUIRE(metrics.evaluations.size() == 1);
  CHECK(evaluated.json().get<double>("loss") == metrics.evaluations[0].loss);
  CHECK(metrics.steps[0].loss ==
        doctest::Approx(metrics.steps[0].terms[0].second + 0.05 * metrics.steps[0].terms[1].second)
            .epsilon(1e-6));
  const auto refused = [&](const std::string& loss) {
    const Finished finished = run(train_words("vae", {"--loss", loss}), {}, folder.path());
    CHECK(finished.exit_code == 2);
    return finished.err;
  };
  const std::string noise = refused("mse:output=scores,labels=noise + output:kl");
  CHECK(text_has(noise, "already has a value named 'noise'"));
  CHECK(text_has(noise, "it would have to be f32[6,12], it is f32[6,3]"));
  CHECK(text_has(refused("output:kl + output:scores"), "must be a scalar"));
  CHECK(text_has(refused("output:kl + half*output:kl"), "'half*' is no weight"));
  CHECK(text_has(refused("output:kl + 0*output:kl"), "'0*' is no weight"));
  CHECK(text_has(refused("output:kl + "), "there is no loss ''"));
}

TEST_CASE("heads: labels that two losses share are read once, and are classes of both") {
  const TemporaryFolder folder;
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,2] x) => (float[N,3] a, float[N,2] b)"
      " <float[2,3] v = {0.1,0.2,0.3,-0.1,-0.2,0.4}, float[2,2] w = {0.3,0.2,-0.1,0.4}>"
      " { a = MatMul(x, v) b = MatMul(x, w) }",
      folder / "m.onnx");
  std::ofstream(folder / "two.csv") << "u,v,kind\n1,0,0\n0,1,1\n1,1,0\n2,0,1\n";
  std::ofstream(folder / "three.csv") << "u,v,kind\n1,0,0\n0,1,1\n1,1,2\n2,0,1\n";
  const auto train = [&](const std::string& file, const std::string& loss) {
    return run({"train", "m.onnx", "--data", file + ",label=kind", "--validation", "none", "--loss",
                loss, "--batch", "2", "--steps", "2", "--shuffle", "none", "--run-dir", "r"},
               {}, folder.path());
  };
  const std::string both = "cross_entropy:output=a + 0.5*cross_entropy:output=b";
  const Finished trained = train("two.csv", both);
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const StepRecord step = RunReader::open(folder / "r").metrics().steps.at(0);
  REQUIRE(step.terms.size() == 2);
  CHECK(step.loss ==
        doctest::Approx(step.terms[0].second + 0.5 * step.terms[1].second).epsilon(1e-6));
  // The third class is none of b's.
  const Finished beyond = train("three.csv", both);
  CHECK(beyond.exit_code == 3);
  CHECK(text_has(beyond.err, "'labels'[2] is 2: expected 0 to 1"));
  const Finished differ =
      train("two.csv", "cross_entropy:output=a + cross_entropy:output=b,ignore_index=7");
  CHECK(differ.exit_code == 2);
  CHECK(text_has(differ.err, "'labels' is read with ignore_index -100 and with 7"));
}

}  // namespace trainscope::test
