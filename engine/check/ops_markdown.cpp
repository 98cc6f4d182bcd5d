// Writes the op table as Markdown tables, one per domain.
#include "engine/check/ops_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/core/text.h"
#include "engine/onnx/composite_list.h"

namespace trainscope {
namespace {

// In a table cell a bar would begin the next cell.
std::string cell(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string count_text(int least, int most) {
  if (most == kVariadic) return fmt::format("{} or more", least);
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

std::string doc_text(const OpDef& op) {
  if (op.formerly.empty()) return std::string(op.doc);
  return fmt::format("{} Formerly `{}`.", op.doc, op.formerly);
}

std::string attributes_cell(const OpDef& op) {
  std::vector<std::string> pieces;
  for (const AttributeSpec& attribute : op.attributes) {
    const std::string older =
        attribute.formerly.empty() ? "" : fmt::format(", formerly `{}`", attribute.formerly);
    pieces.push_back(fmt::format("`{}`: {}{}", attribute.name, attribute.doc, older));
  }
  return cell(join(pieces, "; "));
}

std::string_view gradient_text(const OpDef& op) {
  if (op.differentiable == Differentiable::kNo) return "none flows";
  if (op.gradient) return "rule";
  return op.decompose ? "by decomposition" : "";
}

// "follow, f32: 1 2": the inputs that stay f32.
std::string precision_cell(const OpDef& op) {
  std::string text;
  switch (op.precision) {
    case Precision::kF32:
      return text;
    case Precision::kLow:
      text = "low";
      break;
    case Precision::kFollow:
      text = "follow";
      break;
    case Precision::kRounded:
      text = "rounded";
      break;
  }
  for (std::size_t i = 0; i < op.f32_inputs.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? ", f32: " : " ", op.f32_inputs[i]);
  }
  return text;
}

// "linear, tiles": of an op with a rule. "no": it works on whole values. Empty: a composite op.
std::string sharding_cell(const OpDef& op) {
  if (!op.traits.sharding) return {};
  const Sharding* sharding = sharding_of(op);
  if (sharding == nullptr) return "no";
  std::vector<std::string> pieces = {"yes"};
  if (sharding->linear) pieces.emplace_back("linear");
  if (sharding->by_examples) pieces.emplace_back("tiles");
  if (sharding->exchanges) pieces.emplace_back("exchanges");
  return join(pieces, ", ");
}

std::string_view rows_text(RowKind rows) {
  switch (rows) {
    case RowKind::kUnstated:
    case RowKind::kOther:
      break;
    case RowKind::kInPlace:
      return "in place";
    case RowKind::kPointwise:
      return "pointwise";
    case RowKind::kQuotient:
      return "quotient";
    case RowKind::kNorm:
      return "norm";
    case RowKind::kView:
      return "view";
    case RowKind::kMatmul:
      return "matmul";
    case RowKind::kLoss:
      return "loss";
    case RowKind::kAttention:
      return "attention";
  }
  return "";
}

std::string_view rematerialize_text(Rematerialize rematerialize) {
  switch (rematerialize) {
    case Rematerialize::kUnstated:
      break;
    case Rematerialize::kLight:
      return "light";
    case Rematerialize::kHeavy:
      return "heavy";
    case Rematerialize::kNorm:
      return "norm";
    case Rematerialize::kOnce:
      return "once";
  }
  return "";
}

// Whether results may take over bytes of inputs, and slices lie inside what they are cut from.
std::string in_place_cell(const OpDef& op) {
  const bool inside = op.traits.ranges && *op.traits.ranges != kNoRanges;
  if (inside) return op.in_place ? "yes, slices" : "slices";
  return op.in_place ? "yes" : "";
}

// "`add` f32 f64, `add.fast` f32": the reference first.
std::string kernels_cell(const OpDef& op, const KernelTable& kernels) {
  if (op.is_view) return "view of input 0";
  std::vector<std::string> names;
  std::map<std::string, std::string> dtypes;
  for (const KernelTable::Row& row : kernels.rows()) {
    if (row.op != op.name) continue;
    const std::string name(row.kernel.name);
    if (!dtypes.contains(name)) names.push_back(name);
    dtypes[name] += fmt::format(" {}", name_of(row.dtype));
  }
  std::vector<std::string> pieces;
  for (const std::string& name : names) pieces.push_back(fmt::format("`{}`{}", name, dtypes[name]));
  if (op.decompose) pieces.emplace_back("decomposed");
  return join(pieces, ", ");
}

std::string row_text(const OpDef& op, const KernelTable& kernels) {
  const std::vector<std::string> cells = {std::string(op.name),
                                          std::string(name_of(op.op_class)),
                                          cell(doc_text(op)),
                                          count_text(op.min_inputs, op.max_inputs),
                                          count_text(1, op.max_outputs),
                                          attributes_cell(op),
                                          std::string(gradient_text(op)),
                                          in_place_cell(op),
                                          precision_cell(op),
                                          sharding_cell(op),
                                          std::string(rows_text(op.traits.rows)),
                                          std::string(rematerialize_text(op.traits.rematerialize)),
                                          kernels_cell(op, kernels)};
  return fmt::format("| {} |\n", join(cells, " | "));
}

std::string domain_text(const OpTable& ops, const KernelTable& kernels, std::string_view domain) {
  std::string text =
      "| op | class | meaning | inputs | outputs | attributes | gradient | in place | mixed "
      "precision | "
      "shards | rows of tokens | rematerialized | CPU kernels |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const OpDef* op : ops.rows()) {
    if (op->domain == domain) text += row_text(*op, kernels);
  }
  return text;
}

std::string composites_text() {
  std::string text =
      "| op | domain | from opset | inputs | outputs | attributes |\n|---|---|---|---|---|---|\n";
  for (const CompositeForm& form : composite_forms()) {
    std::vector<std::string> attributes;
    for (std::string_view name : split(form.attributes, ' ')) {
      if (!name.empty()) attributes.push_back(fmt::format("`{}`", name));
    }
    const std::string inputs = form.most_inputs == kAnyNumberOfInputs
                                   ? "any number"
                                   : fmt::format("to {}", form.most_inputs);
    text += fmt::format("| {} | {} | {} | {} | to {} | {} |\n", form.op,
                        form.domain.empty() ? "ONNX" : form.domain, form.from, inputs,
                        form.most_outputs, join(attributes, ", "));
  }
  return text;
}

}  // namespace

std::string ops_markdown(const OpTable& ops, const KernelTable& kernels) {
  std::string text =
      "# Ops\n\nGenerated from the op table (engine/ops) and the kernel table (kernels/cpu): do "
      "not "
      "edit. A test compares this file with the tables; with `TRAINSCOPE_UPDATE_DOCS=1` it writes "
      "the file anew.\n\nThe first kernel of a list is the readable reference; a later one is "
      "preferred where it supports the case. A decomposed op is replaced by simpler ones before "
      "it runs. Mixed precision: docs/precision.md; without an entry the op runs in f32. Class: "
      "what kind of work it is, as plans record it and the window colours it.\n\n"
      "In place: a result may take over an input's bytes; *slices* lie inside what they are cut "
      "from. Shards: whether results can be computed shard by shard (docs/worlds.md), of partials "
      "(*linear*), of batch tiles (`--batch-tiles`), or only where devices exchange a few bytes. "
      "Rows of tokens: how `--skip-padding` may move them; without an entry it does not. Runs "
      "again: what `--recompute 1` and `2` do ([recompute.md](recompute.md)); *once*: of the "
      "backward or the update phase.\n\n";
  text += "## ONNX, opset 17\n\n" + domain_text(ops, kernels, kOnnxDomain);
  text +=
      fmt::format("\n## {}\n\n", kTrainscopeDomain) + domain_text(ops, kernels, kTrainscopeDomain);
  text +=
      "\n## Written with others when a model is read\n\nThe importer builds nodes of the ops "
      "above for these, so that gradients, fusions and plans are those of what they are made "
      "of.\n\n" +
      composites_text();
  return text;
}

}  // namespace trainscope
