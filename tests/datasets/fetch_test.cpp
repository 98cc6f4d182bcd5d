// Downloads from a local server that does everything that servers do.
#include "datasets/fetch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <optional>

#include "datasets/sha256.h"
#include "engine/core/file.h"
#include "tests/datasets/dataset_tools.h"
#include "tests/support/http_server.h"

namespace trainscope {
namespace {

constexpr std::size_t kSize = 300000;

// A server with one file, the catalog's row of it, and a folder to fetch it to.
struct Fixture {
  Fixture() {
    std::filesystem::create_directory(folder / "served");
    for (std::size_t i = 0; i < kSize; ++i) content += static_cast<char>(i * i >> 7);
    put(folder / "served/data.bin", content);
    sha256 = sha256_of_file(folder / "served/data.bin");
    server.emplace(folder / "served", folder / "log");
  }

  CatalogFile file() const {
    return {.part = "train", .name = "data.bin", .size_bytes = kSize, .sha256 = sha256, .urls = {}};
  }
  std::filesystem::path target() const { return folder / "sets/data.bin"; }
  std::filesystem::path partial() const { return folder / "sets/data.bin.part"; }

  FetchOutcome fetch(const std::vector<std::string>& ways) {
    FetchOptions options{.stall_seconds = stall_seconds};
    for (const std::string& way : ways) options.base_urls.push_back(server->url(way));
    return fetch_file(file(), folder / "sets", options);
  }
  // Path and range of the requests so far.
  std::string log() const { return get(folder / "log"); }
  void put_partial(std::string_view bytes) {
    std::filesystem::create_directories(folder / "sets");
    put(partial(), bytes);
  }
  void check_fetched() {
    CHECK(get(target()) == content);
    CHECK(!std::filesystem::exists(partial()));
  }

  TemporaryFolder folder;
  std::string content;
  std::string sha256;
  std::int64_t stall_seconds = 60;  // a loaded machine may be slow
  std::optional<test::HttpServer> server;
};

std::string places(const Error& error) {
  std::string all;
  for (const std::string& line : error.context()) all += line + "\n";
  return all;
}

}  // namespace

TEST_CASE("fetch: a whole file, then it is there") {
  Fixture f;
  CHECK(f.fetch({"ok"}) == FetchOutcome::kFetched);
  f.check_fetched();
  CHECK(f.fetch({"missing"}) == FetchOutcome::kPresent);
  CHECK(f.log() == "/ok/data.bin \n");
}

TEST_CASE("fetch: a damaged file is fetched again") {
  Fixture f;
  std::filesystem::create_directory(f.folder / "sets");
  std::string damaged = f.content;
  damaged[1000] ^= 1;
  put(f.target(), damaged);
  CHECK(f.fetch({"ok"}) == FetchOutcome::kFetched);
  f.check_fetched();
}

TEST_CASE("fetch: addresses are tried in order until one gives the file") {
  Fixture f;
  CHECK(f.fetch({"missing", "wrong", "page", "redirect", "ok"}) == FetchOutcome::kFetched);
  f.check_fetched();
}

TEST_CASE("fetch: what broke off goes on at the next address") {
  Fixture f;
  CHECK(f.fetch({"short", "ok"}) == FetchOutcome::kFetched);
  f.check_fetched();
  CHECK(f.log() == "/short/data.bin \n/ok/data.bin bytes=150000-\n");
}

TEST_CASE("fetch: what broke off is kept, and a later call goes on") {
  Fixture f;
  const Error error = error_of([&] { f.fetch({"short"}); });
  CHECK(error.code() == ErrorCode::kIo);
  CHECK(get(f.partial()) == f.content.substr(0, kSize / 2));
  CHECK(!std::filesystem::exists(f.target()));
  CHECK(f.fetch({"ok"}) == FetchOutcome::kFetched);
  f.check_fetched();
  CHECK(contains(f.log(), "/ok/data.bin bytes=150000-\n"));
}

TEST_CASE("fetch: servers that ignore ranges or refuse them start over") {
  for (const char* way : {"plain", "norange"}) {
    Fixture f;
    f.put_partial(f.content.substr(0, 1000));
    CHECK(f.fetch({way}) == FetchOutcome::kFetched);
    f.check_fetched();
  }
}

TEST_CASE("fetch: a partial file of something else, too long or complete") {
  Fixture f;
  f.put_partial(std::string(5000, 'x'));
  CHECK(f.fetch({"ok"}) == FetchOutcome::kFetched);
  f.check_fetched();
  CHECK(f.log() == "/ok/data.bin bytes=5000-\n/ok/data.bin \n");
  std::filesystem::remove(f.target());
  f.put_partial(f.content + "x");
  CHECK(f.fetch({"ok"}) == FetchOutcome::kFetched);
  f.check_fetched();
  std::filesystem::remove(f.target());
  f.put_partial(f.content);
  CHECK(f.fetch({"missing"}) == FetchOutcome::kFetched);  // nothing is left to ask for
  f.check_fetched();
}

TEST_CASE("fetch: what no address gives is an error with the reason of each") {
  struct Row {
    std::vector<std::string> ways;
    ErrorCode code;
    const char* message;
  };
  const Row rows[] = {
      {{"missing"}, ErrorCode::kIo, "/missing/data.bin: it answers 404"},
      {{"wrong"}, ErrorCode::kBadInput, "its 300000 bytes are not the file of the catalog"},
      {{"page"}, ErrorCode::kBadInput, "its 26 bytes are not the file of the catalog"},
      {{"large"}, ErrorCode::kIo, "it sends more than 300000 bytes"},
      {{"redirect"}, ErrorCode::kIo, "it redirects to 'http://127.0.0.1"},
      {{"loop"}, ErrorCode::kIo, "it redirects to 'http://127.0.0.1"},
      {{"short"}, ErrorCode::kIo, "/short/data.bin: "},
      {{"missing", "wrong"}, ErrorCode::kBadInput, "it answers 404"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    Fixture f;
    const Error error = error_of([&] { f.fetch(row.ways); });
    CHECK(error.code() == row.code);
    CHECK(contains(error.message(), "'data.bin' could not be fetched"));
    CAPTURE(places(error));
    CHECK(contains(places(error), row.message));
    CHECK(error.context().size() == row.ways.size());
    CHECK(contains(error.hint(), "--from-dir"));
    CHECK(!std::filesystem::exists(f.target()));
  }
}

TEST_CASE("fetch: a server that stalls is given up, and its bytes are kept") {
  Fixture f;
  f.stall_seconds = 1;
  const auto start = std::chrono::steady_clock::now();
  const Error error = error_of([&] { f.fetch({"stall"}); });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  CHECK(error.code() == ErrorCode::kIo);
  CHECK(contains(places(error), "it stalls"));
  CHECK(get(f.partial()).size() == kSize / 2);
}

TEST_CASE("fetch: nobody listens, other protocols, no address") {
  Fixture f;
  const auto problem = [&](const std::string& url) {
    const FetchOptions options{.base_urls = {url}, .stall_seconds = 10};
    const Error error = error_of([&] { fetch_file(f.file(), f.folder / "sets", options); });
    CHECK(error.code() == ErrorCode::kIo);
    CHECK(!std::filesystem::exists(f.partial()));
    return places(error);
  };
  CHECK(!problem("http://127.0.0.1:1").empty());
  CHECK(contains(problem("ftp://127.0.0.1"), "only https and http can be fetched"));
  CHECK(contains(problem("file://" + (f.folder / "served").string()), "only https and http"));
  CHECK(!problem("no address").empty());
}

TEST_CASE("fetch: from a folder, with the same checks") {
  Fixture f;
  const auto fetch = [&](const char* from) {
    return fetch_file(f.file(), f.folder / "sets", {.from_folder = f.folder / from});
  };
  CHECK(fetch("served") == FetchOutcome::kCopied);
  f.check_fetched();
  std::filesystem::remove(f.target());
  CHECK(error_of([&] { fetch("nowhere"); }).code() == ErrorCode::kIo);
  std::string other = f.content;
  other[5] ^= 1;
  put(f.folder / "served/data.bin", other);
  const Error wrong = error_of([&] { fetch("served"); });
  CHECK(wrong.code() == ErrorCode::kBadInput);
  CHECK(contains(wrong.message(), "expected " + f.sha256));
  put(f.folder / "served/data.bin", "short");
  CHECK(contains(error_of([&] { fetch("served"); }).message(), "has 5 bytes: expected 300000"));
  CHECK(!std::filesystem::exists(f.target()));
}

TEST_CASE("fetch: two processes do not write the same file") {
  Fixture f;
  f.put_partial("abc");
  const FileDescriptor other(open(f.partial().c_str(), O_RDWR));
  REQUIRE(flock(other.get(), LOCK_EX) == 0);
  const Error error = error_of([&] { f.fetch({"ok"}); });
  CHECK(error.code() == ErrorCode::kIo);
  CHECK(contains(error.message(), "another process is fetching"));
  CHECK(get(f.partial()) == "abc");
}

TEST_CASE("fetch: a folder that cannot be written") {
  Fixture f;
  put(f.folder / "sets", "a file in the way");
  CHECK(error_of([&] { f.fetch({"ok"}); }).code() == ErrorCode::kIo);
}

}  // namespace trainscope
