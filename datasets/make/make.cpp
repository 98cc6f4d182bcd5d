// The list of makers.
#include "datasets/make/make.h"

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {

const std::vector<MakerRow>& makers() {
  static const std::vector<MakerRow> kMakers = {
      {"mnist", "drawn digits of 28x28 as IDX files with MNIST's names", 1000, make_digits},
      {"text", "lines of simple sentences", 400, make_text},
      {"bpe", "the text and a byte-pair vocabulary made from it", 400, make_bpe},
      {"tokens", "16-bit tokens without header that mostly follow a rule", 20000, make_tokens},
      {"csv", "four measurements of three kinds of flowers", 300, make_csv},
      {"tensors", "the same as safetensors: x and labels", 300, make_tensors},
  };
  return kMakers;
}

MadeData make_data(std::string_view kind, MakeOptions options) {
  std::vector<std::string_view> names;
  for (const MakerRow& row : makers()) {
    names.push_back(row.name);
    if (row.name != kind) continue;
    if (options.examples == 0) options.examples = row.examples;
    make_directories(options.folder);
    return row.make(options);
  }
  throw Error(ErrorCode::kUsage, fmt::format("data make has no kind '{}'", printable(kind)))
      .hint(nearest_hint(kind, names))
      .hint(fmt::format("the kinds are {}", join(names, ", ")));
}

}  // namespace trainscope
