// What a graph wants from the data: names, shapes, bounds; sizes that only the data tell.
#include "cli/data/data_fields.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "tests/cli/program_runner.h"

namespace trainscope {
namespace {

// Ids look up a table of 7 rows, positions one of 5; 3 classes.
const char* const kModel =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (int64[B,T] ids, int64[B,T] positions, float[B,T,2] x, float[B] unread)"
    " => (float[B,T,3] logits)"
    " <float[7,2] table = {0,1,2,3,4,5,6,7,8,9,10,11,12,13},"
    " float[5,2] places = {0,1,2,3,4,5,6,7,8,9}, float[2,3] w = {1,2,3,4,5,6}> {"
    " shape = Constant<value_ints = [0, -1]>()"
    " same = Reshape(ids, shape)"
    " a = Gather(table, same) b = Gather(places, positions)"
    " c = Add(a, b) d = Add(c, x) logits = MatMul(d, w) }";

struct Prepared {
  OnnxModel model;
  std::unique_ptr<const Compiled> compiled;
  LossOptions loss;
  Sizes sizes;
};

Prepared prepare() {
  Prepared p{.model = OnnxModel::parse_text(kModel), .compiled = nullptr, .loss = {}, .sizes = {}};
  p.sizes = resolve_sizes(p.model, {.batch = 2, .sequence = 6, .shapes = {}});
  p.loss.output = "logits";
  CompileOptions options;
  options.import.dims = p.sizes.dims;
  options.training.loss = p.loss;
  p.compiled = compile(p.model, options);
  return p;
}

TEST_CASE("data fields: inputs and labels with the bounds of their integers") {
  const Prepared p = prepare();
  const DatasetOptions wanted = dataset_options(*p.compiled, p.model, p.loss, p.sizes);
  REQUIRE(wanted.inputs.size() == 3);  // nothing reads the fourth
  CHECK(wanted.inputs[0].name == "ids");
  CHECK(wanted.inputs[0].bound == 7);
  CHECK(*wanted.inputs[0].dims == std::vector<std::int64_t>{6});
  CHECK(wanted.inputs[1].bound == 5);
  CHECK(wanted.inputs[2].bound == 0);
  CHECK(*wanted.inputs[2].dims == std::vector<std::int64_t>{6, 2});
  REQUIRE(wanted.labels.has_value());
  CHECK(wanted.labels->name == "labels");
  CHECK(wanted.labels->bound == 3);
  CHECK(*wanted.labels->dims == std::vector<std::int64_t>{6});
  CHECK(wanted.ignore_index == -100);
}

TEST_CASE("data fields: open dimensions take their sizes from the tensors of the data") {
  const test::TemporaryFolder folder;
  const Tensor ids({.dtype = DType::kI64, .shape = {10, 6}});
  const std::vector<NamedTensor> tensors = {{.name = "ids", .tensor = ids.view()}};
  write_safetensors(folder / "data.safetensors", tensors);
  const std::string source = "tensors:" + (folder / "data.safetensors").string();
  const OnnxModel model = OnnxModel::parse_text(kModel);
  const Sizes sizes = resolve_sizes_with_data(model, {}, source);
  CHECK(sizes.sequence == 6);
  CHECK(sizes.batch == kDefaultBatch);  // the number of examples is no batch size
  CHECK(open_symbols(model, resolve_sizes_with_data(model, {}, "synthetic")).size() == 1);
}

}  // namespace
}  // namespace trainscope
