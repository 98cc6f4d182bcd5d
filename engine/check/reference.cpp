// Reading reference folders.
#include "engine/check/reference.h"

#include <fmt/format.h>

#include <limits>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{64} << 20;

LossKind parse_loss_kind(const std::string& text) {
  for (LossKind kind : kLossKinds) {
    if (text == name_of(kind)) return kind;
  }
  fail(ErrorCode::kBadInput, "unknown loss kind '{}'", printable(text));
}

LossOptions parse_loss(const Json& json) {
  LossOptions loss;
  loss.kind = parse_loss_kind(json.at("kind").as_string());
  loss.output = json.at("output").as_string();
  loss.labels = json.at("label").as_string();
  if (const Json* axis = json.find("class_axis")) loss.class_axis = axis->as_int();
  if (const Json* ignore = json.find("ignore_index")) loss.ignore_index = ignore->as_int();
  return loss;
}

std::vector<std::string> strings(const Json& json) {
  std::vector<std::string> list;
  for (const Json& item : json.as_array()) list.push_back(item.as_string());
  return list;
}

double number_or(const Json& json, std::string_view key, double absent) {
  const Json* found = json.find(key);
  return found ? found->as_number() : absent;
}

}  // namespace

ReferenceMeta read_reference_meta(const std::filesystem::path& path) {
  ReferenceMeta meta;
  meta.path = path;
  try {
    meta.json = read_json_file(path);
    meta.loss = parse_loss(meta.json.at("loss"));
    meta.trainable = strings(meta.json.at("trainable"));
    meta.frozen = strings(meta.json.at("frozen"));
    if (const Json* noise = meta.json.find("noise")) {
      for (const std::string& name : strings(noise->at("vanishing_grads")))
        meta.vanishing.insert(name);
    }
  } catch (Error& error) {
    error.at(printable(path.string()));
    throw;
  }
  return meta;
}

ReferenceOptimizer reference_optimizer(const Json& json) {
  ReferenceOptimizer reference;
  OptimizerOptions& options = reference.options;
  const std::string& kind = json.at("kind").as_string();
  require(kind == "adamw" || kind == "sgd", ErrorCode::kBadInput, "unknown optimizer '{}'",
          printable(kind));
  options.kind = kind == "sgd" ? OptimizerKind::kSgd : OptimizerKind::kAdamW;
  options.momentum = number_or(json, "momentum", 0.0);
  if (const Json* betas = json.find("betas")) {
    options.beta1 = betas->at(std::size_t{0}).as_number();
    options.beta2 = betas->at(std::size_t{1}).as_number();
  }
  options.epsilon = number_or(json, "eps", options.epsilon);
  options.weight_decay = number_or(json, "weight_decay", 0.0);
  options.clip_norm = number_or(json, "clip_norm", 0.0);
  const Json* decay = json.find("decay");
  options.decay_matrices_only = decay != nullptr && decay->as_string() == "matrices";
  const Json& rates = json.at("lr");
  if (rates.is_array()) {
    for (const Json& rate : rates.as_array()) reference.learning_rates.push_back(rate.as_number());
  } else {
    reference.learning_rates.push_back(rates.as_number());
  }
  require(!reference.learning_rates.empty(), ErrorCode::kBadInput, "key 'lr': the list is empty");
  return reference;
}

Batch reference_batch(const SafetensorsFile& tensors, int index, DType float_type) {
  Batch batch;
  const std::string prefix = fmt::format("batch.{}:", index);
  for (const SafetensorsEntry& entry : tensors.entries()) {
    if (!entry.name.starts_with(prefix)) continue;
    Tensor tensor = tensors.tensor(entry.name);
    if (is_float(tensor.dtype()) && tensor.dtype() != float_type)
      tensor = convert(tensor, float_type);
    batch.tensors.emplace_back(entry.name.substr(prefix.size()), std::move(tensor));
  }
  require(!batch.tensors.empty(), ErrorCode::kBadInput, "{}: no tensors named '{}*'",
          printable(tensors.path().string()), prefix);
  return batch;
}

ReferenceTable ReferenceTable::read(const std::filesystem::path& path, std::string_view key) {
  ReferenceTable table;
  table.path_ = path;
  const std::string text = read_file(path, kMaxTableBytes);
  for (std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    std::vector<std::string> cells;
    for (std::string_view cell : split(line, '\t')) cells.emplace_back(cell);
    if (table.columns_.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) table.columns_.emplace(cells[i], i);
      require(table.columns_.contains(key), ErrorCode::kBadInput, "{}: no column '{}'",
              printable(path.string()), key);
      continue;
    }
    require(cells.size() == table.columns_.size(), ErrorCode::kBadInput,
            "{} line {}: {} cells, {} columns", printable(path.string()), table.rows_.size() + 2,
            cells.size(), table.columns_.size());
    table.index_.emplace(cells[table.columns_.find(key)->second], table.rows_.size());
    table.rows_.push_back(std::move(cells));
  }
  return table;
}

double ReferenceTable::number(std::string_view row, std::string_view column) const {
  auto found = index_.find(row);
  require(found != index_.end(), ErrorCode::kBadInput, "{}: no row '{}'", printable(path_.string()),
          printable(row));
  return number(found->second, column);
}

double ReferenceTable::number(std::size_t row, std::string_view column) const {
  auto found = columns_.find(column);
  require(found != columns_.end(), ErrorCode::kBadInput, "{}: no column '{}'",
          printable(path_.string()), column);
  const std::string& cell = rows_[row][found->second];
  if (cell == "-") return std::numeric_limits<double>::quiet_NaN();
  std::optional<double> number = parse_number(cell);
  require(number.has_value(), ErrorCode::kBadInput, "{}: '{}' in column {} is no number",
          printable(path_.string()), printable(cell), column);
  return *number;
}

}  // namespace trainscope
