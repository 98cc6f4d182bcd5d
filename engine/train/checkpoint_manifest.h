// manifest.json of a checkpoint: which files belong to it, and what they must hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/train/checkpoint.h"

namespace trainscope {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kTensorFileEnding = ".safetensors";

struct FileRecord {
  std::string name;  // without the ending
  std::uint64_t size_bytes = 0;
  std::uint64_t content_hash = 0;
};

struct CheckpointManifest {
  CheckpointState state;
  std::vector<FileRecord> files;
};

// Lower-case letters, digits, '-' and '_': nothing that could lead out of the folder.
bool is_checkpoint_file_name(std::string_view name);

// The whole content of manifest.json, which ends with a hash of itself.
std::string manifest_text(const CheckpointState& state, const std::vector<FileRecord>& files);
// Throws kBadInput with the reason. Any changed byte is one.
CheckpointManifest parse_manifest(std::string_view text);

}  // namespace trainscope
