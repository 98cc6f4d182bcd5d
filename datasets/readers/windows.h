// Sequences cut out of one long list of token ids: what text, bpe and tokens share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// The ids of a whole text, in memory or in a file. May be read by several threads at once.
class TokenIds {
 public:
  virtual ~TokenIds() = default;
  virtual std::int64_t size() const = 0;
  // Copies ids from `begin` on; all must be there.
  virtual void read(std::int64_t begin, std::span<std::uint32_t> into) const = 0;
};

template <typename T>
class StoredIds final : public TokenIds {
 public:
  explicit StoredIds(std::vector<T> ids) : ids_(std::move(ids)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(ids_.size()); }
  void read(std::int64_t begin, std::span<std::uint32_t> into) const override {
    std::copy_n(ids_.begin() + begin, into.size(), into.begin());
  }

 private:
  std::vector<T> ids_;
};

// What windows feed: found before any file is read, so that a model that they do not suit is
// refused at once.
struct WindowPlan {
  const WantedField* ids = nullptr;  // the only input of the model
  std::int64_t sequence = 0;         // T
  std::vector<Field> fields;
  std::int64_t bound = 0;  // ids and labels must be below it; 0: not known
};

// Throws kUsage when the model has not exactly one input, of integers in two dimensions, or no
// length for it.
WindowPlan plan_windows(const DataSpec& spec, const DatasetOptions& options);

// Throws kBadInput when a vocabulary of `size` ids is larger than the model's. `what` follows the
// name of the file that holds it: "has 70 distinct characters".
void check_vocabulary(const DataSpec& spec, const DatasetOptions& options, std::size_t size,
                      std::string_view what);

struct WindowSource {
  std::unique_ptr<TokenIds> ids;
  std::string_view unit;  // "characters", "tokens": of messages and the description
  Json description;       // numbers of ids and the sequence are added
};

// With n ids and a validation fraction f the first floor(n (1 - f)) train, the others validate.
//
// An example is a window: T ids in, the same moved on by one as labels.
// Training: with L ids epoch e cuts windows at p, p + T, p + 2T ..., where the phase p in [0, T) is
// random, a function of (seed, e); there are floor((L - T) / T) of them in every epoch (one while
// T < L < 2T). They do not overlap but for the label at a window's end, which is the next one's
// first input.
// Validation: windows at 0, T, 2T ... that cover all V ids: each but the first, which has no
// predecessor, is a label exactly once. The last window is filled up with id 0 and labels
// ignore_index.
std::unique_ptr<Dataset> make_windows(const DataSpec& spec, const DatasetOptions& options,
                                      WindowPlan plan, WindowSource source);

}  // namespace trainscope
