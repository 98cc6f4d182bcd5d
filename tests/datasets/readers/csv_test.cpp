// CSV files: columns to inputs and labels, quoting, and cells that are no numbers.
#include "datasets/readers/csv.h"

#include <doctest/doctest.h>

#include "datasets/csv.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

using Cells = std::vector<std::string>;

std::vector<float> floats(const Tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}

}  // namespace

TEST_CASE("csv: cells, quotes, line ends, blanks") {
  const CsvTable table = parse_csv(
      "\xEF\xBB\xBF"
      "a, b ,\"c,\"\"d\"\"\"\r\n1,  two words\t,3\n\"x\ny\",\"\" ,\"\"\"\"\r\n,,\n\n\r\n");
  CHECK(table.columns == Cells{"a", "b", "c,\"d\""});
  CHECK(table.cells == Cells{"1", "two words", "3", "x\ny", "", "\"", "", "", ""});
  CHECK(table.lines == std::vector<std::size_t>{2, 3, 5});
  CHECK(parse_csv("a\n1").rows() == 1);
}

TEST_CASE("csv: tables that are none") {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> rows[] = {
      {"", "there is no header row"},
      {"\n\n", "there is no header row"},
      {"a,b\n", "there are no rows below the header"},
      {"a,,c\n1,2,3", "line 1: column 2 has no name"},
      {"a,b,a\n1,2,3", "line 1: two columns are called 'a'"},
      {"a,b\n1", "line 2 has 1 cells, the header has 2"},
      {"a,b\n1,2\n\n3,4", "line 3 has 1 cells, the header has 2"},
      {"a,b\n1,2,3", "line 2 has 3 cells, the header has 2"},
      {"a,b\n\"x\ny\",2\n1,\"2", "line 4: the quoted cell that begins there never ends"},
      {"a,b\n1,\"2\"x", "line 2: expected a comma or a line end after a cell, found 'x'"},
      {"a,b\n1,2\"3", "line 2: a quote within the cell '2\"3'"},
      {"a,b\n1,2\r3,4", "line 2: expected a comma or a line end after a cell, found '\\r'"},
      {"a,b\n1,\0002"s, "byte 6 is 0"},
  };
  for (const auto& row : rows) {
    const char* const message = row.second;
    CAPTURE(message);
    const Error error = error_of([&] { parse_csv(row.first); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), message));
  }
}

TEST_CASE("csv: the label by name, the other columns in their order") {
  const TemporaryFolder folder;
  put(folder / "d.csv", "u,kind,v\n1,2,3.5\n-4e-1,0,.5\n7,1,8\n");
  const auto data =
      open_dataset(source("csv", folder / "d.csv", ",label=kind,validation=0"), pair_options());
  const Batch batch = read_batch(*data, Split::kTrain, 0, {0, 1, 2});
  CHECK(floats(batch.tensors[0].second) == std::vector<float>{1, 3.5F, -0.4F, 0.5F, 7, 8});
  CHECK(ints_of(batch.tensors[1].second) == Ints{2, 0, 1});
  CHECK(data->description().get<std::string>("label") == "kind");
  CHECK(data->description().get<int>("examples") == 3);
}

TEST_CASE("csv: columns are dealt to the inputs in the graph's order") {
  const TemporaryFolder folder;
  put(folder / "d.csv", "a,b,c,d,y\n1,2,3,4,0.5\n");
  DatasetOptions options;
  options.inputs = {{.name = "p", .dtype = DType::kF64, .dims = {{1}}},
                    {.name = "q", .dtype = DType::kI32, .dims = {{3, 1}}}};
  options.labels = WantedField{.name = "target", .dtype = DType::kF32, .dims = {{1}}};
  const auto data = open_dataset(source("csv", folder / "d.csv", ",label=y,validation=0"), options);
  const Batch batch = read_batch(*data, Split::kTrain, 0, {0});
  CHECK(batch.tensors[0].second.values<double>()[0] == 1.0);
  CHECK(batch.tensors[1].second.shape() == Shape{1, 3, 1});
  CHECK(ints_of(batch.tensors[1].second) == Ints{2, 3, 4});
  CHECK(batch.tensors[2].second.values<float>()[0] == 0.5F);
}

TEST_CASE("csv: a graph with its own loss gets its labels by name or by order") {
  const TemporaryFolder folder;
  put(folder / "d.csv", "a,b,y\n1,2,3\n");
  DatasetOptions options = pair_options();
  options.labels.reset();
  options.inputs.push_back({.name = "labels", .dtype = DType::kI64, .dims = Ints{}});
  const auto labels = [&](const char* rest) {
    const auto data = open_dataset(source("csv", folder / "d.csv", rest), options);
    return ints_of(read_batch(*data, Split::kTrain, 0, {0}).tensors[1].second);
  };
  CHECK(labels(",label=a") == Ints{1});
  CHECK(labels("") == Ints{3});
}

TEST_CASE("csv: columns by name, in the order in which they are named") {
  const TemporaryFolder folder;
  put(folder / "d.csv", "id,v,y,u\n9,1,2,3\n9,4,0,6\n");
  const auto data = open_dataset(
      source("csv", folder / "d.csv", ",label=y,columns=u+v,validation=0"), pair_options());
  const Batch batch = read_batch(*data, Split::kTrain, 0, {0, 1});
  CHECK(floats(batch.tensors[0].second) == std::vector<float>{3, 1, 6, 4});
  CHECK(data->description().get<std::string>("columns") == "u+v");
  const auto refused = [&](const char* columns) {
    const Error error =
        opening_error(source("csv", folder / "d.csv", std::string(",label=y,columns=") + columns),
                      pair_options());
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message() + "|" + error.hint();
  };
  CHECK(contains(refused("u+w"), "has no column 'w'"));
  CHECK(contains(refused("u+u"), "column 'u' is named twice"));
  CHECK(contains(refused("u+y"), "column 'y' is the label"));
}

TEST_CASE("csv: columns of each input and of the labels by name") {
  const TemporaryFolder folder;
  put(folder / "d.csv", "id,u,v,w,kind,size\n9,1,2,3,pear,0.5\n9,4,5,6,apple,0.25\n");
  DatasetOptions options;
  options.inputs = {{.name = "p", .dtype = DType::kF32, .dims = {{1}}},
                    {.name = "q", .dtype = DType::kF64, .dims = {{2}}},
                    {.name = "sizes", .dtype = DType::kF32, .dims = {{1}}}};
  options.labels = WantedField{.name = "kinds", .dtype = DType::kI64, .dims = Ints{}, .bound = 3};
  const auto tensor = [&](const std::string& rest, const std::string& name) {
    const auto data =
        open_dataset(source("csv", folder / "d.csv", rest + ",validation=0"), options);
    for (auto& [field, values] : read_batch(*data, Split::kTrain, 0, {0, 1}).tensors) {
      if (field == name) return values;
    }
    FAIL("no such field");
    return Tensor();
  };
  const std::string all = ",columns=q:w+u;sizes:size;kinds:kind;p:u";
  CHECK(floats(tensor(all, "p")) == std::vector<float>{1, 4});
  CHECK(tensor(all, "q").values<double>()[0] == 3.0);
  CHECK(tensor(all, "q").values<double>()[3] == 4.0);
  CHECK(floats(tensor(all, "sizes")) == std::vector<float>{0.5F, 0.25F});
  CHECK(ints_of(tensor(all, "kinds")) == Ints{1, 0});  // text: classes by their sorted names
  const std::string label = ",label=kind,columns=p:v;q:u+w;sizes:size";
  CHECK(ints_of(tensor(label, "kinds")) == Ints{1, 0});
  CHECK(floats(tensor(label, "p")) == std::vector<float>{2, 5});

  const auto refused = [&](const std::string& rest, ErrorCode code) {
    const Error error = opening_error(source("csv", folder / "d.csv", rest), options);
    CHECK(error.code() == code);
    return error.message() + "|" + error.hint();
  };
  CHECK(contains(refused(",columns=p:u;q:v+w;kinds:kind", ErrorCode::kUsage),
                 "columns says nothing of 'sizes'"));
  CHECK(contains(refused(",columns=p:u;q:v+w;sizes:size", ErrorCode::kUsage),
                 "columns says nothing of 'kinds'"));
  CHECK(contains(refused(",columns=p:u;p:v;q:v+w;sizes:size;kinds:kind", ErrorCode::kUsage),
                 "the columns of 'p' are given twice"));
  CHECK(contains(refused(",label=kind,columns=p:u;q:v+w;sizes:size;kinds:id", ErrorCode::kUsage),
                 "the columns of 'kinds' are given twice"));
  CHECK(contains(refused(",columns=p:u;r:v", ErrorCode::kUsage),
                 "'r:v' is not NAME:A+B with an input of the model|the model takes p, q, sizes"));
  CHECK(contains(refused(",columns=p:u;q", ErrorCode::kUsage), "'q' is not NAME:A+B"));
  CHECK(contains(refused(",columns=p:x", ErrorCode::kUsage), "has no column 'x'"));
  CHECK(contains(refused(",columns=q:u+u", ErrorCode::kUsage), "named twice"));
  CHECK(contains(refused(",columns=q:u", ErrorCode::kBadInput),
                 "'q' has 1 columns, the model takes 2 numbers an example there"));
}

TEST_CASE("csv: labels that are text are classes by their sorted names") {
  const TemporaryFolder folder;
  put(folder / "d.csv", "u,v,kind\n1,2,pear\n3,4,\"an apple\"\n5,6,pear\n");
  const std::string text = source("csv", folder / "d.csv", ",label=kind,validation=0");
  const auto data = open_dataset(text, pair_options());
  CHECK(ints_of(read_batch(*data, Split::kTrain, 0, {0, 1, 2}).tensors[1].second) == Ints{1, 0, 1});
  CHECK(data->description().at("class_names").dump() == "[\"an apple\",\"pear\"]");
  DatasetOptions trained = pair_options();
  trained.class_names = {"an apple", "fig", "pear"};
  CHECK(ints_of(read_batch(*open_dataset(text, trained), Split::kTrain, 0, {0, 1, 2})
                    .tensors[1]
                    .second) == Ints{2, 0, 2});
  trained.class_names = {"fig", "pear"};
  CHECK(contains(opening_error(text, trained).message(),
                 "'an apple' is none of the classes fig, pear"));
  put(folder / "d.csv", "u,v,kind\n1,2,2.0\n3,4,1e0\n5,6,0\n");  // numbers, however written
  const auto numbers = open_dataset(text, pair_options());
  CHECK(ints_of(read_batch(*numbers, Split::kTrain, 0, {0, 1, 2}).tensors[1].second) ==
        Ints{2, 1, 0});
  CHECK(!numbers->description().contains("class_names"));
}

TEST_CASE("csv: what stands for an empty cell is said, or there is none") {
  const TemporaryFolder folder;
  put(folder / "d.csv", "u,v,y\n1,,0\n3,8,1\n5,2,\n,,2\n");
  const auto open = [&](const char* missing) {
    return open_dataset(
        source("csv", folder / "d.csv", std::string(",label=y,validation=0,missing=") + missing),
        pair_options());
  };
  const auto dropped = open("drop");
  CHECK(dropped->examples(Split::kTrain) == 1);
  CHECK(floats(read_batch(*dropped, Split::kTrain, 0, {0}).tensors[0].second) ==
        std::vector<float>{3, 8});
  const Error label = error_of([&] { open("mean"); });
  CHECK(contains(label.message(), "row 3 (line 4), column 'y': the cell is empty"));
  CHECK(contains(label.hint(), "missing=drop"));
  put(folder / "d.csv", "u,v,y\n1,,0\n3,8,1\n,2,2\n");
  CHECK(floats(read_batch(*open("mean"), Split::kTrain, 0, {0, 1, 2}).tensors[0].second) ==
        std::vector<float>{1, 5, 3, 8, 2, 2});
  CHECK(floats(read_batch(*open("zero"), Split::kTrain, 0, {0, 1, 2}).tensors[0].second) ==
        std::vector<float>{1, 0, 3, 8, 0, 2});
  const Error plain = opening_error(source("csv", folder / "d.csv", ",label=y"), pair_options());
  CHECK(contains(plain.message(), "row 1 (line 2), column 'v': the cell is empty"));
  CHECK(contains(plain.hint(), "missing=mean"));
  CHECK(contains(error_of([&] { open("median"); }).message(), "expected mean, zero or drop"));
  put(folder / "d.csv", "u,v,y\n1,,0\n");
  CHECK(contains(error_of([&] { open("drop"); }).message(), "every row has an empty cell"));
}

TEST_CASE("csv: the mean for empty cells is that of the rows that train") {
  const TemporaryFolder folder;
  put(folder / "d.csv", "u,v,y\n1,4,0\n3,,1\n5,8,2\n,900,2\n");
  DatasetOptions options = pair_options();
  const auto open = [&](const char* rest) {
    return open_dataset(
        source("csv", folder / "d.csv", std::string(",label=y,missing=mean") + rest), options);
  };
  const auto quarter = open(",validation=0.25");
  CHECK(floats(read_batch(*quarter, Split::kTrain, 0, {1}).tensors[0].second) ==
        std::vector<float>{3, 6});
  CHECK(floats(read_batch(*quarter, Split::kValidation, 0, {0}).tensors[0].second) ==
        std::vector<float>{3, 900});
  CHECK(quarter->description().at("column_means").dump() == "{\"u\":3.0,\"v\":6.0}");
  // Where none trains, all rows count; what a trained model's data say comes before either.
  CHECK(open(",validation=1")->description().at("column_means").at("v").as_number() == 304.0);
  take_from_training(quarter->description(), options);
  const auto given = open(",validation=1");
  CHECK(given->description().at("column_means").at("v").as_number() == 6.0);
  CHECK(floats(read_batch(*given, Split::kValidation, 0, {1}).tensors[0].second) ==
        std::vector<float>{3, 6});
  options.column_means.clear();
  options.validation_seed = 7;
  const auto drawn = open(",validation=0.5");
  const Tensor two = read_batch(*drawn, Split::kTrain, 0, {0, 1}).tensors[0].second;
  const double mean = drawn->description().at("column_means").at("v").as_number();
  double sum = 0.0;
  int count = 0;
  for (const float v : {floats(two)[1], floats(two)[3]}) {
    const bool stored = v == 4.0F || v == 8.0F || v == 900.0F;
    sum += stored ? v : 0.0F;
    count += stored ? 1 : 0;
  }
  CHECK(mean == sum / count);
  options.validation_seed.reset();
  put(folder / "d.csv", "u,v,y\n1,,0\n3,,1\n5,,2\n6,1,2\n");
  const Error none = error_of([&] { open(",validation=0.25"); });
  CHECK(contains(none.message(), "column 'v': the cell is empty, and no row that trains has"));
  CHECK(contains(none.hint(), "missing=zero"));
}

TEST_CASE("csv: cells and columns that do not fit, with row and column") {
  struct Row {
    const char* text;
    const char* rest;
    ErrorCode code;
    const char* message;
  };
  constexpr ErrorCode kBad = ErrorCode::kBadInput;
  const Row rows[] = {
      {"u,v,y\n1,2,0\n1,x,0\n", "", kBad, "row 2 (line 3), column 'v': 'x' is no number"},
      {"u,v,y\n\"\n1\",2,0\n1,,0", "", kBad, "row 1 (line 2), column 'u': '\\n1' is no number"},
      {"u,v,y\n1,,0\n", "", kBad, "row 1 (line 2), column 'v': the cell is empty"},
      {"u,v,y\n1,nan,0\n", "", kBad, "column 'v': 'nan' is no number"},
      {"u,v,y\n1,1e39,0\n", "", kBad, "column 'v': '1e39' is no number"},
      {"u,v,y\n1,1e999,0\n", "", kBad, "column 'v': '1e999' is no number"},
      {"u,v,y\n1,\"1,5\",0\n", "", kBad, "column 'v': '1,5' is no number"},
      {"u,v,y\n1,0x10,0\n", "", kBad, "column 'v': '0x10' is no number"},
      {"u,v,y\n1,2,0.5\n", "", kBad, "column 'y': '0.5' is no whole number"},
      {"u,v,y\n1,2,a\n1,2,1\n", "", kBad, "column 'y': 'a' is no whole number"},
      {"u,v,y\n1,2,a\n1,2,b\n1,2,c\n1,2,d\n", "", kBad,
       "column 'y' has 4 different labels, the model has 3 classes"},
      {"u,v,y\n1,2,99999999999999999999\n", "", kBad, "is no whole number"},
      {"u,v,y\n1,2,3\n", "", kBad, "'labels'[0] is 3: expected 0 to 2 or -100"},
      {"u,y\n1,2\n", "", kBad, "has 1 columns besides the label, the model takes 2 numbers"},
      {"u,v,w,y\n1,2,3,0\n", "", kBad, "has 3 columns besides the label"},
      {"u,v,y\n1,2\n", "", kBad, "line 2 has 2 cells, the header has 3"},
      {"u,v,kind\n1,2,0\n", "", ErrorCode::kUsage, "has no column 'y'"},
      {"u,v,y\n1,2,0\n", "none", ErrorCode::kUsage, "which column is the label?"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.message);
    put(folder / "d.csv", row.text);
    const std::string rest = *row.rest == '\0' ? ",label=y" : "";
    const Error error = opening_error(source("csv", folder / "d.csv", rest), pair_options());
    CHECK(error.code() == row.code);
    CAPTURE(error.message());
    CHECK(contains(error.message(), row.message));
  }
}

}  // namespace trainscope
