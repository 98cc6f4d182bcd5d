// Files and folders: read, map, write atomically, append. Errors are kIo and name the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/folder.h"
#include "engine/core/system/file_calls.h"

namespace trainscope {

// Files are regular files: folders, FIFOs and devices are refused, here and below. Paths may lead
// over links, entries of open folders are no links (engine/core/folder.h).
// The whole content; kIo when missing or unreadable, kBadInput beyond max_bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes);
std::string read_file(const FolderEntry& entry, std::uint64_t max_bytes);

// A regular file mapped for reading.
class MappedFile {
 public:
  static MappedFile open(const std::filesystem::path& path);
  static MappedFile open(const FolderEntry& entry);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Empty for an empty file. Touching bytes beyond the end of a file that another process has cut
  // short since ends the process (SIGBUS): where that matters, copy with `read`.
  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  const std::filesystem::path& path() const { return path_; }

  // Copies from `offset` on; kIo when the file is too short by now.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  friend MappedFile open_inside(const std::filesystem::path&, std::string_view);
  MappedFile(FileDescriptor fd, std::filesystem::path path);
  void unmap();

  FileDescriptor fd_;
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// Opens a file that another file names (ONNX external data) and that must lie inside `root`:
// kBadInput for an absolute path, "..", an embedded NUL, a symbolic link at any component below
// root, a file that is not regular or that has further hard links; kIo when missing. Each component
// is opened relative to the one before without following links, and what was checked is what is
// returned, so that nothing can be swapped in between.
MappedFile open_inside(const std::filesystem::path& root, std::string_view relative);

// Writes to a temporary file in the same folder; commit() makes it durable and puts it in place of
// the old one in one step. Without commit, or when anything fails, the old file stays and the
// temporary file goes. A path that is a symbolic link to a file keeps pointing to it: the file
// behind it is replaced.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path, const FileCalls& calls = system_calls())
      : AtomicFile(entry_of(path), calls) {}
  explicit AtomicFile(FolderEntry entry, const FileCalls& calls = system_calls());
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  std::uint64_t written_bytes() const { return written_bytes_; }
  void commit();

 private:
  void flush();

  const FileCalls& calls_;
  FolderEntry entry_;
  std::string temporary_;  // its name; empty when it has got its own
  FileDescriptor fd_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_bytes_ = 0;
};

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomic(const std::filesystem::path& path, std::string_view text);
void write_file_atomic(const FolderEntry& entry, std::string_view text,
                       const FileCalls& calls = system_calls());

// Whether an AtomicFile writes under this name. A process that is killed leaves such files.
bool is_temporary_name(std::string_view name);
// Removes what killed processes left (a link itself); nobody else may be writing into the folder.
void remove_temporary_files(const Folder& folder);

// Appends lines, each with one write, so that a reader sees whole lines. A line that a crash cut
// short at the end of an existing file is removed on opening. kBadInput for a file that has further
// hard links: those would change too.
class AppendFile {
 public:
  explicit AppendFile(const FolderEntry& entry);

  // Adds the line end; `line` holds none.
  void write_line(std::string_view line);
  // Bytes as they are, for records that are no lines: a new file's, because opening one that is
  // there cuts it to whole lines.
  void write(std::string_view bytes);
  // Waits until the lines are on the disk.
  void sync();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  FileDescriptor fd_;
};

// False also when it cannot be seen (permission). Not named as in std::filesystem, whose functions
// a call with a path finds too.
bool path_exists(const std::filesystem::path& path);
bool folder_exists(const std::filesystem::path& path);
// With parents; no error when it is there.
void make_directories(const std::filesystem::path& path);
// Names of the entries, sorted, without "." and "..".
std::vector<std::string> list_directory(const std::filesystem::path& path);

}  // namespace trainscope
