// Token files: header, check of every id, windows read from the file.
#include "datasets/readers/tokens.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "datasets/format.h"
#include "datasets/readers/windows.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

static_assert(std::endian::native == std::endian::little, "ids are read as they are stored");

constexpr std::size_t kHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::size_t kScanTokens = std::size_t{1} << 16;

struct HeaderRow {
  std::int32_t magic;
  std::int32_t version;
  std::size_t width_bytes;
};

constexpr HeaderRow kHeaders[] = {{20240520, 1, 2}, {20240801, 7, 4}};

// Where the ids are.
struct Layout {
  std::uint64_t first_byte = 0;
  std::size_t width_bytes = 2;
  std::int64_t tokens = 0;
};

std::string dtype_of(std::size_t width_bytes) { return width_bytes == 2 ? "uint16" : "uint32"; }

const HeaderRow* find_header(const MappedFile& file) {
  std::int32_t magic = 0;
  if (file.size_bytes() < sizeof magic) return nullptr;
  file.read(0, std::as_writable_bytes(std::span(&magic, 1)));
  const auto row = std::ranges::find(kHeaders, magic, &HeaderRow::magic);
  return row == std::end(kHeaders) ? nullptr : row;
}

Layout layout_after_header(const std::string& name, const MappedFile& file, const HeaderRow& row) {
  require(file.size_bytes() >= kHeaderBytes, ErrorCode::kBadInput,
          "'{}' has {} bytes: llm.c's header has {}", name, file.size_bytes(), kHeaderBytes);
  std::array<std::int32_t, 3> header{};
  file.read(0, std::as_writable_bytes(std::span(header)));
  require(header[1] == row.version, ErrorCode::kBadInput,
          "'{}' is an llm.c file of version {}: expected {} after the magic number {}", name,
          header[1], row.version, row.magic);
  const std::uint64_t bytes = file.size_bytes() - kHeaderBytes;
  const auto tokens = static_cast<std::int64_t>(header[2]);
  require(tokens >= 0 && static_cast<std::uint64_t>(tokens) * row.width_bytes == bytes,
          ErrorCode::kBadInput, "'{}': its header counts {} tokens of {} bytes, {} bytes follow",
          name, tokens, row.width_bytes, bytes);
  return {.first_byte = kHeaderBytes, .width_bytes = row.width_bytes, .tokens = tokens};
}

// 0 when the option was not given.
std::size_t wanted_width(const DataSpec& spec) {
  const std::string dtype = spec.option("dtype", "");
  if (dtype.empty()) return 0;
  if (dtype == "uint16") return 2;
  if (dtype == "uint32") return 4;
  throw Error(ErrorCode::kUsage, fmt::format("data '{}': option 'dtype' is '{}'",
                                             printable(spec.text), printable(dtype)))
      .hint("it is uint16 or uint32");
}

Layout find_layout(const DataSpec& spec, const MappedFile& file) {
  const std::string name = printable(spec.file());
  const std::size_t wanted = wanted_width(spec);
  const HeaderRow* header = find_header(file);
  if (header != nullptr) {
    const Layout layout = layout_after_header(name, file, *header);
    require(wanted == 0 || wanted == layout.width_bytes, ErrorCode::kUsage,
            "data '{}': the header of the file says {}", printable(spec.text),
            dtype_of(layout.width_bytes));
    return layout;
  }
  const std::size_t width = wanted == 0 ? 2 : wanted;
  if (file.size_bytes() % width != 0) {
    throw Error(ErrorCode::kBadInput, fmt::format("'{}' has {} bytes: no whole number of {} ids",
                                                  name, file.size_bytes(), dtype_of(width)))
        .hint("the file was cut short, or its ids have another width (dtype=uint16|uint32)");
  }
  return {.first_byte = 0,
          .width_bytes = width,
          .tokens = static_cast<std::int64_t>(file.size_bytes() / width)};
}

class FileIds final : public TokenIds {
 public:
  FileIds(MappedFile file, Layout layout, std::uint32_t largest)
      : file_(std::move(file)), layout_(layout), largest_(largest) {}

  std::int64_t size() const override { return layout_.tokens; }

  // Copied by system calls: another process that cuts the file short gives an error then, where
  // touching the mapping would end this one.
  void read(std::int64_t begin, std::span<std::uint32_t> into) const override {
    const std::uint64_t byte =
        layout_.first_byte + static_cast<std::uint64_t>(begin) * layout_.width_bytes;
    std::byte* data = std::as_writable_bytes(into).data();
    // Narrow ids go to the end of the room and are upcast from there on forwards.
    const std::size_t bytes = into.size() * layout_.width_bytes;
    std::byte* stored = data + into.size_bytes() - bytes;
    file_.read(byte, {stored, bytes});
    for (std::size_t i = 0; i < into.size(); ++i) {
      std::uint32_t id = 0;
      std::memcpy(&id, stored + i * layout_.width_bytes, layout_.width_bytes);
      into[i] = id;
      check(begin + static_cast<std::int64_t>(i), id);
    }
  }

 private:
  void check(std::int64_t position, std::uint32_t id) const {
    if (id <= largest_) return;
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}': token {} is {}: expected 0 to {}",
                            printable(file_.path().string()), position, id, largest_))
        .hint("use a model with a larger vocabulary, or check the dtype of the file");
  }

  MappedFile file_;
  Layout layout_;
  std::uint32_t largest_;
};

// The largest id that the model takes.
std::uint32_t largest_id(const WindowPlan& plan) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const bool narrow = plan.ids->dtype == DType::kI32;
  if (plan.bound > 0) return static_cast<std::uint32_t>(std::min(plan.bound - 1, kMost));
  return narrow ? static_cast<std::uint32_t>(kMost) : std::numeric_limits<std::uint32_t>::max();
}

// Reads every id once, so that a bad one ends the run before its first step, and gives the hash of
// the ids.
std::uint64_t scan(const TokenIds& ids) {
  std::vector<std::uint32_t> some(kScanTokens);
  Hasher hasher;
  for (std::int64_t done = 0; done < ids.size();) {
    const std::int64_t left = ids.size() - done;
    const std::size_t count = std::min(some.size(), static_cast<std::size_t>(left));
    ids.read(done, std::span(some).first(count));
    hasher.bytes(std::as_bytes(std::span(some).first(count)));
    done += static_cast<std::int64_t>(count);
  }
  return hasher.digest();
}

}  // namespace

std::unique_ptr<Dataset> open_tokens(const DataSpec& spec, const DatasetOptions& options) {
  WindowPlan plan = plan_windows(spec, options);
  MappedFile file = MappedFile::open(spec.file());
  require(file.size_bytes() > 0, ErrorCode::kBadInput, "'{}' is empty", printable(spec.file()));
  const Layout layout = find_layout(spec, file);
  const std::uint64_t size_bytes = file.size_bytes();
  auto ids = std::make_unique<FileIds>(std::move(file), layout, largest_id(plan));
  const std::uint64_t hash = scan(*ids);
  Json description = Json::object({{"kind", spec.format},
                                   {"file", spec.file()},
                                   {"size_bytes", size_bytes},
                                   {"dtype", dtype_of(layout.width_bytes)},
                                   {"xxh3", hash_hex(hash)}});
  return make_windows(
      spec, options, std::move(plan),
      {.ids = std::move(ids), .unit = "tokens", .description = std::move(description)});
}

DataFormat tokens_format() {
  return {.name = "tokens",
          .form = "tokens:FILE[,dtype=uint16|uint32,validation=FRACTION]",
          .options = {"dtype", "validation"},
          .endings = {".bin"},
          .open = open_tokens};
}

}  // namespace trainscope
