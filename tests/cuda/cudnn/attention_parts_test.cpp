// Attention before a library is asked: parts of its gradient, and what no library is asked for.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/cudnn/attention_graphs.h"
#include "kernels/cuda/cudnn/attention_limits.h"

namespace trainscope::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

cuda::AttentionShape whole_attention() {
  return {.batch = 12,
          .heads = 4,
          .kv_heads = 4,
          .tokens = 64,
          .keys = 64,
          .width = 64,
          .bias = {12, 1, 1, 64}};
}

TEST_CASE("cudnn: gradients of attention are computed in parts of the batch that divide it") {
  cuda::AttentionShape shape = whole_attention();
  // Scores of an entry: 32 KiB; its operands: 256 KiB.
  CHECK(cuda::attention_grad_part(shape).batch == 12);
  shape.tokens = shape.keys = 2048;
  const cuda::AttentionShape part = cuda::attention_grad_part(shape);
  // 32 MiB against 8 MiB of an entry, 96 MiB of the batch: 3 entries.
  CHECK(part.batch == 3);
  CHECK(part.groups == 1);
  CHECK(part.bias == cuda::Dims{3, 1, 1, 64});
  CHECK(cuda::most_attention_grad_workspace_bytes(shape) == 2 * 96 * kMiB + 256 * kMiB);
}

TEST_CASE("cudnn: ... and of the heads of an entry whose scores alone are more") {
  cuda::AttentionShape shape = whole_attention();
  shape.tokens = shape.keys = 16384;
  shape.heads = 8;
  shape.bias = {12, 8, 1, 16384};
  // 4 GiB of scores of an entry, 1152 MiB of the batch: heads of k and v one by one, with two of q.
  const cuda::AttentionShape part = cuda::attention_grad_part(shape);
  CHECK(part.batch == 1);
  CHECK(part.groups == 4);
  CHECK(part.heads == 2);
  CHECK(part.kv_heads == 1);
  CHECK(part.bias == cuda::Dims{1, 2, 1, 16384});
  // Rows of tokens are those of all heads.
  CHECK(part.q_row() == shape.q_row());
  CHECK(part.kv_row() == shape.kv_row());
  CHECK(part.y_row() == shape.y_row());
  cuda::AttentionShape packed = part;
  packed.packed = shape.packed = true;
  CHECK(packed.q_row() == shape.q_row());
}

// --- What is not given to the library ------------------------------------------------------------

constexpr cuda::CudnnPlace kH200{.version = 91900, .major_capability = 9};

bool takes(const cuda::AttentionShape& shape, const cuda::CudnnPlace& place) {
  return cuda::why_not_attention(shape, place).empty();
}
bool takes_grad(const cuda::AttentionShape& shape, const cuda::CudnnPlace& place) {
  return cuda::why_not_attention_grad(shape, place).empty();
}

TEST_CASE("cudnn: gradients that can be NaN are not its work") {
  cuda::AttentionShape shape = whole_attention();
  constexpr cuda::CudnnPlace kLater{.version = 92600, .major_capability = 9};
  for (const std::int64_t keys : {64, 192, 1088}) {
    shape.keys = keys;
    shape.causal = false;
    CHECK_FALSE(takes_grad(shape, kH200));
    CHECK(takes_grad(shape, kLater));
    CHECK(takes(shape, kH200));
    shape.causal = true;
    CHECK(takes_grad(shape, kH200));
  }
  shape.causal = false;
  for (const std::int64_t keys : {63, 65, 128, 1000}) {
    shape.keys = keys;
    CHECK(takes_grad(shape, kH200));
  }
  shape.tokens = 1;
  CHECK_FALSE(takes_grad(shape, kLater));
  CHECK(takes(shape, kLater));
  shape.tokens = 64;
  shape.keys = 1;
  CHECK_FALSE(takes_grad(shape, kLater));
}

TEST_CASE("cudnn: sums that may have no fixed order are not its work, nor are old versions") {
  cuda::AttentionShape shape = whole_attention();
  shape.keys = 128;
  constexpr cuda::CudnnPlace kA100{.version = 91900, .major_capability = 8};
  constexpr cuda::CudnnPlace kB200{.version = 91900, .major_capability = 10};
  constexpr cuda::CudnnPlace kOlder{.version = 91599, .major_capability = 9};
  for (const cuda::CudnnPlace& place : {kA100, kH200}) {
    CHECK(takes(shape, place));
    CHECK(takes_grad(shape, place));
  }
  CHECK_FALSE(takes(shape, kB200));
  CHECK_FALSE(takes_grad(shape, kB200));
  CHECK_FALSE(takes(shape, kOlder));
  CHECK_FALSE(takes_grad(shape, kOlder));
  shape.heads = shape.kv_heads = 8;
  CHECK(takes(shape, kB200));
  CHECK_FALSE(takes_grad(shape, kB200));
}

}  // namespace
}  // namespace trainscope::test
