// Training on a folder of images: its classes, how they are changed, and what is refused.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

const fs::path kSample = fs::path(TRAINSCOPE_SOURCE_DIR) / "datasets/samples/images";

struct Place {
  TemporaryFolder folder;
  Place() {
    const Finished made = call({"model", "lenet", "--classes", "3", "-o", "m.onnx"});
    REQUIRE(made.exit_code == 0);
  }

  Finished call(const Words& words) const { return run(words, {}, folder.path()); }

  Finished train(const std::string& run, const Words& more) const {
    Words words = {
        "train",   "m.onnx",    "--data",  "images:" + kSample.string() + ",resize=stretch",
        "--batch", "3",         "--steps", "6",
        "-q",      "--run-dir", run};
    words.insert(words.end(), more.begin(), more.end());
    return call(words);
  }

  std::vector<double> losses(const std::string& run, const Words& more) const {
    const Finished finished = train(run, more);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return losses_of(folder / run);
  }
};

}  // namespace

TEST_CASE("images: train, go on, evaluate and predict as the run did") {
  const Place place;
  const Words changes = {"--normalize", "mean=0.25,std=0.5", "--augment", "flip,crop=3"};
  const std::vector<double> whole = place.losses("whole", changes);
  CHECK(place.losses("plain", {}) != whole);

  // Stopped in the middle and gone on with, the images are changed as if nothing had been.
  Words half = changes;
  half.insert(half.end(), {"--session-steps", "3"});
  place.losses("half", half);
  const Finished rest = place.call({"train", "--resume", "half", "-q"});
  INFO(rest.err);
  REQUIRE(rest.exit_code == 0);
  CHECK(losses_of(place.folder / "half") == whole);

  const Json facts = place.call({"eval", "whole", "--json"}).json();
  CHECK(facts.at("examples").as_int() == 2);  // 12 - 10: a tenth, rounded up
  const Json without =
      place.call({"eval", "whole", "--normalize", "mean=0,std=1", "--json"}).json();
  CHECK(facts.at("loss").as_number() != without.at("loss").as_number());

  const Finished predicted = place.call(
      {"predict", "whole", "--data", "images:" + (kSample / "cross").string() + ",resize=stretch",
       "-o", "scores.csv"});
  INFO(predicted.err);
  REQUIRE(predicted.exit_code == 0);
  std::ifstream scores(place.folder / "scores.csv");
  int lines = 0;
  for (std::string line; std::getline(scores, line);) ++lines;
  CHECK(lines == 5);  // a head and four images
}

TEST_CASE("images: flags that say nothing are refused") {
  const Place place;
  const auto refused = [&](const Words& more, const std::string& part) {
    const Finished finished = place.train("refused", more);
    CHECK(finished.exit_code == 2);
    CHECK(finished.err.find(part) != std::string::npos);
    CHECK_FALSE(fs::exists(place.folder / "refused"));
  };
  refused({"--normalize", "0.5"}, "expected mean=M,std=S");
  refused({"--normalize", "mean=0.5"}, "expected mean=M,std=S");
  refused({"--normalize", "mean=0.5,std=0"}, "S above 0");
  refused({"--normalize", "mean=1+2,std=1"}, "2 means, the images have 1 channels");
  refused({"--augment", "rotate"}, "expected flip, crop=N");
  refused({"--augment", "crop=0"}, "expected flip, crop=N");
  refused({"--augment", "flip,flip"}, "expected flip, crop=N");
  const Finished size = place.call({"train", "m.onnx", "--data", "images:" + kSample.string(),
                                    "--steps", "1", "--run-dir", "refused"});
  CHECK(size.exit_code == 3);
  CHECK(size.err.find("16 x 16 pixels") != std::string::npos);
}

}  // namespace trainscope::test
