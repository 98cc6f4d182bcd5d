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
  CHECK(contains(error.message(), "none': No such file or directory"));
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

TEST_CASE("AtomicFile: an entry of a folder is replaced, never what a link or FIFO leads to") {
  const TemporaryFolder folder;
  put(folder / "outside", "outside");
  make_directories(folder / "run/folder");
  const Folder run = Folder::open(folder / "run");
  write_file_atomic(run / "f", "one");
  fs::create_hard_link(folder / "run/f", folder / "twin");
  write_file_atomic(run / "f", "two");
  CHECK(get(folder / "run/f") == "two");
  CHECK(get(folder / "twin") == "one");  // another file by now
  fs::create_symlink("../outside", folder / "run/link");
  fs::create_symlink("../new", folder / "run/dangling");
  REQUIRE(::mkfifo((folder / "run/fifo").c_str(), 0600) == 0);
  const std::vector<std::string> before = run.list();
  for (const char* name : {"link", "dangling", "fifo", "folder"}) {
    CAPTURE(name);
    CHECK(error_of([&] { AtomicFile{run / name}; }).code() == ErrorCode::kBadInput);
  }
  CHECK(run.list() == before);
  CHECK(get(folder / "outside") == "outside");
  CHECK_FALSE(path_exists(folder / "new"));
}

TEST_CASE("temporary files: what a killed process left goes, nothing else") {
  const TemporaryFolder folder;
  const Folder opened = Folder::open(folder.path());
  AtomicFile left(opened / "f");
  REQUIRE(opened.list().size() == 1);
  CHECK(is_temporary_name(opened.list().front()));
  for (const char* name : {".trainscope-1-0.tmp.bak", ".trainscope", "mine.tmp"}) {
    put(folder / name, "mine");
    CHECK_FALSE(is_temporary_name(name));
  }
  put(folder / ".trainscope-77-3.tmp", "half");
  fs::create_symlink("mine.tmp", folder / ".trainscope-78-0.tmp");
  remove_temporary_files(opened);
  CHECK(opened.list() ==
        std::vector<std::string>{".trainscope", ".trainscope-1-0.tmp.bak", "mine.tmp"});
}

TEST_CASE("AppendFile: adds lines to what is there") {
  const TemporaryFolder folder;
  {
    AppendFile file(Folder::open(folder.path()) / "log");
    file.write_line("one");
    CHECK(get(folder / "log") == "one\n");  // readable at once
    file.sync();
  }
  AppendFile file(Folder::open(folder.path()) / "log");
  file.write_line("");
  file.write_line("three");
  CHECK(get(folder / "log") == "one\n\nthree\n");
}

TEST_CASE("AppendFile: a line cut short by a crash is removed on opening") {
  const TemporaryFolder folder;
  put(folder / "log", "{\"a\":1}\n{\"a\":");
  AppendFile(Folder::open(folder.path()) / "log").write_line("{\"a\":2}");
  CHECK(get(folder / "log") == "{\"a\":1}\n{\"a\":2}\n");
  put(folder / "log", "no line end at all");
  AppendFile(Folder::open(folder.path()) / "log").write_line("x");
  CHECK(get(folder / "log") == "x\n");
  // Longer than one block of the search.
  put(folder / "log", "first\n" + std::string(200'000, 'x'));
  AppendFile(Folder::open(folder.path()) / "log").write_line("y");
  CHECK(get(folder / "log") == "first\ny\n");
}

TEST_CASE("AppendFile: links, further names and what is no file are refused, nothing is cut") {
  const TemporaryFolder folder;
  put(folder / "outside", "no line end");
  make_directories(folder / "run/folder");
  fs::create_symlink("../outside", folder / "run/link");
  fs::create_symlink("../new", folder / "run/dangling");
  fs::create_hard_link(folder / "outside", folder / "run/hard");
  REQUIRE(::mkfifo((folder / "run/fifo").c_str(), 0600) == 0);
  const Folder run = Folder::open(folder / "run");
  const std::pair<const char*, const char*> cases[] = {
      {"link", "link': it is a symbolic link, not a regular file"},
      {"dangling", "dangling': it is a symbolic link"},
      {"hard", "hard': it has 2 hard links"},
      {"fifo", "fifo': it is a FIFO"},
      {"folder", "folder': it is a folder"}};
  for (const auto& [name, message] : cases) {
    CAPTURE(name);
    const Error error = error_of([&, entry = name] { AppendFile{run / entry}; });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), message));
    CHECK_FALSE(error.hint().empty());
  }
  CHECK(get(folder / "outside") == "no line end");
  CHECK_FALSE(path_exists(folder / "new"));
}

TEST_CASE("AppendFile: a disk that takes no more is kIo and said so") {
  const TemporaryFolder folder;
  AppendFile file(Folder::open(folder.path()) / "log");
  file.write_line("one");
  const FileSizeLimit guard(4);
  const Error error = error_of([&] { file.write_line("x"); });
  CHECK(error.code() == ErrorCode::kIo);
  CHECK(contains(error.message(), "log': File too large"));
  CHECK(contains(error.hint(), "ulimit -f"));
  CHECK(get(folder / "log") == "one\n");
}

}  // namespace
}  // namespace trainscope
