// Forms of data and words that people type: what they mean, and what is said where they do not fit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "engine/core/safetensors.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

constexpr std::int64_t kExamples = 10;

struct Place {
  TemporaryFolder folder;
  Place() {
    write_two_models(folder.path());
    std::ofstream(folder / "d.csv") << "u,v,t,kind\n1,2,0.5,a\n2,3,0.1,b\n3,1,0.2,a\n1,1,0.9,c\n";
  }

  Finished call(const Words& words) const { return run(words, {}, folder.path()); }

  // The losses of two epochs over a file, one run a call.
  std::vector<double> losses(const char* model, const std::string& data,
                             const Words& more = {}) const {
    Words words = {"train", model, "--data", data,    "--batch",   "2",   "--epochs",
                   "2",     "-q",  "--lr",   "0.125", "--run-dir", "made"};
    words.insert(words.end(), more.begin(), more.end());
    fs::remove_all(folder / "made");
    const Finished finished = call(words);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return losses_of(folder / "made");
  }

  std::string error(const Words& words, int code) const {
    const Finished finished = call(words);
    CHECK(finished.exit_code == code);
    CHECK(finished.err.starts_with("error: "));
    return finished.err;
  }

  // x and labels with these numbers.
  void put(const char* file, const Tensor& labels) const {
    Tensor x({.dtype = DType::kF32, .shape = {kExamples, 2}});
    for (std::size_t i = 0; i < x.values<float>().size(); ++i) {
      x.values<float>()[i] = 0.25F * static_cast<float>(i % 7);
    }
    const std::vector<NamedTensor> tensors = {{.name = "x", .tensor = x.view()},
                                              {.name = "labels", .tensor = labels.view()}};
    write_safetensors(folder / file, tensors);
  }
};

void has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

// 0, 1, 2, 0, ... as numbers of the type.
Tensor labels_of(DType dtype, const Shape& shape) {
  Tensor numbers({.dtype = DType::kF64, .shape = shape});
  for (std::size_t i = 0; i < numbers.values<double>().size(); ++i) {
    numbers.values<double>()[i] = static_cast<double>(i % 3);
  }
  return convert(numbers, dtype);
}

Words one_step(const char* model, const std::string& data) {
  return {"train", model, "--data", data, "--batch", "2", "--steps", "1"};
}

}  // namespace

TEST_CASE("forms: classes in floats are those in integers") {
  const Place place;
  place.put("i.safetensors", labels_of(DType::kI64, {kExamples}));
  place.put("f.safetensors", labels_of(DType::kF32, {kExamples}));
  CHECK(place.losses("c.onnx", "f.safetensors") == place.losses("c.onnx", "i.safetensors"));
  Tensor half = labels_of(DType::kF32, {kExamples});
  half.values<float>()[4] = 1.5F;
  place.put("h.safetensors", half);
  const std::string error = place.error(one_step("c.onnx", "h.safetensors"), 3);
  has(error, "'labels' holds 1.5 at element 4: labels of this loss are whole numbers");
  has(error, "--loss mse");
}

TEST_CASE("forms: labels [N] and [N,1] are the same") {
  const Place place;
  place.put("row.safetensors", labels_of(DType::kF32, {kExamples}));
  place.put("column.safetensors", labels_of(DType::kF32, {kExamples, 1}));
  place.put("wide.safetensors", labels_of(DType::kF32, {kExamples, 2}));
  const Words mse = {"--loss", "mse"};
  const std::vector<double> row = place.losses("n.onnx", "row.safetensors", mse);
  CHECK(row == place.losses("n.onnx", "column.safetensors", mse));
  CHECK(place.losses("c.onnx", "column.safetensors") == place.losses("c.onnx", "row.safetensors"));
  Words words = one_step("n.onnx", "wide.safetensors");
  words.insert(words.end(), mse.begin(), mse.end());
  has(place.error(words, 3), "'labels' is f32[10,2], expected [N,1]");
}

TEST_CASE("forms: a file's ending is its kind") {
  const Place place;
  place.put("d.safetensors", labels_of(DType::kI64, {kExamples}));
  CHECK(place.losses("c.onnx", "d.safetensors") == place.losses("c.onnx", "tensors:d.safetensors"));
  CHECK(place.losses("c.onnx", "d.csv,label=kind,columns=u+v") ==
        place.losses("c.onnx", "csv:d.csv,label=kind,columns=u+v"));
  has(place.error(one_step("c.onnx", "d.json"), 2), "unknown kind of data 'd.json'");
  has(place.error(one_step("c.onnx", "d.txt"), 2), "text feeds an integer input");
  has(place.error(one_step("c.onnx", "none.csv,label=kind"), 6), "cannot open 'none.csv'");
}

TEST_CASE("forms: columns by name, and labels that are no class") {
  const Place place;
  CHECK(place.losses("c.onnx", "d.csv,label=kind,columns=v+u") !=
        place.losses("c.onnx", "d.csv,label=kind,columns=u+v"));
  const auto error = [&](const char* rest, int code) {
    return place.error(one_step("c.onnx", std::string("d.csv") + rest), code);
  };
  has(error(",label=kid,columns=u+v", 2), "has no column 'kid'\n  try: did you mean 'kind'?");
  has(error(",label=kind,columns=u+w", 2), "has no column 'w'");
  has(error(",label=kind,columns=u+u", 2), "column 'u' is named twice");
  has(error(",label=kind,columns=u+kind", 2), "column 'kind' is the label");
  has(error(",label=kind", 3), "columns=A+B takes some of them");
  has(error(",columns=u+v", 2), "which column is the label?");
  const std::string number = error(",label=t,columns=u+v", 3);
  has(number, "row 1 (line 2), column 't': '0.5' is no whole number");
  has(number, "for numbers take --loss mse");
}

TEST_CASE("forms: words of other tools are told ours") {
  const Place place;
  const auto meant = [&](const char* typed, const std::string& ours) {
    INFO(typed);
    has(place.error({"train", "c.onnx", typed, "1"}, 2), "did you mean '--" + ours + "'?");
  };
  meant("--learning-rte", "lr");
  meant("--epoch", "epochs");
  meant("--bs", "batch");
  meant("--patience", "early-stop");
  meant("--validation-splt", "validation");
  meant("--gradient-checkpointing", "recompute");
  meant("--link", "link-rate");
}

TEST_CASE("forms: a model of two-byte floats is told what to do") {
  const Place place;
  // The text form has no numbers of f16: i16 with the same bytes take their place, by the number of
  // the type behind the dims 2 and 3.
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> h (float16[N,2] x) => (float16[N,3] y)"
      " <int16[2,3] w = {0, 0, 0, 0, 0, 0}> { y = MatMul(x, w) }",
      place.folder / "h.onnx");
  std::string bytes = read_text(place.folder / "h.onnx");
  const std::size_t at = bytes.find("\x08\x02\x08\x03\x10\x05");
  REQUIRE(at != std::string::npos);
  bytes[at + 5] = '\x0a';
  std::ofstream(place.folder / "h.onnx", std::ios::binary) << bytes;
  place.put("d.safetensors", labels_of(DType::kI64, {kExamples}));
  has(place.error({"check", "h.onnx"}, 3), "export it in float32, and train with --precision fp16");
  has(place.error(one_step("h.onnx", "d.safetensors"), 3), "export it in float32");
}

}  // namespace trainscope::test
