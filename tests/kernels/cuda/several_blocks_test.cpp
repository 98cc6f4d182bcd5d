// Elementwise kernels, reductions and movements on shapes that the op suite's examples do not
// reach: several blocks, packs with a rest, chunks, tiles with a rest, rows named often.
#include <doctest/doctest.h>

#include "tests/kernels/cuda/checked_kernels.h"

namespace trainscope::test {

TEST_CASE("cuda several blocks: packs, and what does not fill one") {
  check_kernels("Add", "[5001], [5001]");
  check_kernels("Add", "[9,1028], [1028]");
  check_kernels("Add", "[9,1030], [1030]");
  check_kernels("Mul", "[7,12,36], [7,1,36]");
  check_kernels("Mul", "[7,12,36], [12,1]");
  check_kernels("Sub", "[3,1,40], [1,25,1]");
  check_kernels("Where", "bool[3,1,40], [25,1], [40]");
  check_kernels("Gelu", "[2,1023]");
  check_kernels("PowGrad", "[30,44], [30,44]>0, [44]");
}

TEST_CASE("cuda several blocks: sums that are cut into chunks") {
  check_kernels("ReduceSum", "[3001,5], i64[1]={0}");
  check_kernels("ReduceSum", "[1500,72], i64[1]={0}");
  check_kernels("ReduceSum", "[2,40000], i64[1]={1}");
  check_kernels("ReduceSum", "[40,33,50], i64[2]={0,2}");
  check_kernels("ReduceMean", "[20,1100], i64[1]={1}");
  check_kernels("ReduceMax", "[33000]");
  check_kernels("ReduceSum", "[600,1030], i64[1]={1}");
}

TEST_CASE("cuda several blocks: matrices of several tiles, with a rest") {
  check_kernels("Transpose", "[70,45]; perm={1,0}");
  check_kernels("Transpose", "[3,33,5,66]; perm={0,3,2,1}");
  check_kernels("Transpose", "[2,40,6,36]; perm={0,2,1,3}");
  check_kernels("Transpose", "[40,6,34]; perm={2,0,1}");
}

TEST_CASE("cuda several blocks: rows that many indices name") {
  check_kernels("Gather", "[300,36], i64[40,7]<300");
  check_kernels("Gather", "[5,300,3], i64[41]<300; axis=1");
  check_kernels("GatherGrad", "[1500,132], i64[1500]<3; shape={3,132}");
  check_kernels("GatherGrad", "[2100,5], i64[2100]<700; shape={700,5}");
  check_kernels("CumSum", "[5,3,100], i64[]={2}");
  check_kernels("CumSum", "[3,70,40], i64[]={1}; reverse=1 exclusive=1");
  check_kernels("ArgMax", "[40,300]; axis=1");
}

}  // namespace trainscope::test
