// From JSON lines and a tokenizer to ids.
#include "datasets/readers/jsonl.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/format.h"
#include "datasets/readers/text.h"
#include "datasets/readers/windows.h"
#include "datasets/tokenizer/tokenizer_json.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// The token that ends each text.
std::optional<std::uint32_t> end_token(const DataSpec& spec, const JsonTokenizer& tokenizer) {
  const std::string end = spec.option("end", "");
  if (end == "none") return std::nullopt;
  if (!end.empty()) {
    const std::optional<std::uint32_t> id = tokenizer.added_token(end);
    if (!id) {
      throw Error(ErrorCode::kUsage, fmt::format("data '{}': the tokenizer has no added token '{}'",
                                                 printable(spec.text), printable(end)))
          .hint("end=none puts nothing between texts");
    }
    return id;
  }
  for (const std::string_view usual : {"<|endoftext|>", "</s>", "<|end_of_text|>"}) {
    if (const std::optional<std::uint32_t> id = tokenizer.added_token(usual)) return id;
  }
  return std::nullopt;
}

std::string text_of_line(std::string_view line, const std::string& field) {
  const Json json = Json::parse(line);
  require(json.is_object(), ErrorCode::kBadInput, "expected an object, found {}",
          name_of(json.type()));
  const Json* text = json.find(field);
  if (text == nullptr || !text->is_string()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' is {}", printable(field),
                            text == nullptr ? "missing" : name_of(text->type())))
        .hint("field=NAME says which member is the text");
  }
  return text->as_string();
}

std::vector<std::uint32_t> ids_of(const DataSpec& spec, const std::string& content,
                                  const JsonTokenizer& tokenizer,
                                  std::optional<std::uint32_t> end) {
  const std::string field = spec.option("field", "text");
  std::vector<std::uint32_t> ids;
  BpeTokenizer::KnownPieces known;
  std::size_t number = 0;
  for (std::string_view line : split(content, '\n')) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      const std::vector<std::uint32_t> found = tokenizer.encode(text_of_line(line, field), known);
      ids.insert(ids.end(), found.begin(), found.end());
    } catch (const Error& error) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("'{}' line {}: {}", printable(spec.file()), number, error.message()))
          .hint(error.hint());
    }
    if (end) ids.push_back(*end);
  }
  return ids;
}

}  // namespace

std::unique_ptr<Dataset> open_jsonl(const DataSpec& spec, const DatasetOptions& options) {
  WindowPlan plan = plan_windows(spec, options);
  const std::string& tokenizer_file = spec.files[1];
  const JsonTokenizer tokenizer = JsonTokenizer::read(tokenizer_file);
  check_vocabulary(spec, options, tokenizer.size(), fmt::format("has {} tokens", tokenizer.size()));
  const std::string content = read_text(spec.file());
  const std::optional<std::uint32_t> end = end_token(spec, tokenizer);
  std::vector<std::uint32_t> ids = ids_of(spec, content, tokenizer, end);
  Json description = Json::object(
      {{"kind", spec.format},
       {"file", Json::list(spec.files)},
       {"field", spec.option("field", "text")},
       {"end", end ? Json(static_cast<std::int64_t>(*end)) : Json()},
       {"size_bytes", content.size()},
       {"xxh3", hash_hex(hash_bytes(std::as_bytes(std::span(content))))},
       {"tokenizer_xxh3", hash_hex(hash_bytes(MappedFile::open(tokenizer_file).bytes()))},
       {"vocabulary_size", tokenizer.size()}});
  return make_windows(spec, options, std::move(plan),
                      {.ids = std::make_unique<StoredIds<std::uint32_t>>(std::move(ids)),
                       .unit = "tokens",
                       .description = std::move(description)});
}

DataFormat jsonl_format() {
  return {.name = "jsonl",
          .form = "jsonl:FILE,TOKENIZER.json[,field=text,end=TOKEN|none,validation=FRACTION]",
          .files = 2,
          .options = {"validation", "field", "end"},
          .endings = {".jsonl", ".ndjson"},
          .open = open_jsonl};
}

}  // namespace trainscope
