// SumRowsById(dy [ids.., inner], ids [..], size []) -> sums [most, inner], ids [most], count []:
// the rows of each id that occurs added up, by ascending id.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/movement/movement.h"
#include "kernels/cuda/movement/row_sums.h"
#include "kernels/cuda/support/id_sort.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

struct SumRowsPlan {
  std::int64_t size = 0;   // rows that ids name
  std::int64_t count = 0;  // of ids

  std::int64_t most() const { return std::min(size, count); }  // sums there can be
};

// Workspace: the sorted ids, then for each how many sums begin before it (behind the last one: how
// many there are), then where each sum begins among them, and their end.
struct SumRowsMemory {
  std::uint32_t* numbers = nullptr;  // [count + 1]
  std::uint32_t* begins = nullptr;   // [most + 1]

  SumRowsMemory(void* workspace, const SumRowsPlan& plan) {
    auto* bytes = static_cast<std::byte*>(workspace);
    numbers = reinterpret_cast<std::uint32_t*>(bytes + id_sort_bytes(plan.count));
    begins = numbers + plan.count + 1;
  }
  static std::size_t bytes(const SumRowsPlan& plan) {
    const auto words = static_cast<std::size_t>(plan.count + 1 + plan.most() + 1);
    return id_sort_bytes(plan.count) + words * sizeof(std::uint32_t);
  }
};

struct IdRuns {
  const std::uint32_t* rows = nullptr;  // sorted; `size` of an id outside
  std::uint32_t count = 0;
  std::uint32_t size = 0;
  std::uint32_t most = 0;

  __device__ bool begins_at(std::uint32_t n) const {
    return n < count && rows[n] < size && (n == 0 || rows[n - 1] != rows[n]);
  }
  // Of the ids that name a row.
  __device__ bool ends_before(std::uint32_t n) const {
    return (n == count || rows[n] == size) && (n == 0 || rows[n - 1] < size);
  }
};

// A thread a sorted id, and one more. Bytes: 8 read, 4 written.
__global__ void __launch_bounds__(kPackThreads) mark_sums(IdRuns runs, std::uint32_t* numbers) {
  const std::uint32_t n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n <= runs.count) numbers[n] = runs.begins_at(n) ? 1 : 0;
}

// `ids` and `count` may be null: nobody wants them. A thread a sorted id, and one more. Bytes: 16
// read, 12 more for each id that occurs, for which 12 are written.
__global__ void __launch_bounds__(kPackThreads)
    write_sums(IdRuns runs, const std::uint32_t* numbers, std::uint32_t* begins, std::int64_t* ids,
               std::int64_t* count) {
  const std::uint32_t n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n > runs.count) return;
  const std::uint32_t sums = numbers[runs.count];
  if (runs.begins_at(n)) {
    begins[numbers[n]] = n;
    if (ids != nullptr) ids[numbers[n]] = runs.rows[n];
  }
  if (runs.ends_before(n)) begins[sums] = n;
  if (ids != nullptr && n >= sums && n < runs.most) ids[n] = 0;
  if (count != nullptr && n == 0) *count = sums;
}

Support supports_sum_rows(const PrepareArgs& args) {
  if (args.inputs[2].data == nullptr) {
    return {.why_not = "on CUDA the number of rows that ids name must be known"};
  }
  return supports_ids(args.inputs[1].elements(), *args.inputs[2].as<const std::int64_t>());
}

Prepared prepare_sum_rows(const PrepareArgs& args) {
  const SumRowsPlan plan{.size = *args.inputs[2].as<const std::int64_t>(),
                         .count = args.inputs[1].elements()};
  return {.workspace_bytes = SumRowsMemory::bytes(plan),
          .state = std::make_shared<const SumRowsPlan>(plan)};
}

template <class T>
T* written(const RunArgs& run, std::size_t output) {
  const bool wanted = output < run.outputs.size() && run.outputs[output].present;
  return wanted ? run.outputs[output].as<T>() : nullptr;
}

template <class T>
void run_sum_rows(const RunArgs& run) {
  const auto& plan = *static_cast<const SumRowsPlan*>(run.state);
  const SumRowsMemory memory(run.workspace, plan);
  const Ids ids{.data = run.inputs[1].data,
                .dtype = run.inputs[1].type.dtype,
                .count = plan.count,
                .size = plan.size,
                .negative = Negative::kFromTheEnd};
  const SortedIds sorted = sort_ids(run.call, ids, run.workspace);
  IdRuns runs;
  runs.rows = sorted.rows;
  runs.count = static_cast<std::uint32_t>(plan.count);
  runs.size = static_cast<std::uint32_t>(plan.size);
  runs.most = static_cast<std::uint32_t>(plan.most());
  const Grid grid{.blocks = blocks_for(plan.count + 1), .threads = kPackThreads};
  launch(run.call, grid, mark_sums, runs, memory.numbers);
  scan_exclusive(run.call, memory.numbers, plan.count + 1);
  launch(run.call, grid, write_sums, runs, memory.numbers, memory.begins,
         written<std::int64_t>(run, 1), written<std::int64_t>(run, 2));
  T* y = written<T>(run, 0);
  if (y == nullptr || run.outputs[0].elements() == 0) return;
  const IndexedRows shape{
      .size = plan.most(), .inner = run.outputs[0].elements() / plan.most(), .count = plan.count};
  sum_rows<T>(run.call, shape,
              {.positions = sorted.positions,
               .begins = memory.begins,
               .ends = memory.begins + 1,
               .wanted = memory.numbers + plan.count},
              {.terms = run.inputs[0].as<const T>(), .sum = nullptr, .y = y});
}

}  // namespace

void add_sums_by_id(KernelTable& table) {
  for_float_types([&](auto* type) {
    using T = Pointee<decltype(type)>;
    table.add("SumRowsById", kDTypeOf<T>,
              {.name = "sum_rows_by_id.cuda",
               .supports = supports_sum_rows,
               .prepare = prepare_sum_rows,
               .run = run_sum_rows<T>});
  });
}

}  // namespace trainscope::cuda
