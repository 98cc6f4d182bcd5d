// libcurl behind one function; this file alone includes it.
#include "datasets/download.h"

#include <curl/curl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr long kMaxRedirects = 5;
constexpr long kSlowBytesPerSecond = 1024;
constexpr long kPartialContent = 206;
constexpr long kRangeNotSatisfiable = 416;

// What the callback of a transfer keeps.
struct Transfer {
  CURL* handle = nullptr;
  int fd = -1;
  std::uint64_t first_byte = 0;
  std::uint64_t max_bytes = 0;
  std::uint64_t written_bytes = 0;
  bool begun = false;
  bool too_large = false;
  int write_error = 0;  // errno
};

bool begin_file(Transfer& transfer) {
  long code = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &code);
  transfer.begun = true;
  transfer.written_bytes = code == kPartialContent ? transfer.first_byte : 0;
  const auto size = static_cast<off_t>(transfer.written_bytes);
  return ftruncate(transfer.fd, size) == 0 && lseek(transfer.fd, size, SEEK_SET) == size;
}

bool write_bytes(int fd, const char* data, std::size_t count) {
  while (count > 0) {
    const ssize_t done = write(fd, data, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    count -= static_cast<std::size_t>(done);
  }
  return true;
}

// Called by C: throws nothing. Another number than the one given ends the transfer.
std::size_t receive(char* data, std::size_t /*one*/, std::size_t count, void* user) noexcept {
  Transfer& transfer = *static_cast<Transfer*>(user);
  if (!transfer.begun && !begin_file(transfer)) {
    transfer.write_error = errno;
    return 0;
  }
  if (count > transfer.max_bytes - transfer.written_bytes) {
    transfer.too_large = true;
    return 0;
  }
  if (!write_bytes(transfer.fd, data, count)) {
    transfer.write_error = errno;
    return 0;
  }
  transfer.written_bytes += count;
  return count;
}

struct Cleanup {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, Cleanup>;

void set_limits(CURL* handle, const DownloadRequest& request) {
  const long seconds = static_cast<long>(request.stall_seconds);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, seconds);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, seconds);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "https");
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, kMaxRedirects);
}

std::string problem_of(CURL* handle, CURLcode code, const char* details, const Transfer& transfer) {
  if (transfer.too_large) return fmt::format("it sends more than {} bytes", transfer.max_bytes);
  if (code == CURLE_UNSUPPORTED_PROTOCOL) {
    long redirects = 0;
    const char* target = nullptr;
    curl_easy_getinfo(handle, CURLINFO_REDIRECT_COUNT, &redirects);
    curl_easy_getinfo(handle, CURLINFO_EFFECTIVE_URL, &target);
    return redirects == 0 ? "only https and http can be fetched"
                          : fmt::format("it redirects to '{}': only https is followed",
                                        printable(target == nullptr ? "" : target));
  }
  if (code == CURLE_HTTP_RETURNED_ERROR) {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return fmt::format("it answers {}", status);
  }
  if (code == CURLE_OPERATION_TIMEDOUT) return fmt::format("it stalls: {}", printable(details));
  return printable(*details == '\0' ? curl_easy_strerror(code) : details);
}

}  // namespace

DownloadResult download(const DownloadRequest& request, const FileDescriptor& file) {
  const Handle handle(curl_easy_init());
  require(handle != nullptr, ErrorCode::kRunFailed, "libcurl cannot be initialised");
  Transfer transfer{.handle = handle.get(),
                    .fd = file.get(),
                    .first_byte = request.first_byte,
                    .max_bytes = request.max_bytes,
                    .written_bytes = request.first_byte};
  std::array<char, CURL_ERROR_SIZE> details{};
  const std::string range = fmt::format("{}-", request.first_byte);
  curl_easy_setopt(handle.get(), CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_USERAGENT, "trainscope");
  curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, details.data());
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &transfer);
  if (request.first_byte > 0) curl_easy_setopt(handle.get(), CURLOPT_RANGE, range.c_str());
  set_limits(handle.get(), request);
  const CURLcode code = curl_easy_perform(handle.get());
  if (transfer.write_error != 0) {
    fail(ErrorCode::kIo, "cannot write what '{}' sends: {}", printable(request.url),
         std::generic_category().message(transfer.write_error));
  }
  DownloadResult result{.complete = code == CURLE_OK, .size_bytes = transfer.written_bytes};
  if (result.complete) return result;
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == kRangeNotSatisfiable && request.first_byte > 0) {
    // What is there is not the beginning of what the server has.
    DownloadRequest anew = request;
    anew.first_byte = 0;
    return download(anew, file);
  }
  result.problem = problem_of(handle.get(), code, details.data(), transfer);
  return result;
}

}  // namespace trainscope
