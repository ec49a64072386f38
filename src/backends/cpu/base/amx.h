#pragma once

#include <cstdint>

#include "backends/cpu/base/storage.h"
#include "xpuruntime/registry/refusals.h"

// Matrix products of bf16 on the tile registers of x86_64 (AMX): f32 sums of bf16 products, 32 x 32 results at a time.
// Where this was compiled for another architecture, amx_allowed() is false and nothing below it may be called.
//
// The right operand is packed in blocks of 32 columns; within one, blocks of 32 rows follow each other. Such a block of
// 1024 elements is two tiles of 16 columns, and a tile holds pairs of rows beside each other, as the instruction
// takes them. What lies outside the matrix is packed as zeros.

namespace xpuruntime::cpu {

inline constexpr std::int64_t amx_block = 32;  // rows, columns and depth of a block
inline constexpr std::int64_t amx_block_elements = amx_block * amx_block;

constexpr std::int64_t amx_blocks(std::int64_t extent) { return (extent + amx_block - 1) / amx_block; }

/// Whether the processor of the profile, which need not be here, has what the functions below use: amx_tile, amx_bf16
/// and the AVX-512 that comes with them.
Verdict has_amx(const DeviceProfile& profile);

/// Asks the system, once a process, for leave to use the tiles. False where it says no.
bool amx_allowed();

/// Sets up the calling thread's tiles while it lives. Nothing else that uses tiles may run on the thread meanwhile.
class AmxTiles {
 public:
  AmxTiles();
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

/// Elements of a packed b[k, n].
constexpr std::int64_t amx_packed_elements(std::int64_t k, std::int64_t n) {
  return amx_blocks(k) * amx_blocks(n) * amx_block_elements;
}

/// Which rows of a block of 32 are next to each other in a tile. A product comes out the same if the columns of the
/// left operand are in the same order: (0, 1), (2, 3) ... or (0, 16), (1, 17) ...
enum class AmxPairs : std::uint8_t { neighbours, halves };

/// Packs b[k, n] whose element (i, j) is at b[i * row + j].
void amx_pack_rows(const Bfloat* b, std::int64_t row, std::int64_t k, std::int64_t n, Bfloat* packed,
                   AmxPairs pairs = AmxPairs::neighbours);

/// Packs b[k, n] whose element (i, j) is at b[j * column + i]: a transposed matrix.
void amx_pack_columns(const Bfloat* b, std::int64_t column, std::int64_t k, std::int64_t n, Bfloat* packed);

/// Copies a[m, k] into rows of amx_blocks(k) * 32 elements, and adds rows up to a multiple of 32; the rest is zeros.
void amx_pad(const Bfloat* a, std::int64_t row, std::int64_t m, std::int64_t k, Bfloat* padded);

/// One band of at most 32 rows of a product. All of `a` (32 rows, or 16) and of `c` is read and written in whole tiles.
struct AmxProduct {
  const Bfloat* a = nullptr;
  std::int64_t a_row = 0;  // elements between rows of a
  const Bfloat* b = nullptr;
  std::int64_t b_step = 0;  // elements between packed column blocks: amx_block_elements times the blocks packed in one
  float* c = nullptr;
  std::int64_t c_row = 0;
  int row_tiles = 2;               // 2: 32 rows; 1: 16 rows
  std::int64_t depth_blocks = 0;   // sums go over this many blocks of 32, first to last
  std::int64_t column_blocks = 0;  // blocks of 32 columns
  bool accumulate = false;         // adds to c instead of setting it
};

/// Needs AmxTiles on this thread.
void amx_multiply(const AmxProduct& product);

}  // namespace xpuruntime::cpu
