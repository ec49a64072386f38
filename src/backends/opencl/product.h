#pragma once

#include "backends/opencl/launch.h"
#include "core/matmul_shape.h"

namespace xpuruntime::opencl {

struct ConvShape;

// The structs of kernels/product.cl.

/// Elements from one row, column or batch index to the next; zero where an operand is repeated.
struct Walk {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t batch[max_batch_dims] = {};
};

/// c[m,n] = finished(sum over k of a[m,k] * b[k,n]), for each batch index.
struct ProductShape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t k_total = 0;  // where the first batch dim is parts of k: all of them
  std::int64_t count = 1;    // of batches
  std::int64_t rank = 0;     // batch dims
  std::int64_t extent[max_batch_dims] = {};
  Walk a = {};
  Walk b = {};
  Walk c = {};
  Walk d = {};  // what is added
};

/// What becomes of each sum: activation(alpha * scale of the row * scale of the column * sum + beta * d).
struct Finish {
  std::int64_t scale_stride[2] = {};
  float alpha = 1;
  float beta = 0;  // 0: d is not read
  std::int32_t activation = 0;
  std::int32_t scaled = 0;  // bit 0: by rows, bit 1: by columns
};

/// Where a launch finds a matrix.
struct Operand {
  enum class Place : std::uint8_t { input, output, workspace };
  Place place = Place::input;
  std::size_t index = 0;  // of the tensor, or bytes into the workspace
  DataType dtype = DataType::float32;
};
Launch& bind(Launch& launch, const Operand& operand);
inline Operand in_workspace(std::uint64_t bytes) { return {Operand::Place::workspace, bytes, DataType::float32}; }

struct Product {
  ProductShape shape = {};
  Finish finish = {};
  Operand a = {};
  Operand b = {Operand::Place::input, 1};
  Operand c = {Operand::Place::output, 0};
  Operand d = {};  // any that is there where beta is 0
  Operand scale[2] = {};
};

/// Of matmul and linear.
Product product_of(const Problem& problem);

/// Names of the types for the sources, and product.cl before a source.
std::string product_types(const Product& product);
/// LONG_SUMS for sums that are longer: they are put together from sums of 1024 terms. Kernels whose registers are full
/// pay for it, so that their sums may be longer.
std::string long_sums_option(const Product& product, std::int64_t longest = 4096);
std::string product_source(const char* source);
/// The launch's parameters after a, b and c: d, the scales and the finish, then the shape.
Launch& bind_finish(Launch& launch, const Product& product);

/// Workspace in whole cache lines, so that vectors in it are aligned.
constexpr std::uint64_t aligned_bytes(std::uint64_t bytes) { return (bytes + 127) / 128 * 128; }

/// The sums that a work-item holds. Operands lie in panels of as many lines (kernels/product_block.cl).
struct Block {
  std::int64_t rows = 8;
  std::int64_t columns = 8;
  std::size_t group = 1;  // work-items that run together
};
Block block_for(const DeviceProfile& profile);
/// Elements of a matrix of this many lines in panels.
constexpr std::int64_t panel_elements(std::int64_t lines, std::int64_t panel, std::int64_t steps) {
  return (lines + panel - 1) / panel * panel * steps;
}
std::uint64_t block_workspace_bytes(const Product& product, const Block& block);
/// Packs both operands into the workspace, from this byte on, and multiplies them.
void add_block_product(LaunchPlan& plan, const Product& product, const Block& block, std::uint64_t workspace = 0);
/// The same where a lies in panels already: the workspace, from this byte on, gets b.
void add_product_of_rows(LaunchPlan& plan, const Product& product, const Block& block, std::uint64_t workspace);
std::uint64_t column_panel_bytes(const Product& product, const Block& block);
/// Multiplies operands that lie in panels already; of their walks only the batches' strides are read. With a
/// convolution, b is its image.
void add_packed_product(LaunchPlan& plan, const Product& product, const Block& block, const ConvShape* conv = nullptr);

// Tiles in local memory (kernels/product_tiled.cl): each work-item has a square of 1, 4 or 8 elements a side. There are
// two strips of each operand.
inline constexpr std::int64_t tile_side = 16;  // work-items of a group, each way
constexpr std::int64_t tile_depth(std::int64_t per_item) { return per_item == 8 ? 8 : 16; }
constexpr std::uint64_t tile_local_bytes(std::int64_t per_item) {
  const std::int64_t width = tile_side * per_item + (per_item == 1 ? 1 : 4);
  return static_cast<std::uint64_t>(4 * tile_depth(per_item) * width) * sizeof(float);
}
std::int64_t largest_per_item(const DeviceProfile& profile);
/// Large tiles move less memory, but leave work-items idle where the output is small.
std::int64_t tile_per_item(const ProductShape& shape, const DeviceProfile& profile);
void add_tiled_product(LaunchPlan& plan, const Product& product, std::int64_t per_item,
                       const ConvShape* conv = nullptr);

// Tiles that share the sums: each has a part of k, and a second launch adds the parts up, which lie in the workspace
// from this byte on.
inline constexpr std::int64_t part_counts[] = {2, 4, 8, 16};
/// As many as give every compute unit two tiles, none shorter than 128 terms; 1 where there are enough tiles.
std::int64_t parts_for(const ProductShape& shape, const DeviceProfile& profile);
std::uint64_t split_workspace_bytes(const ProductShape& shape, std::int64_t parts);
void add_split_product(LaunchPlan& plan, const Product& product, std::int64_t per_item, std::int64_t parts,
                       std::uint64_t workspace = 0);

}  // namespace xpuruntime::opencl
