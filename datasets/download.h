// One transfer over HTTP into a file.
#pragma once

#include <cstdint>
#include <string>

#include "engine/core/file.h"

namespace trainscope {

struct DownloadRequest {
  std::string url;
  std::uint64_t first_byte = 0;     // what the file holds already; the rest is asked for
  std::uint64_t max_bytes = 0;      // of the whole file; more ends the transfer
  std::int64_t stall_seconds = 30;  // of connecting, and of less than 1 KiB a second
};

struct DownloadResult {
  bool complete = false;
  std::string problem = {};      // why not
  std::uint64_t size_bytes = 0;  // of the file now
};

// Appends to the file, or begins it anew when the server does not resume. https is followed to
// https alone; http is used only where the URL itself says so. Throws kIo when the file cannot be
// written.
DownloadResult download(const DownloadRequest& request, const FileDescriptor& file);

}  // namespace trainscope
