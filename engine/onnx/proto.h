// ONNX's protobuf classes under one short name; private to engine/onnx.
#pragma once

#include <onnx/onnx_pb.h>

namespace trainscope {
namespace pb = ::onnx;
}
