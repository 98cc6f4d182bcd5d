// Attribute values of a node, by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/core/tensor.h"

namespace trainscope {

class Graph;

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<double>;
using SharedTensor = std::shared_ptr<const Tensor>;
using SharedGraph = std::shared_ptr<const Graph>;  // a body: what a node runs by itself
using Attribute =
    std::variant<std::int64_t, double, std::string, Ints, Floats, SharedTensor, SharedGraph>;

// A sorted name -> value map. The getters take the default for an absent attribute and fail with
// kBadInput when the attribute has another kind.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> list);

  bool has(std::string_view name) const { return map().find(name) != map().end(); }
  void set(std::string name, Attribute value);
  void erase(std::string_view name);

  std::int64_t integer(std::string_view name, std::int64_t absent) const;
  double number(std::string_view name, double absent) const;  // accepts integers too
  std::string text(std::string_view name, std::string_view absent) const;
  Ints integers(std::string_view name, const Ints& absent = {}) const;
  Floats numbers(std::string_view name, const Floats& absent = {}) const;
  SharedTensor tensor(std::string_view name) const;  // null when absent
  SharedGraph graph(std::string_view name) const;    // null when absent

  using Map = std::map<std::string, Attribute, std::less<>>;
  const Map& map() const;
  bool operator==(const Attributes& other) const;  // tensors by their bytes, graphs by identity

 private:
  Map& own_map();

  std::shared_ptr<Map> map_;  // null: empty; shared by copies until one of them changes
};

// "axis=1 pads={0,1}", sorted by name; tensors as their type, graphs as their hash. Used by
// print and hashing.
std::string attributes_text(const Attributes& attributes);

}  // namespace trainscope
