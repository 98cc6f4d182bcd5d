// Texts of JSON lines, tokenized.
#pragma once

#include <memory>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// A JSON object a line, whose member `field` ("text") is a text; empty lines do not count. Each
// text is encoded by the tokenizer (tokenizer_json.h) and ends with the token `end`, by default the
// added token <|endoftext|>, </s> or <|end_of_text|>, the first of them that the tokenizer has;
// end=none: no token. Examples are windows (windows.h) of all texts one after the other.
std::unique_ptr<Dataset> open_jsonl(const DataSpec& spec, const DatasetOptions& options);

}  // namespace trainscope
