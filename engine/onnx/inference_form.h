// Nodes that behave differently in training, in the form they have in inference.
#pragma once

#include <string>
#include <vector>

#include "engine/onnx/proto.h"

namespace trainscope {

// Removes Dropout and switches BatchNormalization to its running statistics, in place. `results`
// are the names that must still be produced afterwards.
void use_inference_form(google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes,
                        const std::vector<std::string>& results, int opset);

}  // namespace trainscope
