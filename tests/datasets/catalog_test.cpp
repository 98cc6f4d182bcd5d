// The list of public sets, and what is used of them when they are there.
#include "datasets/catalog.h"

#include <doctest/doctest.h>

#include <set>

#include "datasets/sha256.h"
#include "tests/datasets/dataset_tools.h"
#include "tests/support/shared.h"

namespace trainscope {

TEST_CASE("sha256: the examples of FIPS 180-4, whole and in pieces") {
  const auto digest = [](std::string_view text) {
    return Sha256().bytes(std::as_bytes(std::span(text))).digest();
  };
  CHECK(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(digest(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  Sha256 pieces;
  const std::string piece(1000, 'a');
  for (int i = 0; i < 1000; ++i) pieces.bytes(std::as_bytes(std::span(piece)));
  CHECK(pieces.digest() == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("catalog: every row is complete") {
  CHECK(catalog().size() >= 2);
  for (const CatalogSet& set : catalog()) {
    CHECK(!set.licence.empty());
    CHECK(!set.files.empty());
    std::set<std::string_view> names;
    for (const CatalogFile& file : set.files) {
      CAPTURE(file.name);
      CHECK(names.insert(file.name).second);
      CHECK(file.size_bytes > 0);
      CHECK(file.sha256.size() == 64);
      CHECK(file.sha256.find_first_not_of("0123456789abcdef") == std::string_view::npos);
      CHECK(!file.urls.empty());
      for (const std::string_view url : file.urls) {
        CHECK(url.starts_with("https://"));
        CHECK(url.ends_with(file.name));
      }
    }
  }
  const Error error = error_of([] { find_set("mnits"); });
  CHECK(error.code() == ErrorCode::kUsage);
  CHECK(error.hint() == "did you mean 'mnist'?");
}

TEST_CASE("catalog: a set that is not there, or damaged") {
  const TemporaryFolder folder;
  DatasetOptions options = text_options(8);
  options.data_folder = folder.path();
  const auto error = [&](const char* spec) { return opening_error(spec, options); };
  const Error absent = error("catalog:tinyshakespeare");
  CHECK(absent.code() == ErrorCode::kIo);
  CHECK(contains(absent.message(), "has not been fetched"));
  CHECK(absent.hint() == "trainscope data get tinyshakespeare");
  std::filesystem::create_directory(folder / "tinyshakespeare");
  put(folder / "tinyshakespeare/input.txt", "First Citizen:\n");
  CHECK(error("catalog:tinyshakespeare").code() == ErrorCode::kBadInput);
  CHECK(contains(error("catalog:tinyshakespeare").message(), "is damaged"));
  CHECK(error("catalog:shakespeare").code() == ErrorCode::kUsage);
  CHECK(error("catalog:tinyshakespeare,part=test").code() == ErrorCode::kUsage);
}

TEST_CASE("catalog: a set that is there" *
          doctest::skip(!test::has_shared("data/tinyshakespeare/input.txt"))) {
  DatasetOptions options = text_options(64);
  options.data_folder = test::shared_path("data");
  const auto data = open_dataset("catalog:tinyshakespeare", options);
  CHECK(data->description().get<std::string>("kind") == "text");
  CHECK(data->examples(Split::kTrain) == 15684);
}

}  // namespace trainscope
