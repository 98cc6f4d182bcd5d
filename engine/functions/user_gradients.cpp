// A list of gradients by op and version.
#include "engine/functions/user_gradients.h"

#include <utility>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {

UserGradients::UserGradients(std::string_view text, std::string_view name, const OpTable& ops)
    : hash_(hash_text(text)) {
  for (FunctionText& function : parse_functions(text, name)) {
    GradientFunction gradient = gradient_function(std::move(function), ops);
    for (const GradientFunction& other : list_) {
      const bool twice = other.op == gradient.op &&
                         other.function.domain == gradient.function.domain &&
                         other.function.since == gradient.function.since;
      require(!twice, ErrorCode::kBadInput, "{}: a second gradient of {} (the first: {})",
              gradient.function.where, printable(gradient.op), other.function.where);
    }
    list_.push_back(std::move(gradient));
  }
}

const GradientFunction* UserGradients::find(std::string_view domain, std::string_view op,
                                            int version) const {
  const GradientFunction* found = nullptr;
  for (const GradientFunction& each : list_) {
    const bool fits =
        each.op == op && each.function.domain == domain && each.function.since <= version;
    if (fits && (found == nullptr || found->function.since < each.function.since)) found = &each;
  }
  return found;
}

}  // namespace trainscope
