// Tests of reading, mapping and folders.
#include "engine/core/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_CASE("read_file: gives the bytes, up to the limit") {
  const TemporaryFolder folder;
  const std::string text("a\0b\n", 4);
  put(folder / "f", text);
  put(folder / "empty", "");
  CHECK(read_file(folder / "f", 4) == text);
  CHECK(read_file(folder / "empty", 0) == "");
  const Error error = error_of([&] { read_file(folder / "f", 3); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "f' has 4 B, more than the allowed 3 B"));
}

TEST_CASE("read_file: a missing file is kIo with path, reason and hint") {
  const TemporaryFolder folder;
  const fs::path path = folder / "no\nne";
  const Error error = error_of([&] { read_file(path, 10); });
  CHECK(error.code() == ErrorCode::kIo);
  CHECK(contains(error.message(), "cannot open '"));
  CHECK(contains(error.message(), "no\\nne': No such file or directory"));
  CHECK(error.hint() == "check the path for a misspelling");
}

TEST_CASE("read_file and MappedFile: folders, FIFOs and devices are refused") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  struct Case {
    fs::path path;
    const char* message;
  };
  const Case cases[] = {
      {folder.path(), "it is a folder, not a regular file"},
      {folder / "fifo", "it is a FIFO, not a regular file"},
      {"/dev/zero", "it is a device, not a regular file"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.path.string());
    const Error read = error_of([&] { read_file(c.path, 100); });
    CHECK(read.code() == ErrorCode::kIo);
    CHECK(contains(read.message(), c.message));
    const Error map = error_of([&] { MappedFile::open(c.path); });
    CHECK(contains(map.message(), c.message));
  }
}

TEST_CASE("read_file: an empty path and one with a NUL are refused") {
  CHECK(error_of([] { read_file("", 1); }).message() == "a path is empty");
  const Error error = error_of([] { read_file(std::string("a\0b", 3), 1); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(error.message() == "the path 'a\\x00b' holds a NUL character");
}

TEST_CASE("MappedFile: gives the bytes, moves, handles an empty file") {
  const TemporaryFolder folder;
  put(folder / "f", "hello");
  put(folder / "empty", "");
  MappedFile file = MappedFile::open(folder / "f");
  CHECK(text_of(file.bytes()) == "hello");
  CHECK(file.path() == folder / "f");
  MappedFile other = MappedFile::open(folder / "empty");
  CHECK(other.bytes().empty());
  other = std::move(file);
  CHECK(text_of(other.bytes()) == "hello");
  const MappedFile third = std::move(other);
  CHECK(text_of(third.bytes()) == "hello");
}

TEST_CASE("MappedFile: keeps the content of a file that is replaced") {
  const TemporaryFolder folder;
  put(folder / "f", "old");
  const MappedFile file = MappedFile::open(folder / "f");
  write_file_atomic(folder / "f", std::string_view("new!"));
  CHECK(text_of(file.bytes()) == "old");
}

TEST_CASE("MappedFile: read copies, and notices a file cut short since") {
  const TemporaryFolder folder;
  put(folder / "f", std::string(10'000, 'x'));
  const MappedFile file = MappedFile::open(folder / "f");
  std::vector<std::byte> into(100);
  file.read(9'900, into);
  CHECK(text_of(into) == std::string(100, 'x'));
  CHECK(contains(error_of([&] { file.read(9'901, into); }).message(), "ends before byte 10001"));
  CHECK_THROWS_AS(file.read(UINT64_MAX, into), Error);
  REQUIRE(::truncate((folder / "f").c_str(), 50) == 0);
  const Error error = error_of([&] { file.read(0, into); });
  CHECK(error.code() == ErrorCode::kIo);
  CHECK(contains(error.message(), "it has been cut short"));
}

TEST_CASE("MappedFile: a thousand files leave no descriptor open") {
  const TemporaryFolder folder;
  put(folder / "f", "x");
  const int before = ::dup(0);
  ::close(before);
  for (int i = 0; i < 1000; ++i) CHECK(MappedFile::open(folder / "f").size_bytes() == 1);
  for (int i = 0; i < 1000; ++i) CHECK_THROWS_AS(MappedFile::open(folder / "g"), Error);
  const int after = ::dup(0);
  ::close(after);
  CHECK(before == after);
}

TEST_CASE("make_directories: with parents, again without error, not over a file") {
  const TemporaryFolder folder;
  make_directories(folder / "a/b/c");
  make_directories(folder / "a/b/c");
  CHECK(folder_exists(folder / "a/b/c"));
  put(folder / "f", "x");
  CHECK(path_exists(folder / "f"));
  CHECK_FALSE(folder_exists(folder / "f"));
  CHECK_FALSE(path_exists(folder / "g"));
  for (const char* bad : {"f", "f/x"}) {
    CAPTURE(bad);
    const Error error = error_of([&] { make_directories(folder / bad); });
    CHECK(error.code() == ErrorCode::kIo);
    CHECK(contains(error.message(), "cannot create the folder"));
  }
}

TEST_CASE("list_directory: names sorted, kIo when missing") {
  const TemporaryFolder folder;
  put(folder / "b", "");
  put(folder / "a", "");
  make_directories(folder / "c");
  CHECK(list_directory(folder.path()) == std::vector<std::string>{"a", "b", "c"});
  CHECK(error_of([&] { list_directory(folder / "none"); }).code() == ErrorCode::kIo);
}

}  // namespace
}  // namespace trainscope
