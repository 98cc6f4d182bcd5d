// Bookmarks and notes of a run: notes.json in its folder (docs/run-format.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/json.h"

namespace trainscope::gui {

struct Note {
  std::string text = {};
  std::string view = {};  // as of `gui RUN --at VIEW`
  std::string time = {};  // UTC, ISO 8601
};

struct Notes {
  std::vector<Note> notes = {};
};

inline constexpr const char* kNotesFile = "notes.json";

Json to_json(const Notes& notes);
Notes notes_from(const Json& json);  // throws kBadInput

// Of a run's folder; none where there is no such file. Throws kIo and kBadInput.
Notes read_notes(const std::filesystem::path& folder);
void write_notes(const std::filesystem::path& folder, const Notes& notes);

}  // namespace trainscope::gui
