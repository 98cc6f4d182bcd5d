// zlib's inflate behind our own errors.
#include "datasets/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "engine/core/error.h"

namespace trainscope {
namespace {

constexpr std::size_t kMaxPiece = std::numeric_limits<uInt>::max();

// zlib's word for the form of a stream.
int window_bits(CompressedForm form) {
  return form == CompressedForm::kGzip ? 16 + MAX_WBITS : -MAX_WBITS;
}

}  // namespace

struct Inflater::State {
  State(SharedBytes bytes, CompressedForm form, std::string file)
      : compressed(std::move(bytes)), left(compressed.bytes()), name(std::move(file)) {
    const int result = inflateInit2(&stream, window_bits(form));
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    CHECK_INVARIANT(result == Z_OK);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&stream); }

  // Gives zlib its next input; none when there is no more.
  void feed() {
    if (stream.avail_in > 0) return;
    const std::size_t piece = std::min(left.size(), kMaxPiece);
    // zlib does not write through it, but its field is not const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left.data()));
    stream.avail_in = static_cast<uInt>(piece);
    left = left.subspan(piece);
  }

  void check_end() const {
    const std::size_t more = stream.avail_in + left.size();
    require(more == 0, ErrorCode::kBadInput, "'{}': {} bytes follow the compressed data", name,
            more);
  }

  SharedBytes compressed;
  std::span<const std::byte> left;
  std::string name;
  z_stream stream{};
  bool ended = false;
};

Inflater::Inflater(SharedBytes compressed, CompressedForm form, std::string name)
    : state_(std::make_unique<State>(std::move(compressed), form, std::move(name))) {}
Inflater::Inflater(Inflater&&) noexcept = default;
Inflater& Inflater::operator=(Inflater&&) noexcept = default;
Inflater::~Inflater() = default;

std::size_t Inflater::read(std::span<std::byte> into) {
  State& state = *state_;
  std::size_t done = 0;
  while (done < into.size() && !state.ended) {
    state.feed();
    const std::size_t room = std::min(into.size() - done, kMaxPiece);
    state.stream.next_out = reinterpret_cast<Bytef*>(into.data() + done);
    state.stream.avail_out = static_cast<uInt>(room);
    const int result = inflate(&state.stream, Z_NO_FLUSH);
    done += room - state.stream.avail_out;
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    require(result != Z_BUF_ERROR, ErrorCode::kBadInput, "'{}': the compressed data end too early",
            state.name);
    require(result == Z_OK || result == Z_STREAM_END, ErrorCode::kBadInput,
            "'{}': the compressed data are damaged ({})", state.name,
            state.stream.msg == nullptr ? "no dictionary" : state.stream.msg);
    state.ended = result == Z_STREAM_END;
    if (state.ended) state.check_end();
  }
  return done;
}

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace trainscope
