// How a tensor core adds: mma.sync and wgmma on chosen inputs that tell order, alignment and
// rounding, and on random ones, whose result bits a simulation must give.
#include <cuda_bf16.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "bench/gpu/support.cuh"

namespace {

using trainscope::bench::check;
using trainscope::bench::check_launch;
using trainscope::bench::DeviceArray;
using trainscope::bench::Line;
using trainscope::bench::random_number;

// One tile: D[16, 8] = A[16, k] B[k, 8] + C[16, 8], all in f32 on the host's side.
constexpr int kRows = 16;
constexpr int kColumns = 8;
constexpr int kDepth = 16;

__device__ unsigned packed(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  unsigned bits;
  std::memcpy(&bits, &both, 4);
  return bits;
}

// Rows of A and columns of B in the fragments that PTX gives to the lanes of a warp.
__global__ void matmul_bf16(const float* a_all, const float* b_all, const float* c_all,
                            float* d_all) {
  const float* a = a_all + blockIdx.x * kRows * kDepth;
  const float* b = b_all + blockIdx.x * kDepth * kColumns;
  const float* c = c_all + blockIdx.x * kRows * kColumns;
  float* d = d_all + blockIdx.x * kRows * kColumns;
  const int group = static_cast<int>(threadIdx.x) / 4;
  const int pair = static_cast<int>(threadIdx.x) % 4 * 2;
  unsigned fa[4];
  for (int i = 0; i < 4; ++i) {
    const int row = group + (i % 2) * 8;
    const int column = pair + (i / 2) * 8;
    fa[i] = packed(a[row * kDepth + column], a[row * kDepth + column + 1]);
  }
  unsigned fb[2];
  for (int i = 0; i < 2; ++i) {
    const int row = pair + i * 8;
    fb[i] = packed(b[row * kColumns + group], b[(row + 1) * kColumns + group]);
  }
  float f[4];
  for (int i = 0; i < 4; ++i) f[i] = c[(group + (i / 2) * 8) * kColumns + pair + i % 2];
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
      : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) d[(group + (i / 2) * 8) * kColumns + pair + i % 2] = f[i];
}

// The same with k = 8 in tf32, whose operands keep 10 bits of their fractions.
__global__ void matmul_tf32(const float* a_all, const float* b_all, const float* c_all,
                            float* d_all) {
  const float* a = a_all + blockIdx.x * kRows * kDepth;
  const float* b = b_all + blockIdx.x * kDepth * kColumns;
  const float* c = c_all + blockIdx.x * kRows * kColumns;
  float* d = d_all + blockIdx.x * kRows * kColumns;
  const int group = static_cast<int>(threadIdx.x) / 4;
  const int lane = static_cast<int>(threadIdx.x) % 4;
  unsigned fa[4];
  for (int i = 0; i < 4; ++i)
    fa[i] = __float_as_uint(a[(group + (i % 2) * 8) * kDepth + lane + (i / 2) * 4]);
  unsigned fb[2];
  for (int i = 0; i < 2; ++i) fb[i] = __float_as_uint(b[(lane + i * 4) * kColumns + group]);
  float f[4];
  for (int i = 0; i < 4; ++i) f[i] = c[(group + (i / 2) * 8) * kColumns + lane * 2 + i % 2];
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
      : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  for (int i = 0; i < 4; ++i) d[(group + (i / 2) * 8) * kColumns + lane * 2 + i % 2] = f[i];
}

// The same tile of bf16 by Hopper's wgmma: A in registers as above, the same for each of the four
// warps, B in shared memory in two blocks of 8 columns by 8 elements of k, which lie 128 bytes
// apart.
// Only for a target that has all of the chip (sm_90a): elsewhere it leaves NaN.
__global__ void matmul_wgmma(const float* a_all, const float* b_all, const float* c_all,
                             float* d_all) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const float* a = a_all + blockIdx.x * kRows * kDepth;
  const float* b = b_all + blockIdx.x * kDepth * kColumns;
  const float* c = c_all + blockIdx.x * kRows * kColumns;
  float* d = d_all + blockIdx.x * kRows * kColumns;
  __shared__ alignas(128) __nv_bfloat16 shared_b[kDepth * kColumns];
  const int k = static_cast<int>(threadIdx.x) % kDepth;
  const int n = static_cast<int>(threadIdx.x) / kDepth;
  shared_b[(k / 8) * 64 + n * 8 + k % 8] = __float2bfloat16_rn(b[k * kColumns + n]);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4;
  const int pair = lane % 4 * 2;
  unsigned fa[4];
  for (int i = 0; i < 4; ++i) {
    const int row = group + (i % 2) * 8;
    const int column = pair + (i / 2) * 8;
    fa[i] = packed(a[row * kDepth + column], a[row * kDepth + column + 1]);
  }
  float f[4];
  for (int i = 0; i < 4; ++i) f[i] = c[(group + (i / 2) * 8) * kColumns + pair + i % 2];
  // Sixteenths of bytes: where B lies, from block to block along k (128) and along n (256).
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(shared_b));
  const std::uint64_t descriptor =
      ((address >> 4) & 0x3fff) | (std::uint64_t{128 >> 4} << 16) | (std::uint64_t{256 >> 4} << 32);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "%8, 1, 1, 1, 0;"
      : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
      : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "l"(descriptor));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  if (threadIdx.x >= 32) return;
  for (int i = 0; i < 4; ++i) d[(group + (i / 2) * 8) * kColumns + pair + i % 2] = f[i];
#else
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns; i += blockDim.x)
    d_all[blockIdx.x * kRows * kColumns + i] = nanf("");
#endif
}

enum class Kind { kBf16, kTf32, kWgmma };

int depth_of(Kind kind) { return kind == Kind::kTf32 ? 8 : kDepth; }

struct Tiles {
  explicit Tiles(std::size_t count)
      : a(count * kRows * kDepth), b(count * kDepth * kColumns), c(count * kRows * kColumns) {}
  std::size_t count() const { return c.size() / (kRows * kColumns); }
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> c;
};

std::vector<float> run(Kind kind, const Tiles& tiles) {
  DeviceArray<float> a(tiles.a.size());
  DeviceArray<float> b(tiles.b.size());
  DeviceArray<float> c(tiles.c.size());
  DeviceArray<float> d(tiles.c.size());
  const auto upload = [](const DeviceArray<float>& to, const std::vector<float>& from) {
    check(cudaMemcpy(to.get(), from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice),
          "copy to the device");
  };
  upload(a, tiles.a);
  upload(b, tiles.b);
  upload(c, tiles.c);
  const auto blocks = static_cast<unsigned>(tiles.count());
  if (kind == Kind::kBf16)
    matmul_bf16<<<blocks, 32>>>(a.get(), b.get(), c.get(), d.get());
  else if (kind == Kind::kWgmma)
    matmul_wgmma<<<blocks, 128>>>(a.get(), b.get(), c.get(), d.get());
  else
    matmul_tf32<<<blocks, 32>>>(a.get(), b.get(), c.get(), d.get());
  check_launch("mma.sync");
  return d.host();
}

// Element [0, 0] of a tile with addend c and products[i] = a[0, i] b[i, 0], each a power of two
// (or its negative) that a and b share between them so that neither leaves its range.
void set_products(Tiles& tiles, std::size_t tile, float addend,
                  const std::vector<std::pair<int, float>>& products) {
  tiles.c[tile * kRows * kColumns] = addend;
  for (const auto& [position, value] : products) {
    tiles.a[tile * kRows * kDepth + static_cast<std::size_t>(position)] = value;
    tiles.b[tile * kDepth * kColumns + static_cast<std::size_t>(position) * kColumns] = 1.0f;
  }
}

std::string hexadecimal(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  char text[16];
  std::snprintf(text, sizeof text, "\"%08x\"", bits);
  return text;
}

// Cases of one line each: addend, then products by position; `result` are bits.
void chosen_cases(Kind kind, const char* name) {
  const int depth = depth_of(kind);
  struct Case {
    float addend;
    std::vector<std::pair<int, float>> products;
  };
  std::vector<Case> cases;
  for (const float sign : {1.0f, -1.0f}) {
    for (int bit = 22; bit <= 30; ++bit) {
      const float small = sign * std::ldexp(1.0f, -bit);
      cases.push_back({1.0f, {{0, small}}});              // one product below the addend
      cases.push_back({1.0f, {{0, small}, {1, small}}});  // two, of one part of k
      cases.push_back({1.0f, {{0, small}, {depth - 1, small}}});
      cases.push_back({small, {{0, 1.0f}}});             // the addend below a product
      cases.push_back({0.0f, {{0, 1.0f}, {1, small}}});  // a product below another
      cases.push_back({0.0f, {{0, 1.0f}, {depth - 1, small}}});
      cases.push_back({-1.0f, {{0, 1.0f}, {1, small}}});  // what is left of it after cancelling
      cases.push_back({0.0f, {{0, 1.0f}, {1, small}, {2, -1.0f}}});
      cases.push_back({0.0f, {{0, 1.0f}, {1, small}, {depth - 1, -1.0f}}});
      cases.push_back({1.0f, {{0, small}, {1, small}, {2, small}, {3, small}}});
    }
  }
  Tiles tiles(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i)
    set_products(tiles, i, cases[i].addend, cases[i].products);
  const std::vector<float> results = run(kind, tiles);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string products;
    for (const auto& [position, value] : cases[i].products)
      products += (products.empty() ? "[" : ", [") + std::to_string(position) + ", " +
                  hexadecimal(value) + "]";
    Line("fragment")
        .text("instruction", name)
        .raw("addend", hexadecimal(cases[i].addend))
        .raw("products", "[" + products + "]")
        .raw("result", hexadecimal(results[i * kRows * kColumns]))
        .print();
  }
}

// 2^30 at i, -2^30 at j and `small` at p: which positions are added together shows in whether it
// is left. A string of digits, p fastest: 1 where the result is `small`.
void groups(Kind kind, const char* name, float small) {
  const int depth = depth_of(kind);
  const float large = std::ldexp(1.0f, 30);
  Tiles tiles(static_cast<std::size_t>(depth * depth * depth));
  std::size_t tile = 0;
  for (int i = 0; i < depth; ++i)
    for (int j = 0; j < depth; ++j)
      for (int p = 0; p < depth; ++p, ++tile)
        if (i != j && j != p && i != p)
          set_products(tiles, tile, 0.0f, {{i, large}, {j, -large}, {p, small}});
  const std::vector<float> results = run(kind, tiles);
  std::string left;
  for (std::size_t i = 0; i < tile; ++i) left += results[i * kRows * kColumns] == small ? '1' : '0';
  Line("fragment_groups")
      .text("instruction", name)
      .number("large", large)
      .number("small", small)
      .count("depth", depth)
      .text("left", left)
      .print();
}

// Largest distance from the sums in f64, over the sum of the magnitudes: some 1e-7 where the
// fragments lie as PTX says; tf32 keeps 10 bits of its operands, so some 1e-3.
double largest_error(Kind kind, const Tiles& tiles, const std::vector<float>& results) {
  const auto depth = static_cast<std::size_t>(depth_of(kind));
  double largest = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t tile = i / (kRows * kColumns);
    const std::size_t row = i % (kRows * kColumns) / kColumns;
    double sum = tiles.c[i];
    double magnitude = std::fabs(sum);
    for (std::size_t k = 0; k < depth; ++k) {
      const double product =
          static_cast<double>(tiles.a[(tile * kRows + row) * kDepth + k]) *
          static_cast<double>(tiles.b[(tile * kDepth + k) * kColumns + i % kColumns]);
      sum += product;
      magnitude += std::fabs(product);
    }
    largest = std::max(largest, std::fabs(results[i] - sum) / magnitude);
  }
  return largest;
}

// Tiles of random numbers whose exponents lie `spread` apart at most; their results go to a file.
// Element i of A, B, C of the case with this seed: random_number(seed + 0, 1 or 2, i) times 2 to a
// power that mixed() gives in the same way.
void random_tiles(Kind kind, const std::string& file, std::uint64_t seed, int spread) {
  Tiles tiles(1024);
  const auto fill = [&](std::vector<float>& values, std::uint64_t stream) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int power =
          static_cast<int>(trainscope::bench::mixed(stream * 977 + i) % (2 * spread + 1)) - spread;
      const float value = std::ldexp(random_number(stream, i), power);
      values[i] = kind != Kind::kTf32 ? __bfloat162float(__float2bfloat16_rn(value)) : value;
    }
  };
  fill(tiles.a, seed);
  fill(tiles.b, seed + 1);
  fill(tiles.c, seed + 2);
  const std::vector<float> results = run(kind, tiles);
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(results.data()),
               static_cast<std::streamsize>(results.size() * sizeof(float)));
  Line("fragment_file")
      .text("file", file.substr(file.rfind('/') + 1))
      .count("tiles", 1024)
      .count("seed", static_cast<long long>(seed))
      .count("spread", spread)
      .number("largest_error", largest_error(kind, tiles, results))
      .print();
}

}  // namespace

// fragments FOLDER: the folder takes the results of random tiles.
int main(int argument_count, char** arguments) {
  const std::string folder = argument_count > 1 ? arguments[1] : ".";
  const std::pair<Kind, const char*> kinds[] = {{Kind::kBf16, "mma.m16n8k16.bf16"},
                                                {Kind::kTf32, "mma.m16n8k8.tf32"},
                                                {Kind::kWgmma, "wgmma.m64n8k16.bf16"}};
  for (const auto& [kind, name] : kinds) {
    chosen_cases(kind, name);
    for (const float small : {1.0f, 64.0f, 128.0f, 256.0f}) groups(kind, name, small);
    random_tiles(kind, folder + "/" + name + "-near.f32", 100, 0);
    random_tiles(kind, folder + "/" + name + "-wide.f32", 200, 12);
  }
  return 0;
}
