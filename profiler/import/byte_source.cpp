// zlib's inflate in gzip's form.
#include "profiler/import/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "engine/core/error.h"

namespace trainscope::profiler {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

class Plain {
 public:
  explicit Plain(SharedBytes file) : file_(std::move(file)), left_(file_.bytes()) {}

  std::string_view operator()() {
    const auto piece = left_.first(std::min(left_.size(), kPiece));
    left_ = left_.subspan(piece.size());
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }

 private:
  SharedBytes file_;
  std::span<const std::byte> left_;
};

class Gunzip {
 public:
  explicit Gunzip(SharedBytes file) : shared_(std::move(file)), file_(shared_.bytes()) {
    constexpr int kGzipWindow = 15 + 16;
    require(::inflateInit2(&z_, kGzipWindow) == Z_OK, ErrorCode::kOutOfMemory,
            "there is no memory to decompress with");
  }
  ~Gunzip() { ::inflateEnd(&z_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  std::string_view next() {
    while (!ended_) {
      z_.next_out = reinterpret_cast<Bytef*>(out_.data());
      z_.avail_out = static_cast<uInt>(out_.size());
      step();
      const std::size_t made = out_.size() - z_.avail_out;
      made_ += made;
      require(made_ <= kAlwaysExpands || made_ <= kMostExpansion * file_.size(),
              ErrorCode::kBadInput,
              "its {} compressed bytes expand beyond {} bytes: no trace does that", file_.size(),
              made_);
      if (made > 0) return {out_.data(), made};
    }
    return {};
  }

 private:
  void step() {
    if (z_.avail_in == 0) feed();
    const bool no_more = z_.avail_in == 0;
    const int code = ::inflate(&z_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) return end_member();
    const bool is_short = code == Z_BUF_ERROR && no_more;
    require(!is_short, ErrorCode::kBadInput,
            "the compressed data ends in the middle, at byte {}: the file was cut short",
            file_.size());
    require(code == Z_OK || code == Z_BUF_ERROR, ErrorCode::kBadInput,
            "the compressed data is damaged before byte {}: {}", taken_ - z_.avail_in,
            z_.msg == nullptr ? "no gzip stream" : z_.msg);
  }

  void feed() {
    const std::size_t size = std::min(file_.size() - taken_, kPiece);
    // zlib does not write through it, but its field is not const.
    auto* begin = const_cast<std::byte*>(file_.data() + taken_);
    z_.next_in = reinterpret_cast<Bytef*>(begin);
    z_.avail_in = static_cast<uInt>(size);
    taken_ += size;
  }

  // gzip allows several streams, one after the other.
  void end_member() {
    if (z_.avail_in == 0) feed();
    ended_ = z_.avail_in == 0;
    if (!ended_) ::inflateReset(&z_);
  }

  const SharedBytes shared_;
  const std::span<const std::byte> file_;
  z_stream z_ = {};
  std::size_t taken_ = 0;   // given to zlib
  std::uint64_t made_ = 0;  // taken from it
  bool ended_ = false;
  std::array<char, kPiece> out_;
};

}  // namespace

ByteSource byte_source(SharedBytes file) {
  constexpr std::array<std::byte, 2> kGzipMagic = {std::byte{0x1F}, std::byte{0x8B}};
  const bool is_packed = file.size() >= 2 && std::ranges::equal(file.bytes().first(2), kGzipMagic);
  if (!is_packed) return Plain(std::move(file));
  return [gunzip = std::make_shared<Gunzip>(std::move(file))] { return gunzip->next(); };
}

}  // namespace trainscope::profiler
