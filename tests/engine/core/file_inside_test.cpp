// Tests of files that other files name: nothing outside the folder may be reached.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "engine/core/file.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// root/: weights.bin, sub/deep.bin; outside it: secret.
struct Tree {
  TemporaryFolder folder;
  fs::path root = folder / "root";
  Tree() {
    make_directories(root / "sub");
    put(root / "weights.bin", "weights");
    put(root / "sub/deep.bin", "deep");
    put(folder / "secret", "secret");
  }
};

TEST_CASE("open_inside: opens regular files at any depth") {
  const Tree tree;
  CHECK(text_of(open_inside(tree.root, "weights.bin")) == "weights");
  CHECK(text_of(open_inside(tree.root, "sub/deep.bin")) == "deep");
  CHECK(text_of(open_inside(tree.root, "./sub//./deep.bin")) == "deep");
  put(tree.root / "..a", "dots");  // a name, not a way up
  CHECK(text_of(open_inside(tree.root, "..a")) == "dots");
  put(tree.root / "empty", "");
  CHECK(open_inside(tree.root, "empty").bytes().empty());
}

TEST_CASE("open_inside: the folder itself may be reached by links, that is the user's choice") {
  const Tree tree;
  fs::create_directory_symlink(tree.root, tree.folder / "alias");
  CHECK(text_of(open_inside(tree.folder / "alias", "weights.bin")) == "weights");
}

TEST_CASE("open_inside: hostile names are refused with a reason") {
  const Tree tree;
  const fs::path& root = tree.root;
  fs::create_symlink("weights.bin", root / "link");
  fs::create_symlink(tree.folder / "secret", root / "out");
  fs::create_symlink("nowhere", root / "dangling");
  fs::create_directory_symlink(tree.folder.path(), root / "up");
  fs::create_directory_symlink("sub", root / "linked_sub");
  fs::create_symlink("loop", root / "loop");
  put(root / "twin", "twin");
  fs::create_hard_link(root / "twin", root / "twin2");
  fs::create_hard_link(tree.folder / "secret", root / "hard");
  REQUIRE(::mkfifo((root / "fifo").c_str(), 0600) == 0);

  struct Case {
    std::string name;
    const char* message;
  };
  const Case cases[] = {
      {"", "the path is empty"},
      {"/etc/passwd", "it is an absolute path"},
      {"//etc/passwd", "it is an absolute path"},
      {(tree.root / "weights.bin").string(), "it is an absolute path"},
      {"../secret", "it leaves the folder by '..'"},
      {"..", "it leaves the folder by '..'"},
      {"sub/../weights.bin", "it leaves the folder by '..'"},
      {"sub/../../secret", "it leaves the folder by '..'"},
      {"./../secret", "it leaves the folder by '..'"},
      {"sub/..", "it leaves the folder by '..'"},
      {std::string("weights.bin\0.png", 16), "it holds a NUL character"},
      {std::string("\0", 1), "it holds a NUL character"},
      {"link", "'link' is a symbolic link"},
      {"out", "'out' is a symbolic link"},
      {"dangling", "'dangling' is a symbolic link"},
      {"loop", "'loop' is a symbolic link"},
      {"up/secret", "'up' is a symbolic link"},
      {"linked_sub/deep.bin", "'linked_sub' is a symbolic link"},
      {"twin", "it has 2 hard links"},
      {"hard", "it has 2 hard links"},
      {"fifo", "it is not a regular file"},
      {"sub", "it is not a regular file"},
      {"sub/", "it names a folder"},
      {".", "it names a folder"},
      {"./.", "it names a folder"},
      {"weights.bin/", "it names a folder"},
      {"weights.bin/x", "'weights.bin' is not a folder"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const Error error = error_of([&] { open_inside(root, c.name); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), c.message));
    CHECK(contains(error.message(), "refused to open '"));
    CHECK_FALSE(error.hint().empty());
  }
}

TEST_CASE("open_inside: devices and sockets are refused") {
  CHECK(contains(error_of([] { open_inside("/dev", "zero"); }).message(), "not a regular file"));
  const Tree tree;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(fd >= 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (tree.root / "socket").string();
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(contains(error_of([&] { open_inside(tree.root, "socket"); }).message(),
                 "not a regular file"));
  ::close(fd);
}

TEST_CASE("open_inside: what is missing is kIo and named") {
  const Tree tree;
  for (const char* name : {"none.bin", "sub/none.bin", "none/deep.bin"}) {
    CAPTURE(name);
    const Error error = error_of([&] { open_inside(tree.root, name); });
    CHECK(error.code() == ErrorCode::kIo);
    CHECK(contains(error.message(), name));
    CHECK(contains(error.message(), "No such file or directory"));
  }
  CHECK(error_of([&] { open_inside(tree.folder / "none", "x"); }).code() == ErrorCode::kIo);
  const std::string long_name(300, 'x');
  CHECK(contains(error_of([&] { open_inside(tree.root, long_name); }).message(), "too long"));
}

TEST_CASE("open_inside: control characters in names are not printed") {
  const Tree tree;
  const Error error = error_of([&] { open_inside(tree.root, "../\x1b[2J"); });
  CHECK(contains(error.message(), "'../\\x1b[2J'"));
}

TEST_CASE("open_inside: a name swapped for a link meanwhile never leads outside") {
  const Tree tree;
  const fs::path target = tree.root / "swap";
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    while (!stop) {
      ::unlink(target.c_str());
      if (::symlink((tree.folder / "secret").c_str(), target.c_str()) != 0) continue;
      ::unlink(target.c_str());
      if (std::FILE* file = std::fopen(target.c_str(), "w")) {
        std::fputs("inside", file);
        std::fclose(file);
      }
    }
  });
  int opened = 0;
  for (int i = 0; i < 20'000; ++i) {
    try {
      const MappedFile file = open_inside(tree.root, "swap");
      ++opened;
      // Copied with read(): the file may be cut short while it is mapped.
      if (file.size_bytes() == 6) {
        char text[6];
        file.read(0, std::as_writable_bytes(std::span(text)));
        REQUIRE(std::string_view(text, 6) == "inside");
      }
    } catch (const Error&) {
      continue;
    }
  }
  stop = true;
  swapper.join();
  CHECK(opened > 0);
}

}  // namespace
}  // namespace trainscope
