// Texts that name a data source, right and wrong.
#include "datasets/spec.h"

#include <doctest/doctest.h>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {

TEST_CASE("data spec: kinds, files and options") {
  const DataSpec text = parse_data_spec("text:a b/c.txt");
  CHECK(text.format == "text");
  CHECK(text.file() == "a b/c.txt");
  CHECK(text.options.empty());

  const DataSpec tensors = parse_data_spec("tensors:x:y.safetensors,validation=0.25");
  CHECK(tensors.format == "tensors");
  CHECK(tensors.file() == "x:y.safetensors");
  CHECK(tensors.fraction("validation", 0.1) == 0.25);

  const DataSpec bpe = parse_data_spec("bpe:a.txt,v.json,m.txt,validation=0");
  CHECK(bpe.format == "bpe");
  CHECK(bpe.files == std::vector<std::string>{"a.txt", "v.json", "m.txt"});
  CHECK(bpe.fraction("validation", 0.1) == 0.0);
  CHECK(parse_data_spec("idx:i,l").files == std::vector<std::string>{"i", "l"});
  CHECK(parse_data_spec("csv:x=1.csv,label=a b").option("label", "") == "a b");
  CHECK(parse_data_spec("tokens:t").option("dtype", "uint16") == "uint16");
  CHECK(parse_data_spec("catalog:mnist").file() == "mnist");

  const DataSpec synthetic = parse_data_spec("synthetic,examples=64,classes=10");
  CHECK(synthetic.format == "synthetic");
  CHECK(synthetic.files.empty());
  CHECK(synthetic.integer("examples", 1, 1) == 64);
  CHECK(synthetic.integer("classes", 1, 1) == 10);
  CHECK(synthetic.fraction("validation", 0.1) == 0.1);
  CHECK(parse_data_spec("synthetic").integer("examples", 512, 1) == 512);
}

TEST_CASE("data spec: a file's name says what it is") {
  struct Row {
    const char* text;
    const char* format;
  };
  for (const Row& row :
       {Row{"a.csv,label=y", "csv"}, Row{"b/c.txt", "text"}, Row{"x.safetensors", "tensors"},
        Row{"x.npz,validation=0.5", "tensors"}, Row{"train.bin,dtype=uint32", "tokens"},
        Row{"train-images-idx3-ubyte,train-labels-idx1-ubyte", "idx"},
        Row{"i.idx.gz,l.idx", "idx"}}) {
    INFO(row.text);
    const DataSpec spec = parse_data_spec(row.text);
    CHECK(spec.format == row.format);
    CHECK(spec.text == row.text);
    CHECK(std::string(row.text).starts_with(spec.file()));
  }
  CHECK(parse_data_spec("a.csv,label=y,columns=u+v").option("columns", "") == "u+v");
  CHECK(parse_data_spec("text:a.csv").format == "text");  // what is said counts
}

TEST_CASE("data spec: bad ones are refused with what was expected") {
  struct Row {
    const char* text;
    const char* message;
    const char* hint;
  };
  const Row rows[] = {
      {"", "expected a kind of data first", "the forms are text:FILE"},
      {":x", "expected a kind of data first", "the forms are"},
      {"input.tex", "unknown kind of data 'input.tex'", "the forms are"},
      {"input.csv,labl=y", "csv has no option 'labl'", "did you mean 'label'?"},
      {".csv", "unknown kind of data '.csv'", "did you mean 'csv'?"},
      {"txt:a", "unknown kind of data 'txt'", "did you mean 'text'?"},
      {"Text:a", "unknown kind of data 'Text'", "did you mean 'text'?"},
      {"tensor:a", "unknown kind of data 'tensor'", "did you mean 'tensors'?"},
      {"idx", "expected 2 files, found 0", "the form is idx:IMAGES,LABELS"},
      {"idx:a", "expected 2 files, found 1", "the form is idx:IMAGES,LABELS"},
      {"idx:a,validation=0", "expected 2 files, found 1", "the form is idx:IMAGES,LABELS"},
      {"idx:,b", "expected 2 files, found 0", "the form is idx:IMAGES,LABELS"},
      {"idx:a,b,c", "expected key=value, found 'c'", "ends at the first comma"},
      {"bpe:a,b", "expected 3 files, found 2", "the form is bpe:FILE,VOCAB.json,MERGES.txt"},
      {"csv:a,labels=x", "csv has no option 'labels'", "did you mean 'label'?"},
      {"tokens:a,type=uint16", "tokens has no option 'type'", "did you mean 'dtype'?"},
      {"catalog", "the name is missing", "the form is catalog:NAME"},
      {"text", "the file is missing", "the form is text:FILE"},
      {"text:", "the file is missing", "the form is text:FILE"},
      {"text:,validation=0", "the file is missing", "the form is"},
      {"text,validation=0", "the file is missing", "the form is"},
      {"tensors", "the file is missing", "tensors:FILE.safetensors|FILE.npz"},
      {"text:a,b.txt", "expected key=value, found 'b.txt'", "ends at the first comma"},
      {"text:a,", "expected key=value, found ''", "first comma"},
      {"text:a,validaton=0", "text has no option 'validaton'", "did you mean 'validation'?"},
      {"text:a,examples=3", "text has no option 'examples'", "the form is text"},
      {"text:a,=3", "text has no option ''", "the form is text"},
      {"text:a,validation=", "option 'validation' has no value", ""},
      {"text:a,validation=0,validation=1", "option 'validation' is given twice", ""},
      {"a.parquet", "Parquet files are not read",
       "pandas.read_parquet('a.parquet').to_csv('a.parquet.csv'"},
      {"csv:b/a.pq,label=y", "Parquet files are not read", "pandas.read_parquet('b/a.pq')"},
      {"parquet:a'b", "Parquet files are not read", "pandas.read_parquet('FILE')"},
      {"synthetic:file", "synthetic data have no file", "the form is synthetic"},
      {"synthetic,classes", "expected key=value, found 'classes'", ""},
      {"synthetic\x1b[31m", "unknown kind of data 'synthetic\\x1b[31m'", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Error error = error_of([&] { parse_data_spec(row.text); });
    CHECK(error.code() == ErrorCode::kUsage);
    CAPTURE(error.message());
    CHECK(contains(error.message(), row.message));
    CAPTURE(error.hint());
    CHECK(contains(error.hint(), row.hint));
  }
}

TEST_CASE("data spec: option values out of range") {
  for (const char* value : {"-0.1", "1.1", "nan", "inf", "a", "0.1x", "1e999", " 0.5"}) {
    CAPTURE(value);
    const DataSpec spec = parse_data_spec(std::string("text:a,validation=") + value);
    const Error error = error_of([&] { spec.fraction("validation", 0.1); });
    CHECK(error.code() == ErrorCode::kUsage);
    CHECK(contains(error.message(), "expected a number from 0 to 1"));
  }
  for (const char* value : {"0", "-1", "1.5", "ten", "99999999999999999999", "0x10"}) {
    CAPTURE(value);
    const DataSpec spec = parse_data_spec(std::string("synthetic,examples=") + value);
    const Error error = error_of([&] { spec.integer("examples", 5, 1); });
    CHECK(error.code() == ErrorCode::kUsage);
    CHECK(contains(error.message(), "expected a whole number of 1 or more"));
  }
}

}  // namespace trainscope
