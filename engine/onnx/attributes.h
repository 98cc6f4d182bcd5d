// AttributeProto to Attribute and back.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/ir/attributes.h"
#include "engine/onnx/proto.h"
#include "engine/onnx/tensor_file.h"

namespace trainscope {

// Names, kinds and tensors of a node's attributes, of every kind that ONNX has; kBadInput with
// `where` ("node 'x' (Conv)") for duplicates, a kind that contradicts the content, bad tensors.
// In functions an attribute may refer to one of the caller's.
enum class AttributeRefs : std::uint8_t { kRefused, kAllowed };
void check_attributes(const pb::NodeProto& node, std::string_view where, ExternalFiles& files,
                      AttributeRefs refs = AttributeRefs::kRefused);

// Whether the node's attributes may be graphs: If, Loop, Scan, and ops of our own.
bool has_bodies(const pb::NodeProto& node);

// The attributes of a node that passed check_attributes; references to a function's attributes are
// left out, and so are graphs where there may be some. Fails for kinds that no op of ours has
// (lists of strings or tensors) and for numbers that are not finite, except in Constant.
Attributes read_attributes(const pb::NodeProto& node, std::string_view where, ExternalFiles& files);

pb::AttributeProto attribute_proto(std::string_view name, const Attribute& attribute);

}  // namespace trainscope
