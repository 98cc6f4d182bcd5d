// Two datasets as one.
#include "datasets/split.h"

#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

class TwoSources final : public Dataset {
 public:
  TwoSources(std::shared_ptr<const Dataset> training, std::shared_ptr<const Dataset> validation)
      : training_(std::move(training)), validation_(std::move(validation)) {}

  std::span<const Field> fields() const override { return training_->fields(); }
  std::int64_t examples(Split split) const override { return of(split).examples(split); }
  bool can_pad() const override { return training_->can_pad() && validation_->can_pad(); }
  void read(Split split, std::int64_t epoch, std::span<const std::int64_t> indices,
            Batch& out) const override {
    of(split).read(split, epoch, indices, out);
  }
  // That of the training source, and under validation_data of the other without the places where
  // its files lie.
  Json description() const override {
    Json json = training_->description();
    Json other = Json::object();
    const Json whole = validation_->description();
    for (const JsonMember& member : whole.as_object()) {
      const bool left_out = member.key == "file" || member.key == "vocabulary";
      if (!left_out) other.set(member.key, member.value);
    }
    json.set("validation_data", std::move(other));
    return json;
  }

 private:
  const Dataset& of(Split split) const {
    return split == Split::kTrain ? *training_ : *validation_;
  }

  std::shared_ptr<const Dataset> training_;
  std::shared_ptr<const Dataset> validation_;
};

void check_same(const Field& training, const Field& validation) {
  require(training.name == validation.name && training.example == validation.example &&
              training.batch_axis == validation.batch_axis,
          ErrorCode::kBadInput,
          "the training data give '{}' as {} an example, the validation data '{}' as {}",
          printable(training.name), type_text(training.example), printable(validation.name),
          type_text(validation.example));
}

}  // namespace

std::unique_ptr<Dataset> with_validation(std::shared_ptr<const Dataset> training,
                                         std::shared_ptr<const Dataset> validation) {
  const std::span<const Field> fields = training->fields();
  const std::span<const Field> others = validation->fields();
  require(fields.size() == others.size(), ErrorCode::kBadInput,
          "the training data give {} tensors an example, the validation data {}", fields.size(),
          others.size());
  for (std::size_t i = 0; i < fields.size(); ++i) check_same(fields[i], others[i]);
  return std::make_unique<TwoSources>(std::move(training), std::move(validation));
}

}  // namespace trainscope
