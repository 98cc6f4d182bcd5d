// AttributeProto to Attribute and back.
#include "engine/onnx/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/onnx/body_proto.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

using Kind = pb::AttributeProto;

struct Field {
  int kind;
  bool filled;
};

std::array<Field, 14> fields_of(const pb::AttributeProto& a) {
  return {{{Kind::FLOAT, a.has_f()},
           {Kind::INT, a.has_i()},
           {Kind::STRING, a.has_s()},
           {Kind::TENSOR, a.has_t()},
           {Kind::GRAPH, a.has_g()},
           {Kind::SPARSE_TENSOR, a.has_sparse_tensor()},
           {Kind::TYPE_PROTO, a.has_tp()},
           {Kind::FLOATS, a.floats_size() > 0},
           {Kind::INTS, a.ints_size() > 0},
           {Kind::STRINGS, a.strings_size() > 0},
           {Kind::TENSORS, a.tensors_size() > 0},
           {Kind::GRAPHS, a.graphs_size() > 0},
           {Kind::SPARSE_TENSORS, a.sparse_tensors_size() > 0},
           {Kind::TYPE_PROTOS, a.type_protos_size() > 0}}};
}

std::string kind_name(int kind) {
  return pb::AttributeProto_AttributeType_Name(static_cast<pb::AttributeProto_AttributeType>(kind));
}

std::string label(const pb::AttributeProto& a, std::string_view where) {
  return fmt::format("{}: attribute '{}'", where, printable(a.name()));
}

void check_attribute(const pb::AttributeProto& a, std::string_view where, ExternalFiles& files) {
  if (a.type() == Kind::UNDEFINED) {
    fail(ErrorCode::kBadInput, "{} has no known type", label(a, where));
  }
  for (const Field& field : fields_of(a)) {
    if (!field.filled || field.kind == a.type()) continue;
    fail(ErrorCode::kBadInput, "{} is of type {}, but holds a value of type {}", label(a, where),
         kind_name(a.type()), kind_name(field.kind));
  }
  if (a.type() == Kind::TENSOR) {
    require(a.has_t(), ErrorCode::kBadInput, "{} holds no tensor", label(a, where));
    check_tensor(a.t(), label(a, where), files);
  }
}

// An exponent or epsilon that is NaN or infinite poisons every result.
double finite(double number, const pb::AttributeProto& a, const pb::NodeProto& node,
              std::string_view where) {
  if (std::isfinite(number) || node.op_type() == "Constant") return number;
  fail(ErrorCode::kBadInput, "{} is {}, a finite number was expected", label(a, where), number);
}

// Functions of recurrent cells, the one list of words that is read: a text of them.
std::string words(const pb::AttributeProto& a, std::string_view where) {
  std::string text;
  for (const std::string& word : a.strings()) {
    require(!word.empty() && word.find(' ') == std::string::npos, ErrorCode::kBadInput,
            "{}: '{}' is no name of a function", label(a, where), printable(word));
    text += text.empty() ? word : " " + word;
  }
  return text;
}

// The nearest float32; numbers beyond its range are clamped (stage notes hold them exactly).
float to_float(double number) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (!std::isfinite(number)) return static_cast<float>(number);
  return static_cast<float>(std::clamp(number, -kMost, kMost));
}

}  // namespace

void check_attributes(const pb::NodeProto& node, std::string_view where, ExternalFiles& files,
                      AttributeRefs refs) {
  std::set<std::string_view> names;
  for (const pb::AttributeProto& a : node.attribute()) {
    if (a.name().empty()) fail(ErrorCode::kBadInput, "{}: an attribute has no name", where);
    bool fresh = names.insert(a.name()).second;
    if (!fresh) fail(ErrorCode::kBadInput, "{} is given twice", label(a, where));
    if (!a.ref_attr_name().empty()) {
      require(refs == AttributeRefs::kAllowed, ErrorCode::kBadInput,
              "{} refers to '{}', which only functions may do", label(a, where),
              printable(a.ref_attr_name()));
      continue;
    }
    check_attribute(a, where, files);
  }
}

Attributes read_attributes(const pb::NodeProto& node, std::string_view where,
                           ExternalFiles& files) {
  Attributes result;
  for (const pb::AttributeProto& a : node.attribute()) {
    if (!a.ref_attr_name().empty()) continue;
    switch (a.type()) {
      case Kind::INT:
        result.set(a.name(), std::int64_t{a.i()});
        break;
      case Kind::FLOAT:
        result.set(a.name(), finite(a.f(), a, node, where));
        break;
      case Kind::STRING:
        result.set(a.name(), a.s());
        break;
      case Kind::INTS:
        result.set(a.name(), Ints(a.ints().begin(), a.ints().end()));
        break;
      case Kind::FLOATS: {
        Floats numbers;
        for (float f : a.floats()) numbers.push_back(finite(f, a, node, where));
        result.set(a.name(), std::move(numbers));
        break;
      }
      case Kind::TENSOR:
        result.set(a.name(),
                   std::make_shared<const Tensor>(read_tensor(a.t(), label(a, where), files)));
        break;
      case Kind::GRAPH:
        if (has_bodies(node)) break;  // read by who knows what is around them
        fail_unsupported("{} is of type GRAPH, which is not supported", label(a, where));
      case Kind::STRINGS:
        if (a.name() == "activations") {
          result.set(a.name(), words(a, where));
          break;
        }
        [[fallthrough]];
      default:
        fail_unsupported("{} is of type {}, which is not supported", label(a, where),
                         kind_name(a.type()));
    }
  }
  return result;
}

bool has_bodies(const pb::NodeProto& node) {
  const std::string_view domain = plain_domain(node.domain());
  return (domain.empty() && is_control_flow(node.op_type())) || domain == kTrainscopeDomain;
}

pb::AttributeProto attribute_proto(std::string_view name, const Attribute& attribute) {
  pb::AttributeProto a;
  a.set_name(std::string(name));
  if (const auto* integer = std::get_if<std::int64_t>(&attribute)) {
    a.set_type(Kind::INT);
    a.set_i(*integer);
  } else if (const auto* number = std::get_if<double>(&attribute)) {
    a.set_type(Kind::FLOAT);
    a.set_f(to_float(*number));
  } else if (const auto* text = std::get_if<std::string>(&attribute)) {
    a.set_type(Kind::STRING);
    a.set_s(*text);
  } else if (const auto* integers = std::get_if<Ints>(&attribute)) {
    a.set_type(Kind::INTS);
    a.mutable_ints()->Add(integers->begin(), integers->end());
  } else if (const auto* numbers = std::get_if<Floats>(&attribute)) {
    a.set_type(Kind::FLOATS);
    for (double each : *numbers) a.add_floats(to_float(each));
  } else if (const auto* body = std::get_if<SharedGraph>(&attribute)) {
    a.set_type(Kind::GRAPH);
    *a.mutable_g() = body_proto(**body);
  } else {
    const SharedTensor& tensor = std::get<SharedTensor>(attribute);
    CHECK_INVARIANT(tensor != nullptr);
    a.set_type(Kind::TENSOR);
    *a.mutable_t() = tensor_proto("", *tensor);
  }
  return a;
}

}  // namespace trainscope
