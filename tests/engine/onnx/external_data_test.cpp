// External data: read where it belongs, refused everywhere else.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "engine/core/file.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFloats = "0123456789abcdefghijklmn";  // 24 bytes: 6 floats

struct Place {
  std::string location;
  std::string offset = {};
  std::string length = {};
};

void set_place(onnx::TensorProto& tensor, const Place& place) {
  tensor.clear_raw_data();
  tensor.clear_external_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto add = [&tensor](const char* key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", place.location);
  if (!place.offset.empty()) add("offset", place.offset);
  if (!place.length.empty()) add("length", place.length);
}

onnx::ModelProto model_with(const Place& place) {
  onnx::ModelProto model = small_model();
  set_place(*model.mutable_graph()->mutable_initializer(0), place);
  return model;
}

fs::path write_model(const ScratchFolder& folder, const onnx::ModelProto& model) {
  fs::path path = folder / "model.onnx";
  write_file_atomic(path, std::string_view(bytes_of(model)));
  return path;
}

void check_refused(const ScratchFolder& folder, const Place& place, std::string_view fragment,
                   ErrorCode code = ErrorCode::kBadInput) {
  fs::path path = write_model(folder, model_with(place));
  std::optional<Error> error = error_of([&path] { OnnxModel::read(path); });
  CAPTURE(place.location);
  REQUIRE(error.has_value());
  CHECK_MESSAGE(whole_text(*error).find(fragment) != std::string::npos, whole_text(*error));
  CHECK_MESSAGE(whole_text(*error).find("initializer 'w'") != std::string::npos,
                whole_text(*error));
  CHECK(error->code() == code);
}

}  // namespace

TEST_CASE("external data: elements come from the place the model names") {
  ScratchFolder folder;
  fs::create_directory(folder / "weights");
  write_file_atomic(folder / "weights/w.bin", std::string("....") + std::string(kFloats));
  for (const Place& place : {Place{"weights/w.bin", "4", "24"}, Place{"weights/w.bin", "4"},
                             Place{"./weights//w.bin", "4", "24"}}) {
    CAPTURE(place.location);
    OnnxModel model = OnnxModel::read(write_model(folder, model_with(place)));
    SharedTensor w = model.initializer("w");
    CHECK(std::string_view(reinterpret_cast<const char*>(w->data()), w->bytes()) == kFloats);
    CHECK(model.initializer("w") == w);  // read once
  }
}

TEST_CASE("external data: places outside the model's folder are refused") {
  ScratchFolder folder;
  write_file_atomic(folder / "w.bin", kFloats);
  fs::create_directory(folder / "inner");
  write_file_atomic(folder / "inner/w.bin", kFloats);
  check_refused(folder, {"/etc/passwd"}, "it is an absolute path");
  check_refused(folder, {(folder / "w.bin").string()}, "it is an absolute path");
  check_refused(folder, {"../w.bin"}, "it leaves the folder by '..'");
  check_refused(folder, {"../../../../../../etc/passwd"}, "it leaves the folder by '..'");
  check_refused(folder, {"inner/../w.bin"}, "it leaves the folder by '..'");
  check_refused(folder, {"inner/.."}, "it leaves the folder by '..'");
  check_refused(folder, {""}, "the path is empty");
  check_refused(folder, {"."}, "it names a folder");
  check_refused(folder, {"inner"}, "not a regular file");
  check_refused(folder, {"inner/"}, "it names a folder");
  check_refused(folder, {std::string("w.bin\0.txt", 10)}, "NUL");
  check_refused(folder, {"w.bin/x"}, "not a folder");
  check_refused(folder, {"absent.bin"}, "absent.bin", ErrorCode::kIo);
  check_refused(folder, {std::string(5000, 'a')}, "aaa", ErrorCode::kIo);
}

TEST_CASE("external data: links and special files are refused") {
  ScratchFolder folder;
  ScratchFolder outside;
  write_file_atomic(folder / "w.bin", kFloats);
  write_file_atomic(outside / "w.bin", kFloats);
  fs::create_symlink(outside / "w.bin", folder / "link.bin");
  fs::create_symlink("w.bin", folder / "near.bin");
  fs::create_directory_symlink(outside.path(), folder / "door");
  fs::create_directory_symlink("/dev", folder / "dev");
  check_refused(folder, {"link.bin"}, "is a symbolic link");
  check_refused(folder, {"near.bin"}, "is a symbolic link");
  check_refused(folder, {"door/w.bin"}, "is a symbolic link");
  check_refused(folder, {"dev/zero"}, "is a symbolic link");
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  check_refused(folder, {"fifo"}, "not a regular file");
  fs::create_hard_link(folder / "w.bin", folder / "hard.bin");
  check_refused(folder, {"hard.bin"}, "hard links");
}

TEST_CASE("external data: offsets and lengths must fit the file and the tensor") {
  ScratchFolder folder;
  write_file_atomic(folder / "w.bin", kFloats);
  check_refused(folder, {"w.bin", "1"}, "lies beyond the end of 'w.bin' (24 bytes)");
  check_refused(folder, {"w.bin", "25"}, "lies beyond the end");
  check_refused(folder, {"w.bin", "0", "23"}, "length 23, its shape and type need 24 bytes");
  check_refused(folder, {"w.bin", "0", "25"}, "length 25");
  check_refused(folder, {"w.bin", "-1", "24"}, "offset '-1'");
  check_refused(folder, {"w.bin", "0", "-24"}, "length '-24'");
  check_refused(folder, {"w.bin", "9223372036854775807", "24"}, "lies beyond the end");
  check_refused(folder, {"w.bin", "9223372036854775808", "24"}, "offset '9223372036854775808'");
  check_refused(folder, {"w.bin", "18446744073709551615"}, "offset '18446744073709551615'");
  check_refused(folder, {"w.bin", "0x10"}, "offset '0x10'");
  check_refused(folder, {"w.bin", " 0"}, "offset ' 0'");
  check_refused(folder, {"w.bin", "1e1"}, "offset '1e1'");
  write_file_atomic(folder / "empty.bin", std::string_view());
  check_refused(folder, {"empty.bin"}, "(0 bytes)");
}

TEST_CASE("external data: contradictions in the tensor are refused") {
  ScratchFolder folder;
  write_file_atomic(folder / "w.bin", kFloats);
  auto refused = [&folder](void (*change)(onnx::TensorProto&), std::string_view fragment) {
    onnx::ModelProto model = model_with({"w.bin"});
    change(*model.mutable_graph()->mutable_initializer(0));
    fs::path path = write_model(folder, model);
    std::optional<Error> error = error_of([&path] { OnnxModel::read(path); });
    REQUIRE(error.has_value());
    CHECK_MESSAGE(whole_text(*error).find(fragment) != std::string::npos, whole_text(*error));
    CHECK(error->code() == ErrorCode::kBadInput);
  };
  refused([](onnx::TensorProto& t) { t.set_raw_data("x"); }, "both raw_data and external data");
  refused([](onnx::TensorProto& t) { t.add_float_data(1); }, "both float_data and external data");
  refused([](onnx::TensorProto& t) { t.clear_external_data(); }, "external data has no location");
  refused([](onnx::TensorProto& t) { *t.add_external_data() = t.external_data(0); },
          "names 'location' twice");
  refused([](onnx::TensorProto& t) { t.set_dims(0, 1LL << 40); }, "w.bin");
}

TEST_CASE("external data: a model that is not in a file has none") {
  std::optional<Error> error = error_of([] { read_proto(model_with({"w.bin"})); });
  REQUIRE(error.has_value());
  CHECK(whole_text(*error).find("the model was not read from a file") != std::string::npos);
}

TEST_CASE("external data: a file cut short after the model was read is an error") {
  ScratchFolder folder;
  write_file_atomic(folder / "w.bin", kFloats);
  OnnxModel model = OnnxModel::read(write_model(folder, model_with({"w.bin"})));
  fs::resize_file(folder / "w.bin", 10);
  std::optional<Error> error = error_of([&model] { model.initializer("w"); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kIo);
}

TEST_CASE("model files: what cannot be read names the path") {
  ScratchFolder folder;
  auto refused = [](const fs::path& path, ErrorCode code) {
    std::optional<Error> error = error_of([&path] { OnnxModel::read(path); });
    REQUIRE(error.has_value());
    CHECK(error->code() == code);
    CHECK(whole_text(*error).find(path.filename().string()) != std::string::npos);
  };
  refused(folder / "absent.onnx", ErrorCode::kIo);
  refused(folder.path(), ErrorCode::kIo);
  write_file_atomic(folder / "empty.onnx", std::string_view());
  refused(folder / "empty.onnx", ErrorCode::kBadInput);
  write_file_atomic(folder / "text.onnx", std::string_view("no model at all"));
  refused(folder / "text.onnx", ErrorCode::kBadInput);
  // Sparse: it takes no room on the disk.
  write_file_atomic(folder / "huge.onnx", std::string_view("x"));
  fs::resize_file(folder / "huge.onnx", std::uintmax_t{1} << 31);
  refused(folder / "huge.onnx", ErrorCode::kBadInput);
}

}  // namespace trainscope::test
