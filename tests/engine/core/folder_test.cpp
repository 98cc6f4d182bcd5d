// Tests of open folders: nothing outside may be read, written or removed through an entry.
#include "engine/core/folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "engine/core/file.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// in/: a file, a folder, and entries that lead out of it; outside/ holds a file.
struct Tree {
  TemporaryFolder root;
  Tree() {
    make_directories(root / "in/folder");
    make_directories(root / "outside");
    put(root / "outside/file", "outside");
    put(root / "in/file", "inside");
    fs::create_symlink("../outside/file", root / "in/link");
    fs::create_symlink("nowhere", root / "in/dangling");
    fs::create_directory_symlink("../outside", root / "in/linked_folder");
    fs::create_hard_link(root / "outside/file", root / "in/hard");
    REQUIRE(::mkfifo((root / "in/fifo").c_str(), 0600) == 0);
  }
  Folder open() const { return Folder::open(root / "in"); }
};

TEST_CASE("folder: what is there, and of which kind") {
  const Tree tree;
  const Folder folder = tree.open();
  CHECK(folder.path() == tree.root / "in");
  for (const char* name : {"file", "folder", "link", "dangling", "fifo", "hard"}) {
    CHECK(folder.has(name));
  }
  CHECK_FALSE(folder.has("none"));
  CHECK(folder.has_file("file"));
  CHECK_FALSE(folder.has_file("none"));
  CHECK(folder.has_folder("folder"));
  CHECK_FALSE(folder.has_folder("none"));
  CHECK(folder.has_file("hard"));
  CHECK(error_of([&] { folder.has_file("hard", HardLinks::kRefused); }).code() ==
        ErrorCode::kBadInput);
  CHECK(folder.list() == std::vector<std::string>{"dangling", "fifo", "file", "folder", "hard",
                                                  "link", "linked_folder"});
}

TEST_CASE("folder: links, FIFOs and the other kind are refused with what they are") {
  const Tree tree;
  const Folder folder = tree.open();
  struct Case {
    const char* name;
    const char* message;
  };
  for (const Case& c : {Case{"link", "in/link': it is a symbolic link, not a regular file"},
                        Case{"dangling", "in/dangling': it is a symbolic link"},
                        Case{"fifo", "in/fifo': it is a FIFO, not a regular file"},
                        Case{"folder", "in/folder': it is a folder, not a regular file"}}) {
    CAPTURE(c.name);
    const auto message = [&](auto action) {
      const Error error = error_of(action);
      CHECK(error.code() == ErrorCode::kBadInput);
      CHECK(contains(error.hint(), "copy"));
      return error.message();
    };
    CHECK(contains(message([&] { folder.has_file(c.name); }), c.message));
    CHECK(contains(message([&] { folder.open_file(c.name); }), c.message));
    CHECK(contains(message([&] { folder.open_to_append(c.name); }), c.message));
    CHECK(contains(message([&] { read_file(folder / c.name, 100); }), c.message));
    CHECK(contains(message([&] { MappedFile::open(folder / c.name); }), c.message));
  }
  for (const char* name : {"file", "fifo", "link", "linked_folder", "dangling"}) {
    CAPTURE(name);
    CHECK(error_of([&] { folder.has_folder(name); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { folder.enter(name); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { folder.make(name); }).code() == ErrorCode::kBadInput);
  }
  CHECK(read_file(folder / "file", 100) == "inside");
}

TEST_CASE("folder: only names of entries") {
  const Tree tree;
  const Folder folder = tree.open();
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("folder/x"),
        std::string("../outside/file"), std::string("/etc/passwd"), std::string("file\0x", 6)}) {
    CAPTURE(name);
    CHECK(error_of([&] { folder / name; }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { folder.enter(name); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { folder.remove(name); }).code() == ErrorCode::kBadInput);
    CHECK(error_of([&] { folder.rename("file", name); }).code() == ErrorCode::kBadInput);
  }
  CHECK(get(tree.root / "in/file") == "inside");
}

TEST_CASE("folder: it stays the same one when its path becomes another's") {
  const Tree tree;
  const Folder folder = tree.open();
  fs::rename(tree.root / "in", tree.root / "moved");
  fs::create_directory_symlink("outside", tree.root / "in");
  write_file_atomic(folder / "file", "new");
  CHECK(get(tree.root / "moved/file") == "new");
  CHECK(get(tree.root / "outside/file") == "outside");
}

TEST_CASE("folder: made once, entered afterwards") {
  const Tree tree;
  const Folder made = tree.open().make("made");
  put(tree.root / "in/made/x", "x");
  CHECK(tree.open().make("made").list() == std::vector<std::string>{"x"});
  CHECK(made.path() == tree.root / "in/made");
}

TEST_CASE("folder: removes what is inside, follows no links") {
  const Tree tree;
  make_directories(tree.root / "in/old/deep");
  put(tree.root / "in/old/deep/f", "x");
  fs::create_symlink("../../outside/file", tree.root / "in/old/link");
  fs::create_directory_symlink("../../outside", tree.root / "in/old/linked_folder");
  REQUIRE(::mkfifo((tree.root / "in/old/deep/fifo").c_str(), 0600) == 0);
  const Folder folder = tree.open();
  for (const char* name : {"old", "linked_folder", "link", "fifo", "none"}) folder.remove(name);
  CHECK(folder.list() == std::vector<std::string>{"dangling", "file", "folder", "hard"});
  CHECK(get(tree.root / "outside/file") == "outside");
}

TEST_CASE("folder: folders in folders are removed to a depth that takes few descriptors") {
  const TemporaryFolder root;
  fs::path deep = root / "deep";
  for (int i = 0; i < 100; ++i) deep /= "d";
  fs::create_directories(deep);
  const Folder folder = Folder::open(root.path());
  CHECK(contains(error_of([&] { folder.remove("deep"); }).message(), "folders deep"));
}

TEST_CASE("folder: renames, not onto a folder that holds something") {
  const TemporaryFolder root;
  make_directories(root / "a");
  put(root / "a/f", "x");
  const Folder folder = Folder::open(root.path());
  folder.rename("a", "b");
  CHECK(get(root / "b/f") == "x");
  make_directories(root / "c");
  put(root / "c/g", "y");
  CHECK(error_of([&] { folder.rename("b", "c"); }).code() == ErrorCode::kIo);
  CHECK(get(root / "c/g") == "y");
  REQUIRE(folder.exchange("b", "c"));
  CHECK(get(root / "b/g") == "y");
  CHECK(error_of([&] { folder.exchange("b", "none"); }).code() == ErrorCode::kIo);
}

TEST_CASE("folder: what is missing is kIo and named") {
  const TemporaryFolder root;
  const Folder folder = Folder::open(root.path());
  CHECK(contains(error_of([&] { folder.enter("none"); }).message(), "none': No such file"));
  CHECK(contains(error_of([&] { folder.open_file("none"); }).message(), "none': No such file"));
  CHECK(error_of([&] { Folder::open(root / "none"); }).code() == ErrorCode::kIo);
  put(root / "f", "");
  CHECK(error_of([&] { Folder::open(root / "f"); }).code() == ErrorCode::kIo);
}

TEST_CASE("folder: a name swapped for a link meanwhile never leads outside") {
  const Tree tree;
  const fs::path target = tree.root / "in/swap";
  const fs::path outside = tree.root / "outside/alone";  // a file without other names
  put(outside, "outside");
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    while (!stop) {
      ::unlink(target.c_str());
      if (::symlink(outside.c_str(), target.c_str()) != 0) continue;
      ::unlink(target.c_str());
    }
  });
  const Folder folder = tree.open();
  int written = 0;
  for (int i = 0; i < 5000 || (written == 0 && i < 200'000); ++i) {
    try {
      AppendFile(folder / "swap").write_line("x");
      ++written;
    } catch (const Error&) {
      continue;
    }
  }
  stop = true;
  swapper.join();
  CHECK(written > 0);
  CHECK(get(outside) == "outside");
}

}  // namespace
}  // namespace trainscope
