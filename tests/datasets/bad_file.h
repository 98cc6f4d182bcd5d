// Bad files of one kind of data, each refused with one message.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {

struct BadFile {
  std::string content;
  std::string message;  // a part of the error's
};

struct BadPlace {
  std::filesystem::path folder;
  std::filesystem::path file;  // in it, with the content
};

// At least twenty; `open` gives the error of opening each one.
inline void check_bad_files(std::string_view name, const std::vector<BadFile>& files,
                            const std::function<Error(const BadPlace&)>& open) {
  CHECK(files.size() >= 20);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const TemporaryFolder folder;
    const BadPlace place{.folder = folder.path(), .file = folder / name};
    put(place.file, files[i].content);
    const Error error = open(place);
    std::string text = error.message();
    for (const std::string& where : error.context()) text += " | " + where;
    CAPTURE(name);
    CAPTURE(i);
    CAPTURE(text);
    CHECK(error.code() == ErrorCode::kBadInput);
    REQUIRE(!files[i].message.empty());
    CHECK(contains(text, files[i].message));
    CHECK(contains(text, folder.path().string()));
    CHECK(text.find('\n') == std::string::npos);
  }
}

}  // namespace trainscope
