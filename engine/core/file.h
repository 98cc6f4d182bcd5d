// Files and folders: read, map, write atomically, append. Errors are kIo and name the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/file_calls.h"

namespace trainscope {

// Owner of a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

// Files are regular files: folders, FIFOs and devices are refused, here and below.
// The whole content; kIo when missing or unreadable, kBadInput beyond max_bytes.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

// A regular file mapped for reading.
class MappedFile {
 public:
  static MappedFile open(const std::filesystem::path& path);
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
// `path` in one step. Without commit, or when anything fails, the old file stays and the temporary
// file goes. A symbolic link to a file keeps pointing to it: the file behind it is replaced.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path, const FileCalls& calls = system_calls());
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
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor fd_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_bytes_ = 0;
};

void write_file_atomic(const std::filesystem::path& path, std::span<const std::byte> bytes,
                       const FileCalls& calls = system_calls());
void write_file_atomic(const std::filesystem::path& path, std::string_view text,
                       const FileCalls& calls = system_calls());

// Appends lines, each with one write, so that a reader sees whole lines. A line that a crash cut
// short at the end of an existing file is removed on opening.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);

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
void make_directories(const std::filesystem::path& path, const FileCalls& calls = system_calls());
// Names of the entries, sorted, without "." and "..".
std::vector<std::string> list_directory(const std::filesystem::path& path);
// Removes a file or folder with all it holds; links are removed, not followed. `path` must lie
// strictly inside `root` (an invariant of the caller's, checked). No error when it is not there.
void remove_tree(const std::filesystem::path& root, const std::filesystem::path& path);
// Renames a folder (or file) and makes the renaming durable; fails when `to` holds something.
void rename_directory(const std::filesystem::path& from, const std::filesystem::path& to,
                      const FileCalls& calls = system_calls());
// Makes creations, renamings and removals in a folder durable.
void fsync_directory(const std::filesystem::path& path, const FileCalls& calls = system_calls());

}  // namespace trainscope
