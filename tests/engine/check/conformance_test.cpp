// conformance: verdicts on test folders made here, sound ones and broken ones.
#include "engine/check/conformance.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/onnx/plain_model.h"
#include "engine/onnx/tensor_pb.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "trainscope-conformance-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void add_varint(std::string& bytes, std::uint64_t number) {
  for (; number >= 128; number >>= 7) bytes += static_cast<char>((number & 127) | 128);
  bytes += static_cast<char>(number);
}

// A TensorProto by hand: dims are field 1, data_type field 2, raw_data field 9.
std::string tensor_bytes(int type, const std::vector<std::int64_t>& dims, std::string_view raw) {
  std::string bytes;
  for (std::int64_t dim : dims) {
    bytes += '\x08';
    add_varint(bytes, static_cast<std::uint64_t>(dim));
  }
  bytes += '\x10';
  add_varint(bytes, static_cast<std::uint64_t>(type));
  bytes += '\x4a';
  add_varint(bytes, raw.size());
  return bytes + std::string(raw);
}

template <typename T>
std::string_view raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

constexpr int kFloat = 1;
constexpr int kInt64 = 7;
constexpr int kComplex64 = 14;

ModelTensor tensor_of(std::string_view name, DType dtype, const std::vector<std::int64_t>& dims) {
  ModelTensor tensor{.name = std::string(name), .dtype = dtype, .dims = {{}}};
  for (std::int64_t dim : dims) tensor.dims->push_back({.size = dim, .symbol = {}});
  return tensor;
}

PlainModel relu_model(std::string_view op = "Relu") {
  return {.name = "g",
          .inputs = {tensor_of("x", DType::kF32, {2, 2})},
          .outputs = {tensor_of("y", DType::kF32, {2, 2})},
          .initializers = {},
          .nodes = {{std::string(op), "n", {"x"}, {"y"}, {}}},
          .values = {}};
}

const std::vector<float> kX{-1, 2, -3, 4};
const std::vector<float> kY{0, 2, 0, 4};

// A folder with y = Relu(x) on kX and kY.
fs::path relu_test(const fs::path& folder) {
  fs::create_directories(folder / "test_data_set_0");
  write_onnx(relu_model(), folder / "model.onnx");
  write_file_atomic(folder / "test_data_set_0/input_0.pb", tensor_bytes(kFloat, {2, 2}, raw(kX)));
  write_file_atomic(folder / "test_data_set_0/output_0.pb", tensor_bytes(kFloat, {2, 2}, raw(kY)));
  return folder;
}

// The verdict, the same one in every way to run.
ConformanceTest verdict_of(const fs::path& folder) {
  ConformanceTest test = run_conformance_test(folder, {});
  for (ConformancePasses passes : {ConformancePasses::kAll, ConformancePasses::kNone}) {
    for (KnownInputs known : {KnownInputs::kNeeded, KnownInputs::kAll}) {
      const ConformanceTest other =
          run_conformance_test(folder, {.passes = passes, .known = known});
      CHECK(name_of(other.verdict) == name_of(test.verdict));
      CHECK(other.why == test.why);
    }
  }
  return test;
}

bool contains(std::string_view text, std::string_view piece) {
  return text.find(piece) != std::string_view::npos;
}

}  // namespace

TEST_CASE("conformance: ops of com.microsoft give what ONNX Runtime gives") {
  const fs::path folder = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/com-microsoft";
  for (const ConformancePasses passes : {ConformancePasses::kAll, ConformancePasses::kNone}) {
    const std::vector<ConformanceTest> tests = run_conformance(folder, {.passes = passes});
    CHECK(tests.size() == 27);
    for (const ConformanceTest& test : tests) {
      CAPTURE(test.name);
      CAPTURE(test.why);
      CHECK(test.verdict == Verdict::kPass);
    }
  }
}

TEST_CASE("conformance: recurrent ops give what ONNX Runtime gives") {
  const fs::path folder = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/recurrent";
  for (const ConformancePasses passes : {ConformancePasses::kAll, ConformancePasses::kNone}) {
    const std::vector<ConformanceTest> tests = run_conformance(folder, {.passes = passes});
    CHECK(tests.size() == 20);
    for (const ConformanceTest& test : tests) {
      CAPTURE(test.name);
      CAPTURE(test.why);
      CHECK(test.verdict == Verdict::kPass);
    }
  }
}

TEST_CASE("conformance: a model that gives the stored outputs passes") {
  const Scratch scratch;
  const ConformanceTest test = verdict_of(relu_test(scratch.path() / "test_relu"));
  CHECK(test.name == "test_relu");
  CHECK(test.verdict == Verdict::kPass);
  CHECK(test.why.empty());
}

TEST_CASE("conformance: another value, shape or type is wrong") {
  const Scratch scratch;
  const fs::path folder = relu_test(scratch.path() / "t");
  const fs::path output = folder / "test_data_set_0/output_0.pb";
  SUBCASE("value") {
    const std::vector<float> values{0, 2.01F, 0, 4};
    write_file_atomic(output, tensor_bytes(kFloat, {2, 2}, raw(values)));
    CHECK(contains(verdict_of(folder).why,
                   "test_data_set_0: output 0 'y': 1 of 4 elements differ, "
                   "the first at index 1: 2, expected 2.0"));
  }
  SUBCASE("shape") {
    write_file_atomic(output, tensor_bytes(kFloat, {4}, raw(kY)));
    CHECK(contains(verdict_of(folder).why, "is f32[2,2], expected f32[4]"));
  }
  SUBCASE("type") {
    const std::vector<std::int64_t> values{0, 2, 0, 4};
    write_file_atomic(output, tensor_bytes(kInt64, {2, 2}, raw(values)));
    CHECK(contains(verdict_of(folder).why, "is f32[2,2], expected i64[2,2]"));
  }
  SUBCASE("in a second data set") {
    fs::copy(folder / "test_data_set_0", folder / "test_data_set_1");
    write_file_atomic(folder / "test_data_set_1/output_0.pb", tensor_bytes(kFloat, {4}, raw(kY)));
    CHECK(contains(verdict_of(folder).why, "test_data_set_1: output 0"));
  }
  CHECK(verdict_of(folder).verdict == Verdict::kWrong);
}

TEST_CASE("conformance: broken files are errors with their reason") {
  const Scratch scratch;
  const fs::path folder = relu_test(scratch.path() / "t");
  const fs::path data = folder / "test_data_set_0";
  std::string expected;
  SUBCASE("no data set") {
    fs::remove_all(data);
    expected = "there is no test_data_set_N folder";
  }
  SUBCASE("no output") {
    fs::remove(data / "output_0.pb");
    expected = "has 0 outputs, the model has 1";
  }
  SUBCASE("no input") {
    fs::remove(data / "input_0.pb");
    expected = "no file holds input 'x'";
  }
  SUBCASE("an input too many") {
    fs::copy(data / "input_0.pb", data / "input_1.pb");
    expected = "has 2 inputs, the model has 1";
  }
  SUBCASE("a gap in the numbers") {
    fs::rename(data / "input_0.pb", data / "input_7.pb");
    expected = "but no input_0.pb";
  }
  SUBCASE("an input of another shape") {
    write_file_atomic(data / "input_0.pb", tensor_bytes(kFloat, {4, 1}, raw(kX)));
    expected = "dimension 0 is 2 in the model, 4 was given";
  }
  SUBCASE("an input of another type") {
    const std::vector<std::int64_t> values{0, 2, 0, 4};
    write_file_atomic(data / "input_0.pb", tensor_bytes(kInt64, {2, 2}, raw(values)));
    expected = "input 'x' is declared as f32, the stored one is i64[2,2]";
  }
  SUBCASE("a tensor cut short") {
    const std::string whole = tensor_bytes(kFloat, {2, 2}, raw(kX));
    write_file_atomic(data / "input_0.pb", std::string_view(whole).substr(0, whole.size() - 3));
    expected = "the file is not an ONNX tensor, or it is damaged (test_data_set_0/input_0.pb)";
  }
  SUBCASE("a tensor with too few elements") {
    write_file_atomic(data / "input_0.pb", tensor_bytes(kFloat, {2, 3}, raw(kX)));
    expected = "needs 24 bytes, but raw_data has 16";
  }
  SUBCASE("a negative dimension") {
    write_file_atomic(data / "input_0.pb", tensor_bytes(kFloat, {2, -2}, raw(kX)));
    expected = "negative dimension";
  }
  SUBCASE("a type without a name") {
    write_file_atomic(data / "input_0.pb", tensor_bytes(99, {2, 2}, raw(kX)));
    expected = "element type type 99";
  }
  SUBCASE("an empty model") {
    write_file_atomic(folder / "model.onnx", std::string_view());
    expected = "the model file is empty";
  }
  SUBCASE("a model that is none") {
    write_file_atomic(folder / "model.onnx", std::string_view("abc"));
    expected = "the file is not an ONNX model";
  }
  SUBCASE("a model that is a folder") {
    fs::remove(folder / "model.onnx");
    fs::create_directory(folder / "model.onnx");
    expected = "model.onnx";
  }
  SUBCASE("a model that declares another output") {
    PlainModel model = relu_model();
    model.outputs = {tensor_of("y", DType::kF32, {4})};
    write_onnx(model, folder / "model.onnx");
    expected = "is declared with shape [4]";
  }
  const ConformanceTest test = verdict_of(folder);
  CHECK(test.verdict == Verdict::kError);
  INFO(test.why);
  CHECK(contains(test.why, expected));
  CHECK_FALSE(contains(test.why, "\n"));
}

TEST_CASE("conformance: what this version cannot do is unsupported, by name") {
  const Scratch scratch;
  const fs::path folder = relu_test(scratch.path() / "t");
  std::string expected;
  SUBCASE("an op") {
    write_onnx(relu_model("GridOfThings"), folder / "model.onnx");
    expected = "GridOfThings (opset 17, 1 node): there is no such op";
  }
  SUBCASE("an element type in the data") {
    write_file_atomic(folder / "test_data_set_0/input_0.pb",
                      tensor_bytes(kComplex64, {2, 2}, std::string(32, '\0')));
    expected = "element type complex64 is not supported";
  }
  const ConformanceTest test = verdict_of(folder);
  CHECK(test.verdict == Verdict::kUnsupported);
  INFO(test.why);
  CHECK(contains(test.why, expected));
}

TEST_CASE("conformance: inputs that shapes depend on are known before the run") {
  const Scratch scratch;
  const fs::path folder = relu_test(scratch.path() / "t");
  PlainModel model = relu_model("Reshape");
  model.inputs.push_back(tensor_of("shape", DType::kI64, {1}));
  model.nodes[0].inputs.emplace_back("shape");
  model.outputs = {tensor_of("y", DType::kF32, {4})};
  write_onnx(model, folder / "model.onnx");
  const std::vector<std::int64_t> shape{4};
  write_file_atomic(folder / "test_data_set_0/input_1.pb", tensor_bytes(kInt64, {1}, raw(shape)));
  write_file_atomic(folder / "test_data_set_0/output_0.pb", tensor_bytes(kFloat, {4}, raw(kX)));
  CHECK(verdict_of(folder).verdict == Verdict::kPass);
}

TEST_CASE("conformance: folders are found below, links are not followed") {
  const Scratch scratch;
  relu_test(scratch.path() / "b/test_2");
  relu_test(scratch.path() / "a/deep/test_1");
  fs::create_directory_symlink(scratch.path(), scratch.path() / "a/again");
  const std::vector<ConformanceTest> tests = run_conformance(scratch.path(), {});
  REQUIRE(tests.size() == 2);
  CHECK(tests[0].name == "a/deep/test_1");
  CHECK(tests[1].name == "b/test_2");
  // A folder given as a link is what the caller meant.
  fs::create_directory_symlink(scratch.path() / "b", scratch.path() / "link");
  CHECK(run_conformance(scratch.path() / "link", {}).size() == 1);
  CHECK(run_conformance(scratch.path() / "b/test_2", {})[0].name == "test_2");
}

TEST_CASE("conformance: a folder without tests and no folder at all") {
  const Scratch scratch;
  const auto code_of = [](const fs::path& path) {
    try {
      find_conformance_tests(path);
    } catch (const Error& error) {
      return static_cast<int>(error.code());
    }
    return 0;
  };
  CHECK(code_of(scratch.path()) == 2);
  CHECK(code_of(scratch.path() / "nothing") == 6);
}

TEST_CASE("conformance: elements are close as ONNX's runner has it") {
  const auto differ = [](double a, double b) {
    return conformance_difference(Tensor::scalar(a), Tensor::scalar(b)).has_value();
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  CHECK_FALSE(differ(1000.9, 1000.0));
  CHECK(differ(1001.1, 1000.0));
  CHECK(differ(1000.0, -1000.0));
  CHECK_FALSE(differ(0.9e-7, 0.0));
  CHECK(differ(1.1e-7, 0.0));
  CHECK_FALSE(differ(nan, nan));
  CHECK(differ(nan, 1.0));
  CHECK(differ(1.0, nan));
  CHECK_FALSE(differ(kInfinity, kInfinity));
  CHECK(differ(kInfinity, -kInfinity));
  CHECK(differ(1e300, kInfinity));
  CHECK(differ(kInfinity, 1e300));
  // Two units in the last place of bf16.
  const auto stored = [](double x) { return convert(Tensor::scalar(x), DType::kBF16); };
  CHECK_FALSE(conformance_difference(stored(1.015625), stored(1.0)).has_value());
  CHECK(conformance_difference(stored(1.0234375), stored(1.0)).has_value());
  // Integers are equal or not.
  const auto number = [](std::int64_t i) { return Tensor::scalar(i); };
  CHECK(conformance_difference(number(100001), number(100000)).has_value());
  CHECK_FALSE(conformance_difference(number(100000), number(100000)).has_value());
  CHECK(conformance_difference(number(1), Tensor::scalar(1.0)).has_value());
}

TEST_CASE("tensor_pb: a missing file is an I/O error, a damaged one names itself") {
  const Scratch scratch;
  try {
    read_tensor_pb(scratch.path() / "none.pb");
    FAIL("read");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kIo);
  }
  const fs::path file = scratch.path() / "t.pb";
  const std::string whole = tensor_bytes(kFloat, {2, 2}, raw(kX));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file_atomic(file, std::string_view(whole).substr(0, size));
    CAPTURE(size);
    try {
      read_tensor_pb(file);
      FAIL("read");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kBadInput);
      CHECK(contains(error.context().back(), "t.pb"));
    }
  }
  write_file_atomic(file, whole);
  CHECK(read_tensor_pb(file).values<float>()[3] == 4.0F);
}

}  // namespace trainscope
