// zlib's deflate in gzip's form.
#include "profiler/formats/text_sink.h"

#include <zlib.h>

#include <array>
#include <utility>

#include "engine/core/error.h"

namespace trainscope::profiler {

struct GzipText::Stream {
  z_stream z = {};
  std::array<char, 1U << 16U> out;
};

GzipText::GzipText(WriteText write)
    : write_(std::move(write)), stream_(std::make_unique<Stream>()) {
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemory = 8;
  const int code = ::deflateInit2(&stream_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow,
                                  kMemory, Z_DEFAULT_STRATEGY);
  require(code == Z_OK, ErrorCode::kOutOfMemory, "there is no memory to compress with");
}

GzipText::~GzipText() { ::deflateEnd(&stream_->z); }

void GzipText::run(int flush) {
  z_stream& z = stream_->z;
  int code = Z_OK;
  do {
    z.next_out = reinterpret_cast<Bytef*>(stream_->out.data());
    z.avail_out = static_cast<uInt>(stream_->out.size());
    code = ::deflate(&z, flush);
    CHECK_INVARIANT(code != Z_STREAM_ERROR);
    write_({stream_->out.data(), stream_->out.size() - z.avail_out});
  } while (z.avail_out == 0 || (flush == Z_FINISH && code != Z_STREAM_END));
}

void GzipText::add(std::string_view text) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;  // z_stream counts in 32 bits
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, kMost);
    // zlib does not write through it, but its field is not const.
    stream_->z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_->z.avail_in = static_cast<uInt>(piece.size());
    run(Z_NO_FLUSH);
    text.remove_prefix(piece.size());
  }
}

void GzipText::finish() { run(Z_FINISH); }

}  // namespace trainscope::profiler
