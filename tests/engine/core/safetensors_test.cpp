// Tests of safetensors files: writing, reading back, what other tools write.
#include "engine/core/safetensors.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>

#include "engine/core/hash.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

std::string file_text(std::string_view header, std::string_view data) {
  std::string text(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(text.data(), &length, 8);
  text += header;
  return text += data;
}

std::string bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), tensor.bytes()};
}

struct Example {
  Tensor flags = Tensor::of<bool>({3}, std::array{true, false, true});
  Tensor weight = Tensor::of<float>({2, 2}, std::vector<float>{1, -2.5F, 3, 4});
  Tensor ids = Tensor::ints(std::vector<std::int64_t>{7, -8});
  Tensor steps = Tensor::scalar(std::int32_t{42});
  Tensor loss = Tensor::scalar(0.1);
  Tensor none = Tensor(TensorType{.dtype = DType::kF32, .shape = {0, 5}});
  std::vector<NamedTensor> named() const {
    return {{"flags", flags.view()}, {"h.0.weight", weight.view()}, {"ids", ids.view()},
            {"steps", steps.view()}, {"loss", loss.view()},         {"none", none.view()}};
  }
};

TEST_CASE("safetensors: what is written is read back, with types, shapes and metadata") {
  const TemporaryFolder folder;
  const Example example;
  const WrittenSafetensors written =
      write_safetensors(folder / "f", example.named(), {{"format", "pt"}, {"note", "\xC3\xA4"}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  CHECK(file.names() ==
        std::vector<std::string>{"ids", "loss", "h.0.weight", "steps", "none", "flags"});
  for (const NamedTensor& tensor : example.named()) {
    CAPTURE(tensor.name);
    CHECK(file.contains(tensor.name));
    CHECK(file.type(tensor.name) == tensor.tensor.type);
    const Tensor read = file.tensor(tensor.name);
    CHECK(read.type() == tensor.tensor.type);
    CHECK(bytes_of(read) == std::string(tensor.tensor.as<char>(), tensor.tensor.type.bytes()));
    CHECK(file.bytes(tensor.name).size() == tensor.tensor.type.bytes());
  }
  CHECK(file.metadata() ==
        std::map<std::string, std::string>{{"format", "pt"}, {"note", "\xC3\xA4"}});
  CHECK(file.content_hash() == written.content_hash);
  CHECK(hash_text(get(folder / "f")) == written.content_hash);
  CHECK(get(folder / "f").size() == written.size_bytes);
}

TEST_CASE("safetensors: the bytes of a small file, in full") {
  const TemporaryFolder folder;
  const Tensor a = Tensor::of<float>({1}, std::vector<float>{1});
  const Tensor b = Tensor::of<bool>({2}, std::array{true, false});
  write_safetensors(folder / "f", std::vector<NamedTensor>{{"b", b.view()}, {"a", a.view()}});
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"BOOL","shape":[2],"data_offsets":[4,6]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(get(folder / "f") == file_text(header, std::string("\0\0\x80\x3f\x01\0", 6)));
}

TEST_CASE("safetensors: tensors are aligned and the same input gives the same bytes") {
  const TemporaryFolder folder;
  const Example example;
  write_safetensors(folder / "f", example.named());
  write_safetensors(folder / "g", example.named());
  CHECK(get(folder / "f") == get(folder / "g"));
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  for (const SafetensorsEntry& entry : file.entries()) {
    CHECK(entry.begin_bytes % size_of(entry.dtype) == 0);
  }
}

TEST_CASE("safetensors: no tensors at all, and odd names") {
  const TemporaryFolder folder;
  write_safetensors(folder / "none", {});
  CHECK(SafetensorsFile::open(folder / "none").entries().empty());
  const Tensor one = Tensor::scalar(1.0F);
  const std::vector<std::string> names = {"", "a\"b\\c", "\n\x1b", "\xF0\x9F\x98\x80", "a.b/c:d"};
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, one.view()});
  write_safetensors(folder / "odd", tensors);
  CHECK(SafetensorsFile::open(folder / "odd").names() == names);
}

TEST_CASE("safetensors: names that a file cannot hold are refused, nothing is written") {
  const TemporaryFolder folder;
  const Tensor one = Tensor::scalar(1.0F);
  const auto message = [&](std::string_view a, std::string_view b) {
    const std::vector<NamedTensor> tensors = {{a, one.view()}, {b, one.view()}};
    const Error error = error_of([&] { write_safetensors(folder / "f", tensors); });
    CHECK(error.code() == ErrorCode::kBadInput);
    return error.message();
  };
  CHECK(contains(message("a", "a"), "two tensors have the name 'a'"));
  CHECK(contains(message("a", "\xFF"), "the tensor name '\\xff' is not UTF-8"));
  CHECK(contains(message("__metadata__", "b"), "a tensor cannot have the name '__metadata__'"));
  CHECK_THROWS_AS(write_safetensors(folder / "f", {}, {{"k", "\xFF"}}), Error);
  CHECK(list_directory(folder.path()).empty());
}

TEST_CASE("safetensors: integers and floats of 8 bits are written and read as they are") {
  const TemporaryFolder folder;
  for (DType dtype : kAllDTypes) {
    if (row_of(dtype).safetensors_name.empty()) continue;
    INFO(name_of(dtype));
    const double numbers[] = {0.0, 1.0, 64.0};
    const Tensor given = convert(Tensor::of<double>({3}, numbers), dtype);
    write_safetensors(folder / "f", std::vector<NamedTensor>{{"x", given.view()}});
    const SafetensorsFile file = SafetensorsFile::open(folder / "f");
    CHECK(file.entry("x").stored_dtype == row_of(dtype).safetensors_name);
    CHECK(file.type("x") == given.type());
    CHECK(std::memcmp(file.tensor("x").data(), given.data(), given.bytes()) == 0);
  }
}

TEST_CASE(
    "safetensors: a type that the format does not have is refused before anything is written") {
  const TemporaryFolder folder;
  const Tensor small({.dtype = DType::kI4, .shape = {2}});
  const Error error = error_of([&] {
    write_safetensors(folder / "f", std::vector<NamedTensor>{{"x", small.view()}});
  });
  CHECK(contains(error.message(), "the tensor 'x' is i4: safetensors files have no such type"));
  CHECK(list_directory(folder.path()).empty());
}

TEST_CASE("safetensors: numbers of two bytes are written and read as they are") {
  const TemporaryFolder folder;
  const BFloat16 low[] = {BFloat16(1.0F), BFloat16(-0.5F)};
  const Float16 half[] = {Float16(65504.0F)};
  const Tensor bf16 = Tensor::of<BFloat16>({2}, low);
  const Tensor f16 = Tensor::of<Float16>({1}, half);
  write_safetensors(folder / "f",
                    std::vector<NamedTensor>{{"low", bf16.view()}, {"half", f16.view()}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  CHECK(file.entry("low").stored_dtype == "BF16");
  CHECK(file.entry("half").stored_dtype == "F16");
  CHECK(float{file.tensor("low").values<BFloat16>()[1]} == -0.5F);
  CHECK(float{file.tensor("half").values<Float16>()[0]} == 65504.0F);
}

TEST_CASE("safetensors: every listed type has its size") {
  const TemporaryFolder folder;
  struct Type {
    std::string name;
    int bytes;
  };
  const Type types[] = {{"F32", 4}, {"F64", 8}, {"I32", 4},  {"I64", 8},     {"BOOL", 1},
                        {"U8", 1},  {"I8", 1},  {"I16", 2},  {"U16", 2},     {"U32", 4},
                        {"U64", 8}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (const Type& type : types) {
    CAPTURE(type.name);
    const int bytes = 3 * type.bytes;
    const std::string header = fmt::format(
        R"({{"x":{{"dtype":"{}","shape":[3],"data_offsets":[0,{}]}}}})", type.name, bytes);
    put(folder / "f", file_text(header, std::string(static_cast<std::size_t>(bytes), '\0')));
    CHECK(SafetensorsFile::open(folder / "f").entry("x").stored_dtype == type.name);
  }
}

TEST_CASE("safetensors: an absent tensor is named with the nearest one") {
  const TemporaryFolder folder;
  write_safetensors(folder / "f", Example().named());
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  CHECK_FALSE(file.contains("h.0.weigth"));
  const Error error = error_of([&] { file.tensor("h.0.weigth"); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "has no tensor 'h.0.weigth'"));
  CHECK(error.hint() == "did you mean 'h.0.weight'?");
}

TEST_CASE("safetensors: a BOOL tensor with other bytes than 0 and 1 is refused on reading") {
  const TemporaryFolder folder;
  put(folder / "f",
      file_text(R"({"m":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", "\x01\x01\x02"));
  const Error error = error_of([&] { SafetensorsFile::open(folder / "f").tensor("m"); });
  CHECK(error.message() == "tensor 'm': element 2 is 2, expected 0 or 1 in a BOOL tensor");
}

TEST_CASE("safetensors: any order of the header, blanks and unknown members are accepted") {
  const TemporaryFolder folder;
  put(folder / "f",
      file_text(R"({ "late": {"shape": [1], "extra": {}, "dtype": "F32", "data_offsets": [0, 4]},
                    "e1": {"dtype": "F32", "shape": [0], "data_offsets": [4, 4]},
                    "early": {"dtype": "U8", "shape": [], "data_offsets": [4, 5]},
                    "e2": {"dtype": "F32", "shape": [3, 0], "data_offsets": [4, 4]} }   )",
                std::string("\0\0\x80\x3f\x07", 5)));
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  CHECK(file.names() == std::vector<std::string>{"late", "e1", "early", "e2"});
  CHECK(file.tensor("late").values<float>()[0] == 1.0F);
  CHECK(file.tensor("early").values<std::uint8_t>()[0] == 7);
  CHECK(file.tensor("e2").elements() == 0);
}

TEST_CASE("safetensors: a file cut short after opening is an error, not a crash") {
  const TemporaryFolder folder;
  const Tensor big(TensorType{.dtype = DType::kF32, .shape = {100'000}});
  write_safetensors(folder / "f", std::vector<NamedTensor>{{"big", big.view()}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  REQUIRE(::truncate((folder / "f").c_str(), 1000) == 0);
  CHECK(error_of([&] { file.tensor("big"); }).code() == ErrorCode::kIo);
  CHECK(error_of([&] { file.content_hash(); }).code() == ErrorCode::kIo);
}

TEST_CASE("safetensors: every flipped byte is seen, in the header or by the hash") {
  const TemporaryFolder folder;
  const WrittenSafetensors written = write_safetensors(folder / "f", Example().named());
  const std::string good = get(folder / "f");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    put(folder / "f", bad);
    bool seen = false;
    try {
      seen = SafetensorsFile::open(folder / "f").content_hash() != written.content_hash;
    } catch (const Error& error) {
      seen = error.code() == ErrorCode::kBadInput;
    }
    CAPTURE(i);
    CHECK(seen);
  }
}

TEST_CASE("safetensors: a hundred thousand tensors") {
  const TemporaryFolder folder;
  const Tensor one = Tensor::scalar(1.0F);
  std::vector<std::string> names;
  for (int i = 0; i < 100'000; ++i) names.push_back("layer." + std::to_string(i));
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, one.view()});
  write_safetensors(folder / "f", tensors);
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  CHECK(file.entries().size() == names.size());
  CHECK(file.tensor("layer.99999").values<float>()[0] == 1.0F);
}

}  // namespace
}  // namespace trainscope
