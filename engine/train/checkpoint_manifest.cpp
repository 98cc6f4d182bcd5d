// Reading of checkpoints: the manifest is checked against itself, the files against the manifest.
#include "engine/train/checkpoint_manifest.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHashKey = "xxh3";
constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{16} << 20;
constexpr int kIndent = 2;

template <typename... Args>
[[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::kBadInput, format, std::forward<Args>(args)...);
}

std::uint64_t parse_hash(const Json& json, std::string_view key) {
  const std::string text = json.get<std::string>(key);
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 16 || !std::ranges::all_of(text, is_digit)) {
    bad("key '{}': expected 16 hexadecimal digits, found '{}'", key, printable(text, 40));
  }
  return std::stoull(text, nullptr, 16);
}

// Seeds use all 64 bits, integers in JSON have 63: decimal digits as text.
std::uint64_t parse_seed(const Json& json) {
  const std::string text = json.get<std::string>("seed");
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    bad("key 'seed': expected a whole number as text, found '{}'", printable(text, 40));
  }
  return seed;
}

std::int64_t parse_count(const Json& json, std::string_view key) {
  const auto value = json.get<std::int64_t>(key);
  if (value < 0) bad("key '{}' is {}: expected 0 or more", key, value);
  return value;
}

// The manifest without its hash, as it is hashed and written.
Json manifest_json(const CheckpointState& state, const std::vector<FileRecord>& files) {
  Json list = Json::array();
  for (const FileRecord& file : files) {
    list.push_back(Json::object({{"name", file.name},
                                 {"size_bytes", file.size_bytes},
                                 {"xxh3", hash_hex(file.content_hash)}}));
  }
  Json json = Json::object({{"format", kCheckpointFormat},
                            {"step", state.step},
                            {"samples_seen", state.samples_seen},
                            {"seed", std::to_string(state.seed)},
                            {"settings", state.settings}});
  if (state.metrics.size() > 0) json.set("metrics", state.metrics);
  json.set("files", std::move(list));
  return json;
}

FileRecord parse_file(const Json& json) {
  FileRecord file{.name = json.get<std::string>("name"),
                  .size_bytes = static_cast<std::uint64_t>(parse_count(json, "size_bytes")),
                  .content_hash = parse_hash(json, "xxh3")};
  if (!is_checkpoint_file_name(file.name))
    bad("the file name '{}' is not allowed", printable(file.name));
  return file;
}

void check_format(const Json& json) {
  const auto format = json.get<std::int64_t>("format");
  if (format == kCheckpointFormat) return;
  const std::string_view advice = format > kCheckpointFormat
                                      ? "a newer trainscope wrote it: use that version"
                                      : "the number must be 1 or more";
  throw Error(ErrorCode::kBadInput,
              fmt::format("checkpoint format {}: this program reads {}", format, kCheckpointFormat))
      .hint(std::string(advice));
}

// What is hashed is what is read later: the file is opened once.
SafetensorsFile open_file(const Folder& folder, const FileRecord& record) {
  const std::string file_name = record.name + std::string(kTensorFileEnding);
  if (!folder.has_file(file_name)) bad("{} is missing", file_name);
  MappedFile mapped = MappedFile::open(folder / file_name);
  if (mapped.size_bytes() != record.size_bytes) {
    bad("{} has {} bytes, the manifest says {}", file_name, mapped.size_bytes(), record.size_bytes);
  }
  if (hash_bytes(mapped.bytes()) != record.content_hash) {
    bad("{} is damaged: its hash is not that of the manifest", file_name);
  }
  return SafetensorsFile::open(std::move(mapped));
}

Checkpoint read_checkpoint(const Folder& folder, std::string_view name) {
  if (!folder.has_file(kManifestFile)) {
    bad("{} is missing: the checkpoint was never completed", kManifestFile);
  }
  CheckpointManifest manifest =
      parse_manifest(read_file(folder / kManifestFile, kMaxManifestBytes));
  if (name != checkpoint_name(manifest.state.step)) {
    bad("it is damaged or was renamed: its manifest is of step {}, so its folder's name is {}",
        manifest.state.step, checkpoint_name(manifest.state.step));
  }
  Checkpoint checkpoint{.folder = folder.path(), .state = std::move(manifest.state), .files = {}};
  for (const FileRecord& record : manifest.files) {
    const bool added = checkpoint.files.emplace(record.name, open_file(folder, record)).second;
    if (!added) bad("the manifest lists {} twice", record.name);
  }
  return checkpoint;
}

}  // namespace

bool is_checkpoint_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

std::string manifest_text(const CheckpointState& state, const std::vector<FileRecord>& files) {
  Json json = manifest_json(state, files);
  const std::string hash = hash_hex(hash_text(json.dump()));
  json.set(std::string(kHashKey), hash);
  return json.dump(kIndent) + "\n";
}

CheckpointManifest parse_manifest(std::string_view text) {
  const Json json = Json::parse(text);
  if (!json.is_object()) bad("expected an object, found {}", name_of(json.type()));
  check_format(json);
  CheckpointManifest manifest;
  manifest.state = {.step = parse_count(json, "step"),
                    .samples_seen = parse_count(json, "samples_seen"),
                    .seed = parse_seed(json),
                    .settings = json.object_at("settings"),
                    .metrics = Json::object()};
  if (json.contains("metrics")) manifest.state.metrics = json.object_at("metrics");
  for (const Json& file : json.array_at("files")) manifest.files.push_back(parse_file(file));
  // Written again it must be the same text: then every byte of it is under its own hash.
  if (manifest_text(manifest.state, manifest.files) != text) {
    bad("it is damaged or was edited: its hash does not match");
  }
  return manifest;
}

Checkpoint load_checkpoint(const Folder& root, std::string_view name) {
  const std::string folder = printable((root.path() / name).string());
  if (!root.has_folder(name)) {
    fail(ErrorCode::kBadInput, "checkpoint '{}': there is no such folder", folder);
  }
  try {
    return read_checkpoint(root.enter(name), name);
  } catch (const Error& error) {
    Error named(error.code(), fmt::format("checkpoint '{}': {}", folder, error.message()));
    named.hint(error.hint());
    for (const std::string& where : error.context()) named.at(where);
    throw named;
  }
}

Checkpoint load_checkpoint(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || !folder_exists(real)) {
    fail(ErrorCode::kBadInput, "checkpoint '{}': there is no such folder",
         printable(folder.string()));
  }
  return load_checkpoint(Folder::open(real.parent_path()), real.filename().native());
}

}  // namespace trainscope
