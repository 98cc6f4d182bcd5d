// The words that other tools have for what our flags say.
#include "cli/flags/flag_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engine/core/text.h"

namespace trainscope {
namespace {

// A name without dashes between its words, as people and other programs write it.
struct Sense {
  std::string_view word;
  std::string_view flag;
};

constexpr std::array kSenses = {
    Sense{"epoch", "epochs"},
    Sense{"nepochs", "epochs"},
    Sense{"maxepochs", "epochs"},
    Sense{"numtrainepochs", "epochs"},
    Sense{"iters", "steps"},
    Sense{"maxiters", "steps"},
    Sense{"numsteps", "steps"},
    Sense{"bs", "batch"},
    Sense{"minibatch", "batch"},
    Sense{"trainbatchsize", "batch"},
    Sense{"perdevicetrainbatchsize", "batch"},
    Sense{"learningrate", "lr"},
    Sense{"link", "link-rate"},
    Sense{"bandwidth", "link-rate"},
    Sense{"decay", "weight-decay"},
    Sense{"l2", "weight-decay"},
    Sense{"optim", "optimizer"},
    Sense{"criterion", "loss"},
    Sense{"objective", "loss"},
    Sense{"dataset", "data"},
    Sense{"traindata", "data"},
    Sense{"valdata", "validation-data"},
    Sense{"testdata", "validation-data"},
    Sense{"valsplit", "validation"},
    Sense{"validationsplit", "validation"},
    Sense{"evalsteps", "eval-every"},
    Sense{"valevery", "eval-every"},
    Sense{"savesteps", "save-every"},
    Sense{"checkpointevery", "save-every"},
    Sense{"checkpoint", "resume"},
    Sense{"resumefrom", "resume"},
    Sense{"resumefromcheckpoint", "resume"},
    Sense{"ckpt", "resume"},
    Sense{"output", "out"},
    Sense{"output", "run-dir"},
    Sense{"out", "run-dir"},
    Sense{"outdir", "run-dir"},
    Sense{"logdir", "run-dir"},
    Sense{"save", "export"},
    Sense{"gradclip", "clip"},
    Sense{"clipgrad", "clip"},
    Sense{"clipnorm", "clip"},
    Sense{"gradientclipval", "clip"},
    Sense{"gradaccum", "accumulate"},
    Sense{"accumulategradbatches", "accumulate"},
    Sense{"microbatches", "accumulate"},
    Sense{"seqlength", "seq"},
    Sense{"contextlength", "seq"},
    Sense{"blocksize", "seq"},
    Sense{"maxlength", "seq"},
    Sense{"randomstate", "seed"},
    Sense{"randomseed", "seed"},
    Sense{"jobs", "threads"},
    Sense{"workers", "threads"},
    Sense{"numworkers", "threads"},
    Sense{"numthreads", "threads"},
    Sense{"cores", "threads"},
    Sense{"gpu", "device"},
    Sense{"cuda", "device"},
    Sense{"dtype", "precision"},
    Sense{"amp", "precision"},
    Sense{"fp16", "precision"},
    Sense{"bf16", "precision"},
    Sense{"mixedprecision", "precision"},
    Sense{"patience", "early-stop"},
    Sense{"earlystopping", "early-stop"},
    Sense{"earlystoppingpatience", "early-stop"},
    Sense{"emadecay", "ema"},
    Sense{"modelema", "ema"},
    Sense{"beta", "betas"},
    Sense{"beta1", "betas"},
    Sense{"beta2", "betas"},
    Sense{"noshuffle", "shuffle"},
    Sense{"timemajor", "batch-axis"},
    Sense{"batchdim", "batch-axis"},
    Sense{"frozen", "freeze"},
    Sense{"memory", "memory-budget"},
    Sense{"memorylimit", "memory-budget"},
    Sense{"checkpointing", "recompute"},
    Sense{"gradientcheckpointing", "recompute"},
};

// "--Learning_Rate" as "learningrate".
std::string letters_of(std::string_view word) {
  std::string letters;
  for (char c : word) {
    if (c == '-' || c == '_') continue;
    letters += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return letters;
}

bool has_name(const Flag& flag, std::string_view letters) {
  if (letters_of(flag.name) == letters) return true;
  if (flag.also.empty()) return false;
  return std::ranges::any_of(split(flag.also, '|'), [letters](std::string_view other) {
    return letters_of(other) == letters;
  });
}

// The flag that says what the letters do, if the table or the flags' own names know them.
const Flag* flag_of_sense(std::span<const Flag> flags, std::string_view letters) {
  if (letters.size() < 2) return nullptr;
  const auto own =
      std::ranges::find_if(flags, [letters](const Flag& flag) { return has_name(flag, letters); });
  if (own != flags.end()) return &*own;
  for (const Sense& sense : kSenses) {
    if (sense.word != letters) continue;
    const auto found = std::ranges::find(flags, sense.flag, &Flag::name);
    if (found != flags.end()) return &*found;
  }
  return nullptr;
}

// A slip in a name of another tool leads to our name. `dashes` stand before the word and the names.
std::optional<std::string> meant_by_letters(std::span<const Flag> flags, std::string_view word,
                                            std::string_view dashes) {
  std::vector<std::string> names;
  std::vector<std::string> meant;
  const auto add = [&](const std::string& name, const std::string& ours) {
    names.push_back(std::string(dashes) + name);
    meant.push_back(ours);
  };
  for (const Flag& flag : flags) {
    const std::string name(flag.name);
    add(name, name);
    if (flag.type == FlagType::kToggle) add("no-" + name, "no-" + name);
    if (flag.also.empty()) continue;
    for (std::string_view other : split(flag.also, '|')) add(std::string(other), name);
  }
  const std::optional<std::string> nearest = nearest_name(word, names);
  if (!nearest) return std::nullopt;
  return meant[static_cast<std::size_t>(std::ranges::find(names, *nearest) - names.begin())];
}

}  // namespace

std::optional<std::string> flag_meant(std::span<const Flag> flags, std::string_view word) {
  const Flag* flag = flag_of_sense(flags, letters_of(word));
  return flag != nullptr ? std::string(flag->name) : meant_by_letters(flags, word, "");
}

std::string flag_hint(std::span<const Flag> flags, std::string_view word) {
  const Flag* flag =
      word.starts_with("--") ? flag_of_sense(flags, letters_of(word.substr(2))) : nullptr;
  if (flag != nullptr) return fmt::format("did you mean '--{}'?", flag->name);
  const std::optional<std::string> meant = meant_by_letters(flags, word, "--");
  return meant ? fmt::format("did you mean '--{}'?", *meant) : std::string();
}

}  // namespace trainscope
