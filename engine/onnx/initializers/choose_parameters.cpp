// Which initializers are trained, updated or constant: by a stage's own record, by names and
// patterns, by the exporter's marks, by the places where nodes read them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/initializers/initializer_uses.h"
#include "engine/onnx/initializers/parameter_place.h"
#include "engine/onnx/initializers/script_names.h"
#include "engine/onnx/parameters.h"
#include "engine/onnx/stage_metadata.h"

namespace trainscope {
namespace {

constexpr std::string_view kUndecided =
    "a single number, which may be a parameter or a constant: the file does not tell";

bool matches_any(std::string_view name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(
      patterns, [name](const std::string& pattern) { return matches_pattern(name, pattern); });
}

class ParameterChooser {
 public:
  ParameterChooser(const OnnxModel::Impl& model, const ImportOptions& options)
      : model_(model), options_(options), uses_(initializer_uses(model)) {
    for (const ProgramInput& input : model.marks.program) {
      if (!input.target.empty()) program_.emplace(input.target, &input);
    }
  }

  ParameterChoices run() {
    check_patterns(options_.trainable, "trainable");
    check_patterns(options_.frozen, "frozen");
    require(!options_.parameters || options_.trainable.empty(), ErrorCode::kUsage,
            "a list of parameters and patterns of what to train do not go together: give one");
    for (std::size_t i = 0; i < uses_.size(); ++i) choices_.initializers.push_back(choice_of(i));
    choose_undecided_by_name();
    if (options_.parameters) {
      train_named();
    } else {
      train_matching();
    }
    freeze();
    add_reports();
    return std::move(choices_);
  }

 private:
  using Role = InitializerRole;

  void check_patterns(const std::vector<std::string>& patterns, std::string_view what) const;
  std::string mark_of(const std::string& name) const;
  bool is_usable(std::size_t i) const;
  InitializerChoice choice_of(std::size_t i);
  InitializerChoice marked_choice(InitializerChoice choice) const;
  void choose_undecided_by_name();
  void train_matching();
  void train_named();
  void freeze();
  bool is_trained(const std::string& name) const;
  void note_folded();
  void add_reports();

  const OnnxModel::Impl& model_;
  const ImportOptions& options_;
  std::vector<InitializerUses> uses_;
  std::map<std::string_view, const ProgramInput*> program_;
  std::vector<std::size_t> undecided_;
  ParameterChoices choices_;
};

void ParameterChooser::check_patterns(const std::vector<std::string>& patterns,
                                      std::string_view what) const {
  const std::vector<ModelInitializer>& initializers = model_.facts.initializers;
  for (const std::string& pattern : patterns) {
    bool any = std::ranges::any_of(initializers, [&](const ModelInitializer& each) {
      return matches_pattern(each.name, pattern);
    });
    any = any || std::ranges::any_of(model_.lost, [&](const std::string& name) {
            return matches_pattern(name, pattern);
          });
    if (any) continue;
    std::vector<std::string> names;
    for (const ModelInitializer& each : initializers) names.push_back(each.name);
    std::string hint = nearest_hint(pattern, names);
    if (!hint.empty()) hint += "; ";
    throw Error(ErrorCode::kUsage,
                fmt::format("{} pattern '{}' matches no initializer of the model", what,
                            printable(pattern)))
        .hint(hint + "`trainscope check MODEL.onnx` lists them");
  }
}

// A file may keep the signature and lose the marks: then the names tell.
std::string ParameterChooser::mark_of(const std::string& name) const {
  auto mark = model_.marks.kinds.find(name);
  if (mark != model_.marks.kinds.end()) return mark->second;
  auto input = program_.find(name);
  return input == program_.end() ? "" : input->second->kind;
}

// What nothing reads cannot be trained, what shapes depend on must not.
bool ParameterChooser::is_usable(std::size_t i) const {
  const InitializerUses& uses = uses_[i];
  const DType dtype = model_.facts.initializers[i].type.dtype;
  return is_float(dtype) && uses.count > 0 && !uses.known && !uses.state;
}

InitializerChoice ParameterChooser::choice_of(std::size_t i) {
  const ModelInitializer& initializer = model_.facts.initializers[i];
  const InitializerUses& uses = uses_[i];
  InitializerChoice choice{.name = initializer.name, .type = initializer.type, .reason = {}};
  const auto is = [&choice](Role role, std::string_view reason) {
    choice.role = role;
    choice.reason = reason;
    return choice;
  };
  if (uses.state) return is(Role::kState, "running statistic of a batch norm");
  if (!is_float(initializer.type.dtype)) return is(Role::kConstant, "not of a float type");
  if (uses.count == 0) return is(Role::kConstant, "no node reads it");
  if (uses.known) return is(Role::kConstant, "a size or limit of an op");
  if (model_.marks.tell_parameters()) return marked_choice(std::move(choice));
  if (uses.exponent) return is(Role::kConstant, "an exponent");
  if (uses.scale) return is(Role::kConstant, "a scale of quantization");
  if (uses.table) return is(Role::kConstant, "cosines or sines of positions");
  if (uses.fill && initializer.type.elements() == 1) return is(Role::kConstant, "fills a mask");
  if (is_mask(model_, static_cast<int>(i))) return is(Role::kConstant, "a mask, by its elements");
  if (initializer.type.shape.rank > 0) return is(Role::kTrained, "a float tensor that nodes read");
  if (is_name_of_constant(initializer.name)) {
    return is(Role::kConstant, "a single number under a name that exporters give constants");
  }
  undecided_.push_back(i);
  return is(Role::kTrained, kUndecided);
}

InitializerChoice ParameterChooser::marked_choice(InitializerChoice choice) const {
  const std::string mark = mark_of(choice.name);
  if (mark == "PARAMETER") {
    choice.role = Role::kTrained;
    choice.reason = "the exporter marks it as a parameter";
  } else if (!mark.empty()) {
    choice.role = Role::kBuffer;
    choice.reason = mark == "BUFFER" ? "the exporter marks it as a buffer"
                                     : "the exporter marks it as a constant of the module";
  } else {
    choice.reason = "a constant of the graph: the exporter marks parameters, not this";
  }
  return choice;
}

// A single number that a pattern or list names is decided by it.
void ParameterChooser::choose_undecided_by_name() {
  std::erase_if(undecided_, [this](std::size_t i) {
    const std::string& name = choices_.initializers[i].name;
    return options_.parameters || matches_any(name, options_.trainable) ||
           matches_any(name, options_.frozen);
  });
}

// A pattern that matches what is trained anyway limits training to its matches; one that matches
// only others adds them.
void ParameterChooser::train_matching() {
  if (options_.trainable.empty()) return;
  const std::size_t count = choices_.initializers.size();
  std::vector<bool> wanted(count, false);
  bool limits = false;
  for (const std::string& pattern : options_.trainable) {
    std::vector<std::size_t> trained;
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < count; ++i) {
      const InitializerChoice& choice = choices_.initializers[i];
      if (!is_usable(i) || !matches_pattern(choice.name, pattern)) continue;
      (choice.role == Role::kTrained ? trained : others).push_back(i);
    }
    limits = limits || std::ranges::any_of(trained, [this](std::size_t i) {
               return choices_.initializers[i].reason != kUndecided;
             });
    for (std::size_t i : trained.empty() ? others : trained) wanted[i] = true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    InitializerChoice& choice = choices_.initializers[i];
    if (wanted[i]) {
      choice.role = Role::kTrained;
      choice.reason = "asked for by name";
    } else if (limits && choice.role == Role::kTrained) {
      choice.role = Role::kFrozen;
      choice.reason = "not among what is asked for";
    }
  }
}

void ParameterChooser::train_named() {
  std::vector<bool> named(choices_.initializers.size(), false);
  std::vector<std::string> names;
  for (const InitializerChoice& choice : choices_.initializers) names.push_back(choice.name);
  for (const std::string& name : *options_.parameters) {
    const ParameterPlace place = place_of(model_, name);
    if (place.unread) continue;
    auto found = model_.initializer_index.find(place.initializer);
    if (found == model_.initializer_index.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("the list of parameters names '{}', which is no "
                                                 "initializer of the model",
                                                 printable(name)))
          .hint(nearest_hint(name, names))
          .hint("export the model so that its parameters stay: dynamo=True, optimize=False");
    }
    const auto i = static_cast<std::size_t>(found->second);
    require(is_usable(i), ErrorCode::kUsage,
            "the list of parameters names '{}', which cannot be trained: {}", printable(name),
            choices_.initializers[i].reason);
    named[i] = true;
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    InitializerChoice& choice = choices_.initializers[i];
    if (named[i]) {
      choice.role = Role::kTrained;
      choice.reason = "in the list of parameters";
    } else if (choice.role == Role::kTrained) {
      choice.role = Role::kFrozen;
      choice.reason = "not in the list of parameters";
    }
  }
}

void ParameterChooser::freeze() {
  for (InitializerChoice& choice : choices_.initializers) {
    if (choice.role != Role::kTrained || !matches_any(choice.name, options_.frozen)) continue;
    choice.role = Role::kFrozen;
    choice.reason = "frozen by name";
  }
}

// Whether a parameter of the module is trained, or is asked for although the file does not have it.
bool ParameterChooser::is_trained(const std::string& name) const {
  const auto found = std::ranges::find(choices_.initializers, name, &InitializerChoice::name);
  if (found != choices_.initializers.end()) return found->role == Role::kTrained;
  if (options_.parameters) return std::ranges::count(*options_.parameters, name) > 0;
  return matches_any(name, options_.trainable) && !matches_any(name, options_.frozen);
}

// Of the older exporter's file: float constants whose parameters it does not tell. Trained, they
// are parameters of their own; left as they are, what they were made of is not trained there.
void ParameterChooser::note_folded() {
  std::set<std::string> known;
  for (const TorchTensor& tensor : script_tensors(model_)) known.insert(tensor.initializer);
  std::vector<std::string> names;
  for (const InitializerChoice& choice : choices_.initializers) {
    const bool folded = choice.name.starts_with("onnx::") && choice.type.shape.rank > 0 &&
                        (choice.role == Role::kTrained || choice.role == Role::kFrozen);
    if (!folded || known.contains(choice.name)) continue;
    names.push_back(fmt::format("'{}'", printable(choice.name)));
  }
  if (names.empty()) return;
  const std::size_t all = names.size();
  constexpr std::size_t kShown = 6;
  names.resize(std::min(all, kShown));
  choices_.notes.push_back(
      {.message = fmt::format(
           "the exporter computed constants, perhaps of parameters, which PyTorch "
           "trains instead of them: {}{}",
           join(names, ", "), all > kShown ? fmt::format(" and {} more", all - kShown) : ""),
       .hint = "torch.onnx.export(.., dynamo=False, do_constant_folding=False, "
               "training=torch.onnx.TrainingMode.TRAINING)"});
}

void ParameterChooser::add_reports() {
  for (std::size_t i : undecided_) {
    const InitializerChoice& choice = choices_.initializers[i];
    choices_.faults.push_back(
        {.message = fmt::format("'{}' ({}) is {}", printable(choice.name), type_text(choice.type),
                                kUndecided),
         .hint =
             fmt::format("--train {0} trains it with the others, --freeze {0} leaves it as it is",
                         printable(choice.name))});
  }
  const bool by_name = options_.parameters || !options_.trainable.empty();
  for (const ParameterFault& fault : model_.faults) {
    const bool counts = std::ranges::any_of(
        fault.parameters, [this](const std::string& name) { return is_trained(name); });
    const bool frozen = !fault.parameters.empty() && !counts &&
                        std::ranges::all_of(fault.parameters, [this](const std::string& name) {
                          return matches_any(name, options_.frozen);
                        });
    if ((!by_name && !frozen) || fault.stays || counts) choices_.faults.push_back(fault);
  }
  choices_.notes = model_.notes;
  choices_.remarks = model_.remarks;
  choices_.buffers_unknown = !by_name && !model_.marks.tell_parameters();
  choices_.by_marks = model_.marks.tell_parameters();
  choices_.of_pytorch = model_.proto.producer_name() == "pytorch";
  if (choices_.of_pytorch && !choices_.by_marks) note_folded();
}

InitializerRole role_of(ValueKind kind) {
  if (kind == ValueKind::kParameter) return InitializerRole::kTrained;
  return kind == ValueKind::kState ? InitializerRole::kState : InitializerRole::kConstant;
}

// A stage says itself what it has.
ParameterChoices stage_choices(const OnnxModel::Impl& model) {
  const StageMetadata stage = read_stage_metadata(model.proto);
  std::map<std::string_view, ValueKind> kinds(stage.values.begin(), stage.values.end());
  ParameterChoices choices;
  for (const ModelInitializer& each : model.facts.initializers) {
    auto kind = kinds.find(each.name);
    choices.initializers.push_back(
        {.name = each.name,
         .type = each.type,
         .role = kind == kinds.end() ? InitializerRole::kConstant : role_of(kind->second),
         .reason = "the recorded stage has it so"});
  }
  return choices;
}

}  // namespace

std::string_view name_of(InitializerRole role) {
  switch (role) {
    case InitializerRole::kTrained:
      return "trained";
    case InitializerRole::kFrozen:
      return "frozen";
    case InitializerRole::kState:
      return "state";
    case InitializerRole::kBuffer:
      return "buffer";
    case InitializerRole::kConstant:
      return "constant";
  }
  return "";
}

ParameterChoices choose_parameters(const OnnxModel& model, const ImportOptions& options) {
  if (model.is_stage()) return stage_choices(model.impl());
  return ParameterChooser(model.impl(), options).run();
}

std::set<std::string, std::less<>> unmarked_parameters(const OnnxModel& model,
                                                       const ImportOptions& options) {
  std::set<std::string, std::less<>> names;
  const ParameterChoices choices = choose_parameters(model, options);
  if (!choices.buffers_unknown) return names;
  for (const InitializerChoice& choice : choices.initializers) {
    if (choice.role == InitializerRole::kTrained) names.insert(choice.name);
  }
  return names;
}

std::vector<std::string> untold(const ParameterChoices& choices) {
  std::vector<std::string> sentences;
  if (choices.buffers_unknown) sentences.emplace_back(kBuffersUnknown);
  if (choices.of_pytorch && !choices.by_marks) {
    sentences.emplace_back(kUntoldByNames);
  } else if (choices.by_marks) {
    sentences.emplace_back(kUntoldByMarks);
  }
  return sentences;
}

void require_trainable(const OnnxModel& model, const ImportOptions& options) {
  const ParameterChoices choices = choose_parameters(model, options);
  if (choices.faults.empty()) return;
  std::string message = choices.faults.front().message;
  for (std::size_t i = 1; i < choices.faults.size(); ++i) {
    message += fmt::format("\n  {}", choices.faults[i].message);
  }
  throw Error(ErrorCode::kBadInput, message)
      .at(model.path().empty() ? "the model" : printable(model.path().string()))
      .hint(choices.faults.front().hint);
}

}  // namespace trainscope
