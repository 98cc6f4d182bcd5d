// The sample of each format: readable, small, and never the cause of a crash when it is damaged.
#include <doctest/doctest.h>

#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

const fs::path kSamples = fs::path(TRAINSCOPE_SOURCE_DIR) / "datasets/samples";

DatasetOptions token_options() {
  DatasetOptions options = text_options(8);
  options.inputs[0].bound = 320;
  return options;
}

DatasetOptions tokenizer_options() {
  DatasetOptions options = text_options(8);
  options.inputs[0].bound = 331;
  return options;
}

// A source whose files are in a folder, and the model that takes it.
struct Sample {
  const char* kind;
  std::vector<const char*> files;
  const char* rest;
  DatasetOptions (*options)();
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> kAll = {
      {"text", {"text.txt"}, "", token_options},
      {"bpe", {"text.txt", "vocab.json", "merges.txt"}, "", token_options},
      {"jsonl", {"lines.jsonl", "tokenizer.json"}, "", tokenizer_options},
      {"tokens", {"tokens.bin"}, "", token_options},
      {"tokens", {"tokens-llmc.bin"}, "", token_options},
      {"idx", {"digits-images.idx", "digits-labels.idx"}, "", digit_options},
      {"idx", {"digits-images.idx.gz", "digits-labels.idx"}, "", digit_options},
      {"csv", {"flowers.csv"}, ",label=kind", flower_options},
      {"tensors", {"flowers.safetensors"}, "", flower_options},
      {"tensors", {"flowers.npz"}, "", flower_options},
      {"images", {"images"}, ",resize=stretch", digit_options},
  };
  return kAll;
}

std::string source_in(const fs::path& folder, const Sample& sample) {
  std::string text = std::string(sample.kind) + ":";
  for (const char* file : sample.files) {
    text += (file == sample.files.front() ? "" : ",") + (folder / file).string();
  }
  return text + sample.rest;
}

std::unique_ptr<Dataset> open_in(const fs::path& folder, const Sample& sample) {
  return open_dataset(source_in(folder, sample), sample.options());
}

// Opens what may be damaged: fine, or bad input (a model that does not suit it included).
void open_damaged(const fs::path& folder, const Sample& sample) {
  try {
    open_in(folder, sample);
  } catch (const Error& error) {
    CAPTURE(error.message());
    const bool expected = error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kUsage;
    CHECK(expected);
  }
}

}  // namespace

TEST_CASE("samples: each is below 10 KB and gives examples") {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kSamples)) {
    CAPTURE(entry.path().string());
    CHECK((entry.is_directory() || entry.file_size() < 10000));
  }
  for (const Sample& sample : samples()) {
    CAPTURE(source_in(kSamples, sample));
    const auto data = open_in(kSamples, sample);
    CHECK(data->examples(Split::kTrain) > 0);
    CHECK(data->examples(Split::kValidation) > 0);
    CHECK(read_batch(*data, Split::kTrain, 0, {0}).examples == 1);
  }
}

TEST_CASE("samples: two forms of the same data give the same batches") {
  const auto same = [](const Sample& a, const Sample& b) {
    const Batch first = read_batch(*open_in(kSamples, a), Split::kTrain, 0, {2, 1});
    const Batch second = read_batch(*open_in(kSamples, b), Split::kTrain, 0, {2, 1});
    for (std::size_t i = 0; i < first.tensors.size(); ++i) {
      const Tensor& x = first.tensors[i].second;
      const Tensor& y = second.tensors[i].second;
      REQUIRE(x.type() == y.type());
      CHECK(std::equal(x.data(), x.data() + x.bytes(), y.data()));
    }
  };
  same(samples()[3], samples()[4]);
  same(samples()[5], samples()[6]);
  same(samples()[7], samples()[8]);
  same(samples()[7], samples()[9]);
}

TEST_CASE("samples: cut anywhere or with a changed byte, they are read or refused") {
  const TemporaryFolder folder;
  for (const Sample& sample : samples()) {
    if (fs::is_directory(kSamples / sample.files.front())) continue;  // decode_test.cpp
    for (const char* file : sample.files)
      fs::copy_file(kSamples / file, folder / file, fs::copy_options::overwrite_existing);
    for (const char* file : sample.files) {
      const std::string good = get(kSamples / file);
      const std::size_t step = std::max<std::size_t>(1, good.size() / 60);
      for (std::size_t at = 0; at < good.size(); at += step) {
        put(folder / file, good.substr(0, at));
        open_damaged(folder.path(), sample);
        std::string changed = good;
        changed[at] = static_cast<char>(changed[at] ^ (1 << (at / step % 8)));
        put(folder / file, changed);
        open_damaged(folder.path(), sample);
      }
      put(folder / file, good);
    }
  }
}

}  // namespace trainscope
