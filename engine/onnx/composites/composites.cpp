// Finds how an op is written with others.
#include "engine/onnx/composites/composites.h"

#include "engine/core/text.h"

namespace trainscope {
namespace {

const CompositeOp* newest(std::span<const CompositeOp> rows, std::string_view op, int opset) {
  const CompositeOp* found = nullptr;
  for (const CompositeOp& row : rows) {
    if (row.op != op || row.from > opset) continue;
    if (found == nullptr || found->from < row.from) found = &row;
  }
  return found;
}

// Whether `name` is one of the words of `names`.
bool is_among(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

void check_call(const CompositeOp& op, const Composition& c) {
  const SourceNode& node = c.node();
  c.require(std::ssize(node.inputs) <= op.most_inputs, "{} inputs given, the op has {}",
            node.inputs.size(), op.most_inputs);
  c.require(std::ssize(node.outputs) <= op.most_outputs, "{} outputs asked for, the op has {}",
            node.outputs.size(), op.most_outputs);
  for (const auto& [name, value] : node.attributes.map()) {
    c.require_supported(is_among(op.attributes, name), "attribute '{}' is not supported",
                        printable(name));
  }
}

struct OutOfScope {
  std::string_view op;
  std::string_view why;
};

constexpr std::string_view kText = "strings are no numbers to compute with";
constexpr std::string_view kCounted =
    "the shape of its result depends on the data, and all shapes must be known before the run";
constexpr std::string_view kSignal =
    "of signal processing only the Fourier transform (DFT) is done in a model";
constexpr std::string_view kSelection = "it selects boxes after training; leave it to the caller";

constexpr OutOfScope kOutOfScope[] = {
    {"NonZero", kCounted},
    {"Unique", kCounted},
    {"NonMaxSuppression", kSelection},
    {"StringConcat", kText},
    {"StringNormalizer", kText},
    {"StringSplit", kText},
    {"RegexFullMatch", kText},
    {"TfIdfVectorizer", kText},
    {"STFT", kSignal},
    {"MelWeightMatrix", kSignal},
    {"ImageDecoder", "images are decoded when the data is read, not in a model"},
};

struct Advice {
  std::string_view op;
  std::string_view text;
};

constexpr std::string_view kInData = "leave it out of the model and prepare its input in the data";

constexpr Advice kAdvice[] = {
    {"NonZero", "replace what it selects by a mask that is multiplied, or by Where"},
    {"Unique", kInData},
    {"NonMaxSuppression", "export the model without it: what it selects from is what is trained"},
    {"STFT", kInData},
    {"MelWeightMatrix", kInData},
    {"ImageDecoder", kInData},
};

}  // namespace

std::vector<std::span<const CompositeOp>> composite_tables(std::string_view domain) {
  if (domain.empty()) {
    return {elementwise_composites(), norm_composites(),      attention_composites(),
            recurrence_composites(),  recurrent_composites(), fourier_composites(),
            label_loss_composites(),  pool_composites()};
  }
  if (domain != kMicrosoftDomain) return {};
  return {microsoft_composites(), microsoft_attention_composites(),
          microsoft_training_composites()};
}

const CompositeOp* find_composite(std::string_view domain, std::string_view op, int opset) {
  for (const auto& rows : composite_tables(domain)) {
    if (const CompositeOp* found = newest(rows, op, opset)) return found;
  }
  return nullptr;
}

void compose(const CompositeOp& op, Composition& composition) {
  check_call(op, composition);
  op.compose(composition);
  composition.finish();
}

std::string_view out_of_scope(std::string_view domain, std::string_view op) {
  if (domain == "ai.onnx.ml") return "classical machine learning is not trained here";
  if (!domain.empty()) return {};
  for (const OutOfScope& each : kOutOfScope) {
    if (each.op == op) return each.why;
  }
  return {};
}

std::string_view advice_for_missing(std::string_view domain, std::string_view op) {
  if (!domain.empty() && domain != kMicrosoftDomain && domain != "ai.onnx.ml") {
    return "write the op of your own as a function of ONNX's ops in the file (its list of "
           "functions), or replace it by them";
  }
  for (const Advice& each : kAdvice) {
    if (domain.empty() && each.op == op) return each.text;
  }
  return domain.empty() && !out_of_scope(domain, op).empty()
             ? kInData
             : "replace it by ops that docs/ops.md lists";
}

}  // namespace trainscope
