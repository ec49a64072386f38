#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/matmul_shape.h"
#include "core/pointwise_loss.h"
#include "xpuruntime/core/data_type.h"
#include "xpuruntime/core/op_id.h"

// What crosses from the C++ side of the backend, which decides, to the CUDA side, which launches: plain data.

namespace xpuruntime::cuda {

struct Pointers {
  const void* inputs[6] = {};
  void* output = nullptr;
  void* second_output = nullptr;
  void* workspace = nullptr;
  void* fault = nullptr;  // 32 bits that a kernel sets where a value of the caller's cannot be right
};

enum class Activation : std::uint8_t { none, relu, gelu, silu };

/// What becomes of each sum of a product: activation(alpha * scale_a * scale_b * sum + beta * c). A bias is a c that
/// all rows share. c and the scales are the third, fourth and fifth input.
struct Finish {
  double alpha = 1;
  double beta = 0;  // 0: c is not read
  DataType c = DataType::float32;
  int rank = 0;  // of the output
  std::int64_t extent[8] = {};
  std::int64_t c_strides[8] = {};  // 0 where it is broadcast
  std::int64_t rows = 1;           // of one product
  std::int64_t columns = 1;
  bool scaled[2] = {};  // by rows, by columns
  std::int64_t scale_strides[2] = {};
  Activation activation = Activation::none;
};

/// Finishes sums that are in row-major order in the workspace, or in the output itself.
struct FinishLaunch {
  Finish finish = {};
  std::int64_t strides[8] = {};  // of the output
  DataType sums = DataType::float32;
  DataType output = DataType::float32;
  bool in_place = false;
};
cudaError_t launch(const FinishLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// One thread per output element, any strides, summed in float64, or in 64 bits where all are integers.
struct ReferenceLaunch {
  MatmulShape shape = {};
  DataType a = DataType::float32;
  DataType b = DataType::float32;
  DataType output = DataType::float32;
  bool integers = false;
  Finish finish = {};
};
cudaError_t launch(const ReferenceLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Which way the skinny product goes through b.
enum class SkinnyPath : std::uint8_t {
  held,     // 16-bit floats on tensor cores, b's columns contiguous: a stays in registers
  lanes,    // the same for one row, without tensor cores
  tiles,    // 16-bit floats on tensor cores, any layout: warps share k, and copy ahead to shared memory
  dots,     // b's columns are contiguous along k: warps share a column
  columns,  // b's rows are contiguous along n: each thread owns columns and walks k
};

/// Of one matrix.
struct PlaneStrides {
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// A product with few rows: activation(alpha * sum + beta * addend), rounded once. Sums are float32 in a fixed order.
/// On an H200 a launch takes about 0.15 us longer above 192 bytes of parameters: with its pointers this has fewer.
struct SkinnyLaunch {
  int m = 0;
  int n = 0;
  int k = 0;
  PlaneStrides a = {};
  PlaneStrides b = {};
  PlaneStrides c = {};
  DataType dtype = DataType::float32;
  DataType output = DataType::float32;
  SkinnyPath path = SkinnyPath::dots;
  bool vector = false;    // 16-byte loads
  bool along_k = false;   // tensor cores: b's columns are contiguous, else its rows
  int rows = 1;           // dots and columns: rows of a per block, 1, 2, 4 or 8
  int warps = 8;          // held, lanes and tiles: per block
  int pieces = 1;         // held: of 32 k's for each warp; lanes: of 8 k's for each thread
  int classes = 1;        // held and lanes: of columns that begin at the same place within 16 bytes
  int warps_per_dot = 1;  // dots: how many share a column
  int lanes = 32;         // columns: threads side by side
  int tile = 16;          // tiles: columns of a block; held: rows of a block
  int split = 1;          // tiles: blocks that share the sums of a tile, a cluster; a power of two
  int blocks = 1;         // held and lanes: of the grid
  float alpha = 1;
  float beta = 0;  // 0: there is no addend. It is the third input, c or a bias.
  DataType addend = DataType::float32;
  Activation activation = Activation::none;
  PlaneStrides addend_strides = {};
};
/// What a block of the path `tiles` may have, and needs for each warp.
struct TilesLimits {
  int most_warps = 0;
  std::uint64_t bytes_per_warp = 0;
};
TilesLimits tiles_limits(const SkinnyLaunch& launch);
cudaError_t launch(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Elementwise work over up to eight dims, the output's smallest stride last. Strides are those of the first input, the
/// second and the output.
struct ElementwiseShape {
  int rank = 0;
  std::int64_t extent[8] = {};
  std::int64_t strides[3][8] = {};
  std::int64_t count = 0;
  bool contiguous = false;  // all alike, aligned to 16 bytes
};

enum class ElementOp : std::uint8_t {
  add,
  sub,
  mul,
  div,
  silu_mul,
  relu,
  gelu,
  gelu_tanh,
  silu,
  sigmoid,
  tanh,
  log,
  exp,
  sqrt,
};

/// One or two inputs and an output of one dtype.
struct ElementLaunch {
  ElementwiseShape shape = {};
  ElementOp op = ElementOp::add;
  DataType dtype = DataType::float32;
  bool vectors = false;      // 16 bytes at a time: along the last dim each operand has neighbours, or one value for all
  std::int64_t between = 0;  // silu_mul of one input: bytes from the gate to the factor
};
cudaError_t launch_unary(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_binary(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// A function of one element or two, or a question about them. Dtypes are alike but in launch_reference, and the output
/// of a question is boolean.
struct PointwiseLaunch {
  ElementwiseShape shape = {};
  OpId op = OpId::abs;
  int inputs = 1;
  DataType dtypes[2] = {DataType::float32, DataType::float32};
  DataType output = DataType::float32;
  bool vectors = false;      // 16 bytes of the inputs at a time, as in ElementLaunch
  bool approximate = false;  // gelu
  double first = 0;          // attributes, in their order
  double second = 0;
  std::int64_t low = 0;  // bounds of integers
  std::int64_t high = 0;
};
cudaError_t launch_floats(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_integers(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_tests(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream);
/// Any dtypes, one by one: in float64, or in 64 bits where both inputs are integers.
cudaError_t launch_reference(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// The first input chooses between the second and the third.
struct WhereLaunch {
  ElementwiseShape shape = {};
  std::int64_t third[8] = {};  // strides of the third input
  int bytes = 4;               // of an element; 0: from one dtype to another
  DataType from = DataType::float32;
  DataType to = DataType::float32;
  bool vectors = false;  // 16 bytes of the second input at a time
};
cudaError_t launch(const WhereLaunch& launch, const Pointers& pointers, cudaStream_t stream);

struct CastLaunch {
  ElementwiseShape shape = {};
  DataType from = DataType::float32;
  DataType to = DataType::float32;
};
cudaError_t launch(const CastLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Which elements are kept, the number of each in row-major order says, with a seed and an offset: the second input, or
/// the one of set_seed and 0.
struct DropoutLaunch {
  ElementwiseShape shape = {};  // its dims in row-major order
  DataType dtype = DataType::float32;
  bool vectors = false;  // 16 bytes at a time
  unsigned round_keys[10][2] = {};
  std::int64_t seed_stride = 1;  // from the seed to the offset
  std::uint64_t threshold = 0;   // a random word below it drops its element; up to 2^32
  float kept_share = 1;          // what is kept is divided by it
  float inverse = 1;             // 1 / kept_share, rounded once
  bool multiplies = false;       // a product with `inverse` is rounded to the same 16 bits as the quotient
};
void set_seed(DropoutLaunch& launch, std::uint64_t seed);
cudaError_t launch(const DropoutLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Products with the second input's only element. The second output is 1 where one of them is not finite, else 0.
struct UnscaleLaunch {
  ElementwiseShape shape = {};
  DataType dtype = DataType::float32;  // of the input; outputs are float32
};
cudaError_t launch(const UnscaleLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Moves units of bytes; strides and extents count units.
struct CopyLaunch {
  ElementwiseShape shape = {};
  int unit = 4;           // bytes: 1, 2, 4, 8 or 16
  std::int64_t tail = 0;  // bytes after the last unit of one run
  bool tiled = false;     // the last dim is dense in the output, the one before it in the input
  std::int64_t from = 0;  // bytes to the first element of the input
  std::int64_t to = 0;    // and of the output
};
cudaError_t launch(const CopyLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Copies rows of a table that indices name.
struct EmbeddingLaunch {
  std::int64_t count = 0;   // of indices
  std::int64_t rows = 0;    // of the table
  std::int64_t units = 0;   // of a row
  std::int64_t stride = 0;  // from row to row, in units
  int unit = 4;             // bytes: 1, 2, 4, 8 or 16
  DataType index = DataType::int64;
};
cudaError_t launch(const EmbeddingLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Copies units of the first input that indices, the second, name. Strides count units; of the indices, elements.
struct GatherLaunch {
  ElementwiseShape shape = {};
  int columns = 1;               // indices of one position
  std::int64_t next[8] = {};     // from its first index to each
  std::int64_t steps[8] = {};    // of the first input, from index to index
  std::int64_t extents[8] = {};  // indices are from -extent to extent - 1
  int unit = 4;                  // bytes: 1, 2, 4, 8 or 16
  DataType index = DataType::int64;
};
cudaError_t launch(const GatherLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Where along a dim of the input the output's elements come from.
enum class Source : std::uint8_t {
  same,    // the same place
  cut,     // `first` further; outside they are filled
  edge,    // ... the first or the last
  wrap,    // ... from the other end
  mirror,  // ... back again, without the edge twice
};
struct ArrangedDim {
  std::int64_t extent = 1;  // of the output
  std::int64_t from = 0;    // strides, in units
  std::int64_t to = 0;
  Source source = Source::same;
  std::int64_t first = 0;
  std::int64_t size = 1;      // of the input; of `mirror` until it begins again
  std::int64_t diagonal = 0;  // what one place along it adds to the number of a diagonal
};

/// Units from places that each dim computes for itself, the output's smallest stride last, and a triangle of them.
struct ArrangeLaunch {
  int rank = 0;
  ArrangedDim dims[8] = {};
  std::int64_t count = 0;  // of units
  bool small = false;      // 32 bits hold all places
  int unit = 4;            // bytes: 1, 2, 4, 8 or 16
  int size = 4;            // of an element, in bytes
  bool has_value = false;  // the second input fills, else 0
  DataType value = DataType::float32;
  DataType dtype = DataType::float32;
  int triangle = 0;             // 1: diagonals from `diagonal` on are kept; -1: those up to it; 0: all
  std::int64_t diagonal = 0;    // the main one is 0
  std::int64_t neighbours = 0;  // from a unit's element to the next, in diagonals
};
cudaError_t launch(const ArrangeLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Places of extremes along lines: a block has `across` lines, and `along` threads for each.
struct ArgLaunch {
  static constexpr int most_threads = 1024;
  ElementwiseShape lines = {};  // their first elements
  std::int64_t length = 1;
  std::int64_t step = 1;  // along a line
  DataType dtype = DataType::float32;
  DataType output = DataType::int64;
  bool largest = true;
  bool last = false;  // of equal ones
  int along = 1;      // a power of two
  int across = 32;
  bool along_first = false;  // threads side by side are of one line
};
cudaError_t launch(const ArgLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Tokens that go into caches: 0 is of keys, 1 of values. Strides count units.
struct AppendShape {
  struct Cache {
    int unit = 4;               // bytes: 1, 2, 4, 8 or 16
    std::int64_t units = 0;     // of one head of one token
    std::int64_t from[4] = {};  // of what is added: sequence, token, head, unit
    std::int64_t to[4] = {};    // of the cache: block, slot, head, unit
  };
  Cache caches[2] = {};
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;  // of each sequence
  std::int64_t heads = 0;
  std::int64_t blocks = 0;  // pages, or sequences
  std::int64_t slots = 0;   // of a block
  std::int64_t room = 0;    // lengths are below it
  bool paged = false;
  DataType length = DataType::int64;
  std::int64_t length_stride = 0;
  DataType page = DataType::int64;
  std::int64_t page_strides[2] = {};
};

struct AppendLaunch {
  AppendShape shape = {};
  CopyLaunch copies[2] = {};  // of caches that are not written in place
};
cudaError_t launch(const AppendLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Where the angles of a position are, in elements.
struct AngleTable {
  DataType dtype = DataType::float32;
  std::int64_t row = 0;   // from position to position
  std::int64_t step = 1;  // from pair to pair
};

struct RopeLaunch {
  ElementwiseShape heads = {};  // the second input is the positions
  std::int64_t size = 0;        // of a head
  std::int64_t pairs = 0;
  std::int64_t input_step = 1;  // from element to element of a head
  std::int64_t output_step = 1;
  std::int64_t positions = 0;  // of the tables
  AngleTable cos = {};
  AngleTable sin = {};
  DataType dtype = DataType::float32;
  DataType position = DataType::int64;
  bool interleaved = false;
  bool vectors = false;  // 16 bytes at a time
};
cudaError_t launch(const RopeLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Rows whose elements are neighbours.
struct RowShape {
  std::int64_t rows = 0;
  int columns = 0;
  std::int64_t input_stride = 0;  // from row to row, in elements
  std::int64_t output_stride = 0;
};

/// How many threads share a row, and how much of it each of them holds.
struct RowTeam {
  int lanes = 32;  // up to 32, a power of two: of a warp. More, a multiple of 32: a block.
  int held = 1;    // vectors of 16 bytes that a thread keeps in registers: 1, 2, 4 or 8. 0: rows are read twice.
  int blocks = 1;  // that share a row, a cluster
  int staged = 0;  // further vectors that a thread keeps in shared memory

  static constexpr int block_threads = 128;  // where a block has several rows
  static constexpr int most_blocks = 8;
  static constexpr int most_staged = 13;  // of 512 threads: two such blocks fit a multiprocessor of Hopper's
  constexpr int threads() const { return lanes > 32 ? lanes : block_threads; }
  constexpr std::int64_t blocks_for(std::int64_t rows) const {
    const std::int64_t each = threads() / lanes;
    return (rows + each - 1) / each * blocks;
  }
};

/// Sums are float32 in a fixed order.
struct RowLaunch {
  RowShape shape = {};
  RowTeam team = {};
  OpId op = OpId::softmax;
  DataType dtype = DataType::float32;
  DataType parameters[2] = {};  // of weight and bias: the dtype, or float32
  float eps = 0;
  int most_blocks = 1;               // of a norm's grid: blocks go from row to row
  std::int64_t residual_stride = 0;  // of add_rms_norm, from row to row, in elements
  std::int64_t sum_stride = 0;
};
cudaError_t launch_norm(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_softmax(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Where losses go: each to the output, or sums of some to the workspace, and their sum, divided, to the output.
struct LossOutput {
  DataType dtype = DataType::float32;
  bool reduced = true;
  double divisor = 0;      // of the sum; 0: the sum of the weights
  std::int64_t parts = 0;  // sums in the workspace
};
/// Adds up the parts in a fixed order, in float64, where losses are reduced.
cudaError_t launch_sum(const LossOutput& output, const Pointers& pointers, cudaStream_t stream);
/// Workspace for the parts.
std::uint64_t loss_bytes(const LossOutput& output);

/// Classes, the second input, and optionally a weight for each, the third.
struct ClassTargets {
  std::int64_t classes = 0;
  std::int64_t ignore_index = -100;
  DataType dtype = DataType::int64;
  DataType weight = DataType::float32;
};

/// A part for each row, or for each block of those that go from row to row.
struct CrossEntropyLaunch {
  RowShape shape = {};
  RowTeam team = {};
  DataType dtype = DataType::float32;
  std::int64_t target_stride = 0;
  ClassTargets targets = {};
  LossOutput output = {};
};
cudaError_t launch(const CrossEntropyLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// A part for each block.
struct NllLossLaunch {
  ElementwiseShape shape = {};    // of the targets, which are the second input
  std::int64_t class_stride = 0;  // of the first input, whose class dim `shape` leaves out
  DataType dtype = DataType::float32;
  ClassTargets targets = {};
  LossOutput output = {};
};
cudaError_t launch(const NllLossLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// A part for each block.
struct PointwiseLossLaunch {
  ElementwiseShape shape = {};
  PointwiseLossTerms terms = {};
  DataType dtype = DataType::float32;
  DataType target = DataType::float32;  // the dtype, or integers
  LossOutput output = {};
};
cudaError_t launch(const PointwiseLossLaunch& launch, const Pointers& pointers, cudaStream_t stream);

enum class Fold : std::uint8_t { sum, mean, max, min };

inline constexpr int many_rows_lanes = 16;  // threads side by side in such a block

/// The middle of three dims is reduced; the last one's elements are neighbours, and those of the middle where the last
/// has one. Sums are float32 in a fixed order.
struct ReduceLaunch {
  std::int64_t outer = 1;
  std::int64_t length = 1;
  std::int64_t inner = 1;
  std::int64_t input_stride = 0;  // from one of `outer` to the next, in elements
  std::int64_t step = 1;          // from one of `length` to the next
  Fold fold = Fold::sum;
  DataType dtype = DataType::float32;
  DataType output = DataType::float32;
  bool vector = false;           // inner > 1: 16-byte loads
  bool many_rows = false;        // ... by large blocks that take a narrow strip from top to bottom
  RowTeam team = {};             // inner = 1
  int parts = 1;                 // `length` is cut into as many; their results meet in the workspace
  std::int64_t part_length = 1;  // of all but the last
  std::int64_t divisor = 1;      // of a mean
  RowTeam last_team = {};        // for the parts, where inner = 1
};
cudaError_t launch(const ReduceLaunch& launch, const Pointers& pointers, cudaStream_t stream);

}  // namespace xpuruntime::cuda
