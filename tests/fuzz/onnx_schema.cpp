// Writes the schema of the packaged ONNX classes as a FileDescriptorSet: onnx_schema FILE.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <onnx/onnx_pb.h>

#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  google::protobuf::FileDescriptorSet set;
  onnx::ModelProto::descriptor()->file()->CopyTo(set.add_file());
  std::ofstream file(argv[1], std::ios::binary);
  return set.SerializeToOstream(&file) && file.flush() ? 0 : 1;
}
