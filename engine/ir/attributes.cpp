// Attribute access with kind checks, and their printed form.
#include "engine/ir/attributes.h"

#include <fmt/format.h>

#include <cstring>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/graph.h"
#include "engine/ir/sole_owner.h"

namespace trainscope {
namespace {

const Attribute* lookup(const Attributes::Map& map, std::string_view name) {
  auto found = map.find(name);
  return found == map.end() ? nullptr : &found->second;
}

template <typename T>
const T& expect(const Attribute& attribute, std::string_view name, std::string_view kind) {
  const T* typed = std::get_if<T>(&attribute);
  require(typed != nullptr, ErrorCode::kBadInput, "attribute '{}' must be {}", printable(name),
          kind);
  return *typed;
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

struct Printer {
  std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(const std::string& v) const { return "'" + printable(v) + "'"; }
  std::string operator()(const Ints& v) const { return fmt::format("{{{}}}", fmt::join(v, ",")); }
  std::string operator()(const Floats& v) const { return fmt::format("{{{}}}", fmt::join(v, ",")); }
  std::string operator()(const SharedTensor& v) const {
    return v ? "<" + type_text(v->type()) + ">" : "<none>";
  }
  std::string operator()(const SharedGraph& v) const {
    return v ? fmt::format("<graph {:016x}>", hash_of(*v)) : "<none>";
  }
};

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<const std::string, Attribute>> list) {
  if (list.size() > 0) map_ = std::make_shared<Map>(list);
}

const Attributes::Map& Attributes::map() const {
  static const Map none;
  return map_ ? *map_ : none;
}

Attributes::Map& Attributes::own_map() {
  if (!is_sole_owner(map_)) map_ = std::make_shared<Map>(map());
  return *map_;
}

void Attributes::set(std::string name, Attribute value) {
  own_map().insert_or_assign(std::move(name), std::move(value));
}

void Attributes::erase(std::string_view name) {
  if (!has(name)) return;
  Map& own = own_map();
  own.erase(own.find(name));
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t absent) const {
  const Attribute* a = lookup(map(), name);
  return a ? expect<std::int64_t>(*a, name, "an integer") : absent;
}

double Attributes::number(std::string_view name, double absent) const {
  const Attribute* a = lookup(map(), name);
  if (!a) return absent;
  if (const auto* i = std::get_if<std::int64_t>(a)) return static_cast<double>(*i);
  return expect<double>(*a, name, "a number");
}

std::string Attributes::text(std::string_view name, std::string_view absent) const {
  const Attribute* a = lookup(map(), name);
  return a ? expect<std::string>(*a, name, "a string") : std::string(absent);
}

Ints Attributes::integers(std::string_view name, const Ints& absent) const {
  const Attribute* a = lookup(map(), name);
  return a ? expect<Ints>(*a, name, "a list of integers") : absent;
}

Floats Attributes::numbers(std::string_view name, const Floats& absent) const {
  const Attribute* a = lookup(map(), name);
  return a ? expect<Floats>(*a, name, "a list of numbers") : absent;
}

SharedTensor Attributes::tensor(std::string_view name) const {
  const Attribute* a = lookup(map(), name);
  return a ? expect<SharedTensor>(*a, name, "a tensor") : nullptr;
}

SharedGraph Attributes::graph(std::string_view name) const {
  const Attribute* a = lookup(map(), name);
  return a ? expect<SharedGraph>(*a, name, "a graph") : nullptr;
}

bool Attributes::operator==(const Attributes& other) const {
  if (map_ == other.map_) return true;
  if (map().size() != other.map().size()) return false;
  auto b = other.map().begin();
  for (const auto& [name, attribute] : map()) {
    const auto& [other_name, other_attribute] = *b++;
    if (name != other_name || attribute.index() != other_attribute.index()) return false;
    const auto* tensor = std::get_if<SharedTensor>(&attribute);
    if (!tensor) {
      if (attribute != other_attribute) return false;
      continue;
    }
    const SharedTensor& other_tensor = std::get<SharedTensor>(other_attribute);
    if (*tensor == other_tensor) continue;
    if (!*tensor || !other_tensor || !same_tensor(**tensor, *other_tensor)) return false;
  }
  return true;
}

std::string attributes_text(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, attribute] : attributes.map()) {
    if (!text.empty()) text += ' ';
    text += printable(name) + "=" + std::visit(Printer{}, attribute);
  }
  return text;
}

}  // namespace trainscope
