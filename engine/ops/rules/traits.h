// What the rows of many ops have in common in their traits.
#pragma once

#include "engine/ops/rules/sharding_rules.h"

namespace trainscope {

// --- Shardings -----------------------------------------------------------------------------------

inline constexpr Sharding kByElement{.rule = shard_by_element, .by_examples = true};
inline constexpr Sharding kAddition{.rule = shard_addition, .linear = true, .by_examples = true};
inline constexpr Sharding kAlongOtherAxes{.rule = shard_along_other_axes, .by_examples = true};

// --- Ops that run element by element -------------------------------------------------------------

// Finite where their inputs are, so that rows that mean nothing do no harm.
inline constexpr OpTraits kPointwise{.sharding = kByElement,
                                     .rows = RowKind::kPointwise,
                                     .rematerialize = Rematerialize::kLight,
                                     .ranges = kNoRanges};
// May be infinite for rows that mean nothing, Exp or Sqrt: they see all rows.
inline constexpr OpTraits kUnboundedPointwise{.sharding = kByElement,
                                              .rows = RowKind::kInPlace,
                                              .rematerialize = Rematerialize::kLight,
                                              .ranges = kNoRanges};
// Nobody has asked yet what they make of rows of tokens.
inline constexpr OpTraits kOtherPointwise{.sharding = kByElement,
                                          .rows = RowKind::kOther,
                                          .rematerialize = Rematerialize::kLight,
                                          .ranges = kNoRanges};
inline constexpr OpTraits kPointwiseGradient{.sharding = kByElement,
                                             .rows = RowKind::kOther,
                                             .rematerialize = Rematerialize::kOnce,
                                             .ranges = kNoRanges};

// --- Ops that work on whole values ---------------------------------------------------------------

inline constexpr OpTraits kWholeValues{.sharding = kNoSharding,
                                       .rows = RowKind::kOther,
                                       .rematerialize = Rematerialize::kLight,
                                       .ranges = kNoRanges};
// Gradients and steps of optimizers.
inline constexpr OpTraits kWholeValuesOnce{.sharding = kNoSharding,
                                           .rows = RowKind::kOther,
                                           .rematerialize = Rematerialize::kOnce,
                                           .ranges = kNoRanges};

inline constexpr OpTraits kChannelNorm{.sharding = kNoSharding,
                                       .rows = RowKind::kOther,
                                       .rematerialize = Rematerialize::kNorm,
                                       .ranges = kNoRanges};

// --- Ops that are sharded in a way of their own --------------------------------------------------

constexpr OpTraits sharded(const Sharding& sharding) {
  OpTraits traits = kWholeValues;
  traits.sharding = sharding;
  return traits;
}
constexpr OpTraits sharded_once(const Sharding& sharding) {
  OpTraits traits = kWholeValuesOnce;
  traits.sharding = sharding;
  return traits;
}

// --- Ops that are written with others before anything is sharded or planned ----------------------

inline constexpr OpTraits kComposite{.rows = RowKind::kOther};
inline constexpr OpTraits kPointwiseComposite{.rows = RowKind::kPointwise};

}  // namespace trainscope
