// From a text and two vocabulary files to ids.
#include "datasets/readers/bpe.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/bpe.h"
#include "datasets/format.h"
#include "datasets/readers/text.h"
#include "datasets/readers/windows.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string content_hash(std::span<const std::byte> bytes) { return hash_hex(hash_bytes(bytes)); }

std::string file_hash(const std::string& file) {
  return content_hash(MappedFile::open(file).bytes());
}

}  // namespace

std::unique_ptr<Dataset> open_bpe(const DataSpec& spec, const DatasetOptions& options) {
  WindowPlan plan = plan_windows(spec, options);
  const std::string& vocabulary_file = spec.files[1];
  const std::string& merges_file = spec.files[2];
  const BpeTokenizer tokenizer = BpeTokenizer::read(vocabulary_file, merges_file);
  check_vocabulary(spec, options, tokenizer.size(), fmt::format("has {} tokens", tokenizer.size()));
  const std::string text = read_text(spec.file());
  std::vector<std::uint32_t> ids;
  try {
    ids = tokenizer.encode(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'{}': {}", printable(spec.file()), error.message()));
  }
  Json description = Json::object({{"kind", spec.format},
                                   {"file", Json::list(spec.files)},
                                   {"size_bytes", text.size()},
                                   {"xxh3", content_hash(std::as_bytes(std::span(text)))},
                                   {"vocabulary_xxh3", file_hash(vocabulary_file)},
                                   {"merges_xxh3", file_hash(merges_file)},
                                   {"vocabulary_size", tokenizer.size()}});
  return make_windows(spec, options, std::move(plan),
                      {.ids = std::make_unique<StoredIds<std::uint32_t>>(std::move(ids)),
                       .unit = "tokens",
                       .description = std::move(description)});
}

DataFormat bpe_format() {
  return {.name = "bpe",
          .form = "bpe:FILE,VOCAB.json,MERGES.txt[,validation=FRACTION]",
          .files = 3,
          .open = open_bpe};
}

}  // namespace trainscope
