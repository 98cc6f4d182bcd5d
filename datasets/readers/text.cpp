// From the characters of a text to ids.
#include "datasets/readers/text.h"

#include <cstdint>
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

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{8} << 30;

}  // namespace

std::string read_text(const std::string& file) {
  std::string text = read_file(file, kMaxTextBytes);
  require(!text.empty(), ErrorCode::kBadInput, "'{}' is empty", printable(file));
  return text;
}

std::unique_ptr<Dataset> open_text(const DataSpec& spec, const DatasetOptions& options) {
  WindowPlan plan = plan_windows(spec, options);
  const std::string text = read_text(spec.file());
  Vocabulary vocabulary;
  std::vector<std::uint16_t> ids;
  try {
    vocabulary = options.vocabulary ? *options.vocabulary : Vocabulary::of(text);
    ids = vocabulary.encode(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'{}': {}", printable(spec.file()), error.message()))
        .hint(error.hint());
  }
  check_vocabulary(spec, options, vocabulary.size(),
                   fmt::format("has {} distinct characters", vocabulary.size()));
  Json description = Json::object({{"kind", spec.format},
                                   {"file", spec.file()},
                                   {"size_bytes", text.size()},
                                   {"xxh3", hash_hex(hash_bytes(std::as_bytes(std::span(text))))},
                                   {"vocabulary", vocabulary.to_json()}});
  return make_windows(spec, options, std::move(plan),
                      {.ids = std::make_unique<StoredIds<std::uint16_t>>(std::move(ids)),
                       .unit = "characters",
                       .description = std::move(description)});
}

DataFormat text_format() {
  return {.name = "text",
          .form = "text:FILE[,validation=FRACTION]",
          .endings = {".txt"},
          .open = open_text};
}

}  // namespace trainscope
