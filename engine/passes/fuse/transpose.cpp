// fuse_transpose: a matmul reads a transposed matrix as it is stored, without a Transpose.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

// A matmul whose matrices may be stored transposed, and the attributes that say so.
struct Matmul {
  std::string_view op;
  std::string_view domain;
  const char* transpose[2];
};
constexpr Matmul kGemm{"Gemm", kOnnxDomain, {"transA", "transB"}};
constexpr Matmul kBatchMatMul{"BatchMatMul", kTrainscopeDomain, {"transpose_a", "transpose_b"}};

const Matmul* matmul_of(const Graph& graph, const Node& node) {
  if (is_op(node, kOnnxDomain, kGemm.op)) return &kGemm;
  if (is_op(node, kBatchMatMul.domain, kBatchMatMul.op)) return &kBatchMatMul;
  // A vector has nothing to transpose.
  const bool matrices = is_op(node, kOnnxDomain, "MatMul") &&
                        graph.value(node.inputs[0]).type.shape.rank >= 2 &&
                        graph.value(node.inputs[1]).type.shape.rank >= 2;
  return matrices ? &kBatchMatMul : nullptr;
}

Ints permutation_of(const Graph& graph, const Node& transpose) {
  Ints permutation = transpose.attributes.integers("perm");
  if (!permutation.empty()) return permutation;
  for (int axis = graph.value(transpose.inputs[0]).type.shape.rank - 1; axis >= 0; --axis) {
    permutation.push_back(axis);
  }
  return permutation;
}

// What is left of a permutation when the matmul exchanges the last two axes: worth it when that is
// nothing, or when the last axis then stays the last, so that whole rows move.
std::optional<Ints> rest_of(Ints permutation) {
  const std::size_t rank = permutation.size();
  if (rank < 2) return std::nullopt;
  const auto last = static_cast<std::int64_t>(rank) - 1;
  if (permutation[rank - 1] == last || permutation[rank - 2] != last) return std::nullopt;
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return permutation;
}

// The matrix that operand `index` of the matmul may read instead, or kNoValue.
ValueId stored_matrix(Rewriter& rewriter, NodeId id, std::size_t index) {
  const Graph& graph = rewriter.graph();
  const NodeId producer = graph.value(graph.node(id).inputs[index]).producer;
  if (producer == kNoNode || !is_op(graph.node(producer), kOnnxDomain, "Transpose"))
    return kNoValue;
  const std::optional<Ints> rest = rest_of(permutation_of(graph, graph.node(producer)));
  if (!rest) return kNoValue;
  const ValueId source = graph.node(producer).inputs[0];
  if (std::ranges::is_sorted(*rest)) return source;
  return rewriter.before(producer)("Transpose", {source}, {{"perm", *rest}});
}

bool rewrite(Rewriter& rewriter, NodeId id) {
  const Graph& graph = rewriter.graph();
  const Matmul* matmul = matmul_of(graph, graph.node(id));
  if (matmul == nullptr) return false;
  std::vector<ValueId> inputs = graph.node(id).inputs;
  Attributes attributes = graph.node(id).attributes;
  bool any = false;
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId stored = stored_matrix(rewriter, id, i);
    if (stored == kNoValue) continue;
    const std::string flag(matmul->transpose[i]);
    attributes.set(flag, std::int64_t{attributes.integer(flag, 0) == 0});
    inputs[i] = stored;
    any = true;
  }
  if (!any) return false;
  const ValueId result = rewriter.before(id)(matmul->op, inputs, std::move(attributes));
  rewriter.replace_node(id, {result});
  return true;
}

bool absorb_transposes(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  for (NodeId id : graph.order()) {
    if (rewrite(rewriter, id)) context.count("matmuls rewritten");
  }
  return rewriter.changed();
}

}  // namespace

Pass fuse_transpose_pass() {
  return {.name = "fuse_transpose",
          .formerly = "transposed_products",
          .doc = "Let matmuls read transposed matrices as they are stored.",
          .run = absorb_transposes,
          .in_bodies = true};
}

}  // namespace trainscope
