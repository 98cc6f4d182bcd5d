// Gradients that stand in a file, in place of those that ops have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/functions/gradient_function.h"

namespace trainscope {

class UserGradients {
 public:
  // `name` is what messages call the text. Throws kBadInput, "NAME:LINE: ...".
  UserGradients(std::string_view text, std::string_view name, const OpTable& ops);

  // That of an op in a model that imports this version of its domain: of several the one with the
  // newest `since` up to it. Null: there is none.
  const GradientFunction* find(std::string_view domain, std::string_view op, int version) const;
  const std::vector<GradientFunction>& list() const { return list_; }
  std::uint64_t hash() const { return hash_; }  // of the text

 private:
  std::vector<GradientFunction> list_;
  std::uint64_t hash_ = 0;
};

}  // namespace trainscope
