// notes.json, read and written whole.
#include "gui/workbench/notes.h"

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/folder.h"
#include "engine/core/text.h"

namespace trainscope::gui {
namespace {

constexpr std::int64_t kNotesFormat = 1;

}  // namespace

Json to_json(const Notes& notes) {
  Json list = Json::array();
  for (const Note& note : notes.notes) {
    list.push_back(Json::object({{"text", note.text}, {"view", note.view}, {"time", note.time}}));
  }
  return Json::object({{"format", kNotesFormat}, {"notes", std::move(list)}});
}

Notes notes_from(const Json& json) {
  const auto format = json.get<std::int64_t>("format");
  require(format == kNotesFormat, ErrorCode::kBadInput, "notes of format {}, this program reads {}",
          format, kNotesFormat);
  Notes notes;
  for (const Json& note : json.array_at("notes")) {
    notes.notes.push_back({.text = note.get<std::string>("text"),
                           .view = note.get_or("view", ""),
                           .time = note.get_or("time", "")});
  }
  return notes;
}

Notes read_notes(const std::filesystem::path& folder) {
  const Folder opened = Folder::open(folder);
  if (!opened.has_file(kNotesFile)) return {};
  const std::filesystem::path file = folder / kNotesFile;
  const Json json = read_json_file(file);
  try {
    return notes_from(json);
  } catch (Error& error) {
    error.at(printable(file.string()));
    throw;
  }
}

void write_notes(const std::filesystem::path& folder, const Notes& notes) {
  write_file_atomic(Folder::open(folder) / kNotesFile, to_json(notes).dump(2) + "\n");
}

}  // namespace trainscope::gui
