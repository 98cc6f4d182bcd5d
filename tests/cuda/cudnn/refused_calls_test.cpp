// Descriptors that both libraries refuse, NVIDIA's and the simulated one.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/cudnn/cudnn.h"
#include "kernels/cuda/cudnn/descriptor.h"
#include "tests/cuda/cudnn/library.h"

namespace trainscope::test {
namespace {

using cuda::CudnnDescriptor;
using cuda::CudnnFailure;

// What is left out of a descriptor, or put in wrongly.
enum class Fault : std::uint8_t {
  kNone,
  kNoStrides,
  kNoType,
  kOneStrideLess,
  kTypeOfAttribute,
  kNotFinalized,
  kOtherDescriptor,
  kNoResult,
  kInnerSize,
  kResultSize,
  kSetTwice,
  kForeignAttribute,
};

CudnnDescriptor tensor(CudnnFailure& failure, std::int64_t uid, std::vector<std::int64_t> dims,
                       Fault fault = Fault::kNone) {
  std::vector<std::int64_t> strides = {dims[1] * dims[2], dims[2], 1};
  if (fault == Fault::kOneStrideLess) strides.pop_back();
  CudnnDescriptor made(failure, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  if (fault != Fault::kNoType) made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  if (fault != Fault::kNoStrides) {
    made.set_all(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
  }
  made.set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(dims))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  if (fault == Fault::kTypeOfAttribute) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 1.0F);
  if (fault == Fault::kForeignAttribute) made.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  if (fault == Fault::kNotFinalized) return made;
  made.finalize();
  if (fault == Fault::kSetTwice) made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid + 100);
  return made;
}

// What is said of a matmul [1, 4, 8] [1, 8, 16] with this fault.
std::string said_of(Fault fault) {
  CudnnFailure failure;
  const CudnnDescriptor a = tensor(failure, 1, {1, 4, fault == Fault::kInnerSize ? 7 : 8}, fault);
  const CudnnDescriptor b = tensor(failure, 2, {1, 8, 16});
  const CudnnDescriptor c = tensor(failure, 3, {1, 4, fault == Fault::kResultSize ? 15 : 16});
  CudnnDescriptor how(failure, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matmul");
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  CudnnDescriptor op(failure, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul op");
  op.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, fault == Fault::kOtherDescriptor ? b : how)
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  if (fault != Fault::kNoResult) op.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  op.finalize();
  return failure.text();
}

// Those that NVIDIA's library takes, up to where an op is finalized; the simulated one does not.
constexpr Fault kTaken[] = {Fault::kNoType, Fault::kNotFinalized, Fault::kOtherDescriptor};
constexpr Fault kRefused[] = {Fault::kNoStrides, Fault::kOneStrideLess,   Fault::kTypeOfAttribute,
                              Fault::kNoResult,  Fault::kInnerSize,       Fault::kResultSize,
                              Fault::kSetTwice,  Fault::kForeignAttribute};

void check_refused(std::span<const Fault> faults) {
  for (const Fault fault : faults) {
    CAPTURE(static_cast<int>(fault));
    const std::string said = said_of(fault);
    CHECK(said.starts_with("cudnnBackend"));
    CHECK(said.find("of a descriptor (") != std::string::npos);
    CHECK(said.find(": status ") != std::string::npos);
  }
}

TEST_CASE("cudnn: faults of descriptors are refused by the simulated library") {
  REQUIRE(load_simulated_cudnn() == "");
  CHECK(said_of(Fault::kNone) == "");
  check_refused(kRefused);
  check_refused(kTaken);
}

TEST_SUITE("long" * doctest::skip(!has_real_cudnn())) {
  TEST_CASE("cudnn: faults of descriptors are refused by NVIDIA's library") {
    REQUIRE(load_real_cudnn() == "");
    CHECK(said_of(Fault::kNone) == "");
    check_refused(kRefused);
    for (const Fault fault : kTaken) CHECK(said_of(fault) == "");
  }
}

}  // namespace
}  // namespace trainscope::test
