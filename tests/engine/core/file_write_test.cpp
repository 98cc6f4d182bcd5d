// Tests of atomic writing and of appending.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "engine/core/file.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// While it lives, writing beyond this size fails with EFBIG, as a full disk fails with ENOSPC.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

std::vector<std::string> entries(const TemporaryFolder& folder) {
  return list_directory(folder.path());
}

TEST_CASE("write_file_atomic: creates and replaces") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "f", std::string_view("one"));
  CHECK(get(folder / "f") == "one");
  write_file_atomic(folder / "f", std::string_view(""));
  CHECK(get(folder / "f") == "");
  CHECK(entries(folder) == std::vector<std::string>{"f"});
}

TEST_CASE("write_file_atomic: the mode follows the umask") {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  write_file_atomic(folder / "f", std::string_view("x"));
  ::umask(before);
  CHECK((fs::status(folder / "f").permissions() & fs::perms::mask) ==
        (fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read));
}

TEST_CASE("AtomicFile: small and large pieces, in order") {
  const TemporaryFolder folder;
  std::string expected;
  AtomicFile file(folder / "f");
  for (int i = 0; i < 40; ++i) {
    const std::string piece(static_cast<std::size_t>(i * 12'345), static_cast<char>('a' + i % 26));
    file.write(piece);
    expected += piece;
  }
  file.write(std::string(3'000'000, '!'));
  expected += std::string(3'000'000, '!');
  CHECK(file.written_bytes() == expected.size());
  CHECK_FALSE(path_exists(folder / "f"));
  file.commit();
  CHECK(get(folder / "f") == expected);
}

TEST_CASE("AtomicFile: without commit the old file stays and nothing is left") {
  const TemporaryFolder folder;
  put(folder / "f", "old");
  {
    AtomicFile file(folder / "f");
    file.write("new");
    CHECK(entries(folder).size() == 2);
  }
  CHECK(get(folder / "f") == "old");
  CHECK(entries(folder) == std::vector<std::string>{"f"});
}

TEST_CASE("AtomicFile: two at once in a folder do not meet") {
  const TemporaryFolder folder;
  AtomicFile a(folder / "a");
  AtomicFile b(folder / "b");
  a.write("A");
  b.write("B");
  b.commit();
  a.commit();
  CHECK(get(folder / "a") == "A");
  CHECK(get(folder / "b") == "B");
}

TEST_CASE("AtomicFile: a failed write is kIo, the old file stays, nothing is left") {
  const TemporaryFolder folder;
  put(folder / "f", "old");
  for (const std::size_t limit : {0U, 1U, 4096U, 2'000'000U}) {
    CAPTURE(limit);
    const FileSizeLimit guard(limit);
    const Error error =
        error_of([&] { write_file_atomic(folder / "f", std::string(4'000'000, 'x')); });
    CHECK(error.code() == ErrorCode::kIo);
    CHECK(contains(error.message(), "cannot write '"));
    CHECK(contains(error.message(), "f': File too large"));
    CHECK(contains(error.hint(), "ulimit -f"));
  }
  CHECK(get(folder / "f") == "old");
  CHECK(entries(folder) == std::vector<std::string>{"f"});
}

TEST_CASE("AtomicFile: what is not a regular file is refused, a link keeps pointing") {
  const TemporaryFolder folder;
  make_directories(folder / "folder");
  for (const fs::path& path : {folder / "folder", fs::path("/dev/null")}) {
    const Error error = error_of([&] { AtomicFile{path}; });
    CHECK(error.code() == ErrorCode::kIo);
    CHECK(contains(error.message(), "is not a regular file"));
  }
  put(folder / "folder/target", "old");
  fs::create_symlink("folder/target", folder / "link");
  write_file_atomic(folder / "link", std::string_view("new"));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(get(folder / "folder/target") == "new");
  fs::create_symlink("/dev/null", folder / "null");
  CHECK(contains(error_of([&] { AtomicFile{folder / "null"}; }).message(), "a link to something"));
  fs::create_symlink("nowhere", folder / "dangling");
  CHECK(error_of([&] { AtomicFile{folder / "dangling"}; }).code() == ErrorCode::kIo);
}

TEST_CASE("AtomicFile: a missing folder is kIo and named") {
  const TemporaryFolder folder;
  const Error error = error_of([&] { AtomicFile{folder / "none/f"}; });
  CHECK(error.code() == ErrorCode::kIo);
  CHECK(contains(error.message(), "none/f': No such file or directory"));
}

TEST_CASE("AtomicFile: a process killed at any moment leaves the old or the new file") {
  const TemporaryFolder folder;
  const std::string contents[] = {std::string(300'000, 'a'), std::string(500'000, 'b')};
  put(folder / "f", contents[0]);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (std::size_t i = 0;; ++i) write_file_atomic(folder / "f", contents[i % 2]);
    }
    ::usleep(static_cast<useconds_t>(500 + 700 * round));
    REQUIRE(::kill(child, SIGKILL) == 0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    const std::string now = get(folder / "f");
    CHECK((now == contents[0] || now == contents[1]));
  }
}

TEST_CASE("AppendFile: adds lines to what is there") {
  const TemporaryFolder folder;
  {
    AppendFile file(folder / "log");
    file.write_line("one");
    CHECK(get(folder / "log") == "one\n");  // readable at once
    file.sync();
  }
  AppendFile file(folder / "log");
  file.write_line("");
  file.write_line("three");
  CHECK(get(folder / "log") == "one\n\nthree\n");
}

TEST_CASE("AppendFile: a line cut short by a crash is removed on opening") {
  const TemporaryFolder folder;
  put(folder / "log", "{\"a\":1}\n{\"a\":");
  AppendFile(folder / "log").write_line("{\"a\":2}");
  CHECK(get(folder / "log") == "{\"a\":1}\n{\"a\":2}\n");
  put(folder / "log", "no line end at all");
  AppendFile(folder / "log").write_line("x");
  CHECK(get(folder / "log") == "x\n");
  // Longer than one block of the search.
  put(folder / "log", "first\n" + std::string(200'000, 'x'));
  AppendFile(folder / "log").write_line("y");
  CHECK(get(folder / "log") == "first\ny\n");
}

TEST_CASE("AppendFile: a full disk is kIo and said so") {
  AppendFile file("/dev/full");
  const Error error = error_of([&] { file.write_line("x"); });
  CHECK(error.code() == ErrorCode::kIo);
  CHECK(error.message() == "cannot write '/dev/full': No space left on device");
  CHECK(error.hint() == "free some space, or choose a folder on another disk");
  const TemporaryFolder folder;
  CHECK(error_of([&] { AppendFile{folder.path()}; }).code() == ErrorCode::kIo);
}

}  // namespace
}  // namespace trainscope
