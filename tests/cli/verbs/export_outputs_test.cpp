// export --outputs: a trained model without the loss that was part of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/onnx/import.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

// Two outputs with a squared and an absolute loss, added up in the model.
constexpr const char* kTwoLosses = R"(<ir_version: 8, opset_import: ["" : 17]>
two (float[N,4] x, float[N,2] target1, float[N,1] target2) =>
    (float[N,2] a, float[N,1] b, float loss)
<float[4,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, int64[2] sizes = {2, 1}> {
  h = MatMul(x, w)  a, b = Split <axis = 1> (h, sizes)
  d = Sub(a, target1)  q = Mul(d, d)  l1 = ReduceMean <keepdims = 0> (q)
  e = Sub(b, target2)  f = Abs(e)  l2 = ReduceMean <keepdims = 0> (f)  loss = Add(l1, l2) })";

const fs::path& trained_folder() {
  static const TemporaryFolder folder;
  static const bool trained = [] {
    write_model(kTwoLosses, folder / "two.onnx");
    const Finished finished =
        run({"train", "two.onnx", "--data", "synthetic", "--loss", "output:loss", "--batch", "4",
             "--steps", "3", "--threads", "1", "-q", "--run-dir", "run"},
            {}, folder.path());
    INFO(finished.err);
    return finished.exit_code == 0;
  }();
  REQUIRE(trained);
  return folder.path();
}

Finished export_with(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"export", "run", "-o", "out.onnx"};
  all.insert(all.end(), words.begin(), words.end());
  return run(all, {}, trained_folder());
}

template <typename List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& each : list) names.push_back(each.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("export --outputs: the loss in the model goes, and the targets with it") {
  REQUIRE(export_with({}).exit_code == 0);
  const OnnxModel whole = OnnxModel::read(trained_folder() / "out.onnx");
  CHECK(names_of(whole.outputs()) == Names{"a", "b", "loss"});
  CHECK(names_of(whole.inputs()) == Names{"x", "target1", "target2"});

  REQUIRE(export_with({"--outputs", "a, b"}).exit_code == 0);
  const OnnxModel both = OnnxModel::read(trained_folder() / "out.onnx");
  CHECK(names_of(both.outputs()) == Names{"a", "b"});
  CHECK(names_of(both.inputs()) == Names{"x"});
  CHECK(both.node_count() == 2);
  CHECK(std::ranges::equal(both.initializer("w")->values<float>(),
                           whole.initializer("w")->values<float>()));
}

TEST_CASE("export --outputs: other names and other formats are usage errors") {
  const Finished unknown = export_with({"--outputs", "a,score"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("has no output 'score'") != std::string::npos);
  CHECK(unknown.err.find("its outputs are a, b, loss") != std::string::npos);
  CHECK(export_with({"--outputs", "a,a"}).exit_code == 2);
  CHECK(export_with({"--outputs", ""}).exit_code == 2);
  CHECK(export_with({"--outputs", "a", "--format", "safetensors"}).exit_code == 2);
  CHECK(export_with({"--outputs", "a", "--stage", "differentiate"}).exit_code == 2);
}

}  // namespace trainscope::test
