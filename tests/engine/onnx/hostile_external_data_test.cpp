// External data by hostile names, numbers and files, of initializers and of constants in nodes:
// none is read outside the model's folder, and none that changes meanwhile ends the process.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/core/file.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFloats = "0123456789abcdefghijklmn";  // 24 bytes: 6 floats

using Entries = std::vector<std::pair<std::string, std::string>>;

struct HostilePlace {
  const char* name;
  Entries entries;
  const char* fragment;
  ErrorCode code = ErrorCode::kBadInput;
};

void set_external(onnx::TensorProto& tensor, const Entries& entries) {
  tensor.clear_raw_data();
  tensor.clear_external_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : entries) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
}

// The small model with w, or a constant beside it, in another file.
onnx::ModelProto model_with(const Entries& entries) {
  onnx::ModelProto model = small_model();
  set_external(*model.mutable_graph()->mutable_initializer(0), entries);
  return model;
}

onnx::ModelProto model_with_constant(const Entries& entries) {
  onnx::ModelProto model = small_model();
  onnx::NodeProto& node = add_node(model, "Constant", {}, {"c"}, "far");
  onnx::TensorProto& tensor =
      *add_attribute(node, "value", onnx::AttributeProto::TENSOR).mutable_t();
  tensor = float_tensor("", {3, 2}, {1, 2, 3, 4, 5, 6});
  set_external(tensor, entries);
  return model;
}

void check_refused(const ScratchFolder& folder, const HostilePlace& place,
                   const onnx::ModelProto& model, std::string_view what) {
  const std::string name = place.name;
  CAPTURE(name);
  const fs::path path = folder / "model.onnx";
  write_file_atomic(path, std::string_view(bytes_of(model)));
  const ResourceWatch watch;
  const std::optional<Error> error = error_of([&] { to_graph(OnnxModel::read(path), all_ops()); });
  CHECK(watch.problem() == "");
  REQUIRE(error.has_value());
  const std::string text = whole_text(*error);
  CHECK_MESSAGE(text.find(place.fragment) != std::string::npos, text);
  CHECK_MESSAGE(text.find(what) != std::string::npos, text);
  CHECK_MESSAGE(text.find("model.onnx") != std::string::npos, text);
  CHECK_MESSAGE(error->code() == place.code, text);
}

void check_refused(const ScratchFolder& folder, const std::vector<HostilePlace>& places) {
  for (const HostilePlace& place : places) {
    check_refused(folder, place, model_with(place.entries), "initializer 'w'");
    check_refused(folder, place, model_with_constant(place.entries), "node 'far' (Constant)");
  }
}

HostilePlace at(const char* location, const char* fragment, ErrorCode code = ErrorCode::kBadInput) {
  return {
      .name = location, .entries = {{"location", location}}, .fragment = fragment, .code = code};
}

HostilePlace of(const char* name, const std::string& offset, const std::string& length,
                const char* fragment) {
  return {.name = name,
          .entries = {{"location", "w.bin"}, {"offset", offset}, {"length", length}},
          .fragment = fragment};
}

}  // namespace

TEST_CASE("hostile external data: names that leave the folder") {
  ScratchFolder outside;
  ScratchFolder folder;
  write_file_atomic(outside / "w.bin", kFloats);
  write_file_atomic(folder / "w.bin", kFloats);
  fs::create_directories(folder / "a/b");
  write_file_atomic(folder / "a/w.bin", kFloats);
  using namespace std::string_literals;
  check_refused(folder, {at("../w.bin", "it leaves the folder by '..'"),
                         at("..", "it leaves the folder by '..'"),
                         at("a/../../b", "it leaves the folder by '..'"),
                         at("a/b/../../../w.bin", "it leaves the folder by '..'"),
                         at("./../w.bin", "it leaves the folder by '..'"),
                         at("a//..//..//w.bin", "it leaves the folder by '..'"),
                         at("//etc/passwd", "it is an absolute path"),
                         at("/proc/self/mem", "it is an absolute path"),
                         at("/dev/zero", "it is an absolute path"),
                         at("/", "it is an absolute path"),
                         at("a", "it is not a regular file"),
                         at("a/b/.", "it is not a regular file"),
                         at("./", "it names a folder"),
                         at("w.bin/", "it names a folder"),
                         at("w.bin/w.bin", "'w.bin' is not a folder"),
                         at("..\\w.bin", "w.bin", ErrorCode::kIo),
                         at("C:\\w.bin", "w.bin", ErrorCode::kIo),
                         at("file:///etc/passwd", "file:", ErrorCode::kIo),
                         at("~/w.bin", "~", ErrorCode::kIo),
                         at("$HOME/w.bin", "$HOME", ErrorCode::kIo),
                         at("\xff\xfe", "\\xff\\xfe", ErrorCode::kIo),
                         at("\x1b[2Jw.bin", "\\x1b[2Jw.bin", ErrorCode::kIo),
                         at("w.bin ", "w.bin", ErrorCode::kIo),
                         {.name = "NUL before '..'",
                          .entries = {{"location", "w.bin\0/../../x"s}},
                          .fragment = "it holds a NUL character"},
                         {.name = "NUL alone",
                          .entries = {{"location", "\0"s}},
                          .fragment = "it holds a NUL character"},
                         {.name = "a megabyte of folders",
                          .entries = {{"location", std::string(1 << 20, 'a')}},
                          .fragment = "aaa",
                          .code = ErrorCode::kIo}});
}

TEST_CASE("hostile external data: entries that say nothing or too much") {
  ScratchFolder folder;
  write_file_atomic(folder / "w.bin", kFloats);
  check_refused(folder,
                {{.name = "no entries", .entries = {}, .fragment = "external data has no location"},
                 {.name = "only an offset",
                  .entries = {{"offset", "0"}},
                  .fragment = "external data has no location"},
                 {.name = "an unknown key alone",
                  .entries = {{"path", "w.bin"}},
                  .fragment = "external data has no location"},
                 {.name = "a key in capitals",
                  .entries = {{"Location", "w.bin"}},
                  .fragment = "external data has no location"},
                 {.name = "two locations",
                  .entries = {{"location", "w.bin"}, {"location", "../w.bin"}},
                  .fragment = "external data names 'location' twice"},
                 {.name = "two offsets",
                  .entries = {{"location", "w.bin"}, {"offset", "0"}, {"offset", "4"}},
                  .fragment = "external data names 'offset' twice"},
                 {.name = "two keys that mean nothing",
                  .entries = {{"location", "w.bin"}, {"\x1b[2J", "0"}, {"\x1b[2J", "0"}},
                  .fragment = "external data names '\\x1b[2J' twice"},
                 {.name = "an empty location",
                  .entries = {{"location", ""}},
                  .fragment = "the path is empty"}});
}

TEST_CASE("hostile external data: numbers") {
  ScratchFolder folder;
  write_file_atomic(folder / "w.bin", kFloats);
  check_refused(
      folder,
      {of("one byte on", "1", "24", "at offset 1 with 24 bytes lies beyond the end of 'w.bin'"),
       of("offset 2^63 - 1", "9223372036854775807", "24", "lies beyond the end"),
       of("offset + length of 2^64", "18446744073709551592", "24", "offset '18446744073709551592'"),
       of("offset + length of 2^63", "9223372036854775784", "24", "lies beyond the end"),
       of("length 2^64 - 1", "0", "18446744073709551615", "length '18446744073709551615'"),
       of("length 2^63 - 1", "0", "9223372036854775807", "external data has length 92233720368547"),
       of("length 0", "0", "0", "external data has length 0, its shape and type need 24 bytes"),
       of("negative offset", "-24", "24", "offset '-24'"),
       of("negative zero", "-", "24", "offset '-'"),
       of("a number of 10000 digits", std::string(10'000, '9'), "24", "offset '999"),
       of("octal", "0o0", "24", "offset '0o0'"), of("a fraction", "0.0", "24", "offset '0.0'"),
       of("NaN", "nan", "24", "offset 'nan'"), of("a sign", "+0", "24", "offset '+0'"),
       of("a line end", "0\n", "24", "offset '0\\n'"),
       of("an escape", "0", "\x1b[2J", "length '\\x1b[2J'"),
       of("other digits", "\xd9\xa0", "24", "offset '"),
       of("an empty number", "", "24", "offset ''")});
}

TEST_CASE("hostile external data: files that are none") {
  ScratchFolder folder;
  ScratchFolder outside;
  write_file_atomic(folder / "w.bin", kFloats);
  write_file_atomic(outside / "w.bin", kFloats);
  fs::create_directories(folder / "a");
  fs::create_symlink(outside / "w.bin", folder / "a/link.bin");
  fs::create_symlink("/dev/zero", folder / "zero.bin");
  fs::create_symlink("loop.bin", folder / "loop.bin");
  fs::create_symlink("nowhere", folder / "dangling.bin");
  fs::create_directory_symlink(outside.path(), folder / "a/door");
  fs::create_directory_symlink(".", folder / "here");
  fs::create_hard_link(outside / "w.bin", folder / "hard.bin");
  REQUIRE(::mkfifo((folder / "a/fifo").c_str(), 0600) == 0);
  const int plug = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (folder / "plug").c_str(), sizeof(address.sun_path) - 1);
  REQUIRE(::bind(plug, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  write_file_atomic(folder / "empty.bin", std::string_view());
  write_file_atomic(folder / "short.bin", kFloats.substr(1));
  check_refused(
      folder, {at("a/link.bin", "'link.bin' is a symbolic link"),
               at("zero.bin", "'zero.bin' is a symbolic link"),
               at("loop.bin", "'loop.bin' is a symbolic link"),
               at("dangling.bin", "'dangling.bin' is a symbolic link"),
               at("a/door/w.bin", "'door' is a symbolic link"),
               at("here/w.bin", "'here' is a symbolic link"), at("hard.bin", "it has 2 hard links"),
               at("a/fifo", "it is not a regular file"), at("plug", "it is not a regular file"),
               at("empty.bin", "beyond the end of 'empty.bin' (0 bytes)"),
               at("short.bin", "beyond the end of 'short.bin' (23 bytes)"),
               at("absent.bin", "absent.bin", ErrorCode::kIo)});
  ::close(plug);
}

TEST_CASE("hostile external data: a file that changes after the model was read") {
  ScratchFolder folder;
  ScratchFolder outside;
  const fs::path data = folder / "w.bin";
  const auto change = [&](void (*act)(const fs::path&), bool refused) {
    write_file_atomic(data, kFloats);
    const fs::path path = folder / "model.onnx";
    write_file_atomic(path, std::string_view(bytes_of(model_with({{"location", "w.bin"}}))));
    const OnnxModel model = OnnxModel::read(path);
    act(data);
    const std::optional<Error> error = error_of([&] { model.initializer("w"); });
    CHECK(error.has_value() == refused);
    if (error) CHECK(error->code() == ErrorCode::kIo);
    if (error) CHECK(whole_text(*error).find("w.bin") != std::string::npos);
    fs::remove(data);
  };
  change([](const fs::path& file) { fs::resize_file(file, 23); }, true);
  change([](const fs::path& file) { fs::resize_file(file, 0); }, true);
  // What was opened and checked is what is read, whatever the name stands for by now.
  change([](const fs::path& file) { fs::remove(file); }, false);
  change(
      [](const fs::path& file) {
        fs::remove(file);
        fs::create_symlink("/dev/zero", file);
      },
      false);
}

TEST_CASE("hostile external data: a sparse file of 8 TiB is as large as its tensor says") {
  ScratchFolder folder;
  write_file_atomic(folder / "w.bin", kFloats);
  std::error_code failed;
  fs::resize_file(folder / "w.bin", std::uintmax_t{1} << 43, failed);
  if (failed) return;  // the file system has no room for the name of such a file
  onnx::ModelProto model = model_with({{"location", "w.bin"}});
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, std::int64_t{1} << 40);
  const fs::path path = folder / "model.onnx";
  write_file_atomic(path, std::string_view(bytes_of(model)));
  // Nothing is read before somebody asks for the elements.
  const ResourceWatch watch;
  CHECK(OnnxModel::read(path).initializers()[0].type.elements() == std::int64_t{1} << 41);
  CHECK(watch.problem() == "");
}

}  // namespace trainscope::test
