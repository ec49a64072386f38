#include "backends/cpu/base/amx.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(__clang__)
// g++ 12 takes the "undefined" vectors inside its own intrinsics for uninitialised variables of this file.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define XRT_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define XRT_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")))
#endif

namespace xpuruntime::cpu {

Verdict has_amx(const DeviceProfile& profile) {
  return has_cpu_features(profile, {"amx_bf16", "amx_tile", "avx512f", "avx512bw", "avx512dq", "avx512vl"});
}

#if defined(__x86_64__)

bool amx_allowed() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool allowed = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return allowed;
}

namespace {

/// The operand of ldtilecfg: all eight tiles with 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// Static: g++ does not know that the instruction reads all of it, and would not write what it thinks is unread.
constexpr TileConfig tile_config;

XRT_AMX void load_config() { _tile_loadconfig(&tile_config); }
XRT_AMX void release_tiles() { _tile_release(); }

// The first `count` of 32 elements, then zeros; a negative count is none.
XRT_AVX512 __mmask32 first_of_32(std::int64_t count) {
  if (count >= 32) return 0xffffffffu;
  return count <= 0 ? 0u : (1u << count) - 1;
}

XRT_AVX512 void pack_row_pair(const Bfloat* upper, const Bfloat* lower, std::int64_t n, Bfloat* to) {
  const __mmask32 mask = first_of_32(n);
  const __m512i a = _mm512_maskz_loadu_epi16(upper == nullptr ? 0 : mask, upper);
  const __m512i b = _mm512_maskz_loadu_epi16(lower == nullptr ? 0 : mask, lower);
  const __m512i a0 = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(a));
  const __m512i a1 = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(a, 1));
  const __m512i b0 = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(b));
  const __m512i b1 = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(b, 1));
  _mm512_storeu_si512(to, _mm512_or_si512(a0, _mm512_slli_epi32(b0, 16)));
  _mm512_storeu_si512(to + amx_block_elements / 2, _mm512_or_si512(a1, _mm512_slli_epi32(b1, 16)));
}

// Four steps of a 16 x 16 transposition of 32-bit words: within pairs, fours, eights and sixteens.
XRT_AVX512 void transpose_16x16(__m512i (&rows)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 16; i += 8) {
    for (int j = 0; j < 4; ++j) {
      t[i + j] = _mm512_shuffle_i32x4(rows[i + j], rows[i + j + 4], 0x88);
      t[i + j + 4] = _mm512_shuffle_i32x4(rows[i + j], rows[i + j + 4], 0xdd);
    }
  }
  for (int j = 0; j < 8; ++j) {
    rows[j] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0x88);
    rows[j + 8] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0xdd);
  }
}

// 16 columns of 32 elements become 16 rows of pairs.
XRT_AVX512 void pack_column_tile(const Bfloat* b, std::int64_t column, std::int64_t k, std::int64_t n, Bfloat* to) {
  const __mmask32 mask = first_of_32(k);
  __m512i rows[16];
  for (int i = 0; i < 16; ++i) {
    rows[i] = i < n ? _mm512_maskz_loadu_epi16(mask, b + i * column) : _mm512_setzero_si512();
  }
  transpose_16x16(rows);
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * 32, rows[i]);
}

XRT_AVX512 void pad_row(const Bfloat* from, std::int64_t k, Bfloat* to) {
  for (std::int64_t i = 0; i < k; i += 32) {
    _mm512_storeu_si512(to + i, _mm512_maskz_loadu_epi16(first_of_32(k - i), from + i));
  }
}

// The accumulators stay in tiles 0 to 3; a is in 4 and 5, b in 6 and 7.
template <int row_tiles>
XRT_AMX void multiply_block(const AmxProduct& p, const Bfloat* b, float* c) {
  const std::int64_t c_bytes = p.c_row * 4, a_bytes = p.a_row * 2;
  float* const lower = c + 16 * p.c_row;
  if (p.accumulate) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + 16, c_bytes);
    if constexpr (row_tiles == 2) {
      _tile_loadd(2, lower, c_bytes);
      _tile_loadd(3, lower + 16, c_bytes);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const Bfloat* a = p.a;
  for (std::int64_t i = 0; i < p.depth_blocks; ++i, a += amx_block, b += amx_block_elements) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, a_bytes);
    _tile_loadd(7, b + amx_block_elements / 2, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (row_tiles == 2) _tile_loadd(5, a + 16 * p.a_row, a_bytes);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (row_tiles == 2) {
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + 16, c_bytes);
  if constexpr (row_tiles == 2) {
    _tile_stored(2, lower, c_bytes);
    _tile_stored(3, lower + 16, c_bytes);
  }
}

}  // namespace

AmxTiles::AmxTiles() { load_config(); }
AmxTiles::~AmxTiles() { release_tiles(); }

void amx_pack_rows(const Bfloat* b, std::int64_t row, std::int64_t k, std::int64_t n, Bfloat* packed, AmxPairs pairs) {
  const bool halves = pairs == AmxPairs::halves;
  for (std::int64_t j = 0; j < n; j += amx_block) {
    for (std::int64_t i = 0; i < k; i += amx_block) {
      for (std::int64_t pair = 0; pair < 16; ++pair) {
        const std::int64_t first = i + (halves ? pair : 2 * pair), second = first + (halves ? 16 : 1);
        pack_row_pair(first < k ? b + first * row + j : nullptr, second < k ? b + second * row + j : nullptr, n - j,
                      packed + pair * amx_block);
      }
      packed += amx_block_elements;
    }
  }
}

void amx_pack_columns(const Bfloat* b, std::int64_t column, std::int64_t k, std::int64_t n, Bfloat* packed) {
  for (std::int64_t j = 0; j < n; j += amx_block) {
    for (std::int64_t i = 0; i < k; i += amx_block) {
      const Bfloat* from = b + j * column + i;
      pack_column_tile(from, column, k - i, n - j, packed);
      // The second half may lie outside the matrix: no pointer there then.
      const bool second = n - j > 16;
      pack_column_tile(second ? from + 16 * column : nullptr, column, k - i, n - j - 16,
                       packed + amx_block_elements / 2);
      packed += amx_block_elements;
    }
  }
}

void amx_pad(const Bfloat* a, std::int64_t row, std::int64_t m, std::int64_t k, Bfloat* padded) {
  const std::int64_t width = amx_blocks(k) * amx_block;
  for (std::int64_t i = 0; i < m; ++i) pad_row(a + i * row, k, padded + i * width);
  const Bfloat zero = {};
  for (std::int64_t i = m * width; i < amx_blocks(m) * amx_block * width; ++i) padded[i] = zero;
}

void amx_multiply(const AmxProduct& product) {
  // The compiler does not know that tile loads read memory: all stores before them must be done.
  asm volatile("" ::: "memory");
  for (std::int64_t j = 0; j < product.column_blocks; ++j) {
    const Bfloat* b = product.b + j * product.b_step;
    float* c = product.c + j * amx_block;
    product.row_tiles == 2 ? multiply_block<2>(product, b, c) : multiply_block<1>(product, b, c);
  }
}

#else

bool amx_allowed() { return false; }
AmxTiles::AmxTiles() = default;
AmxTiles::~AmxTiles() = default;
void amx_pack_rows(const Bfloat*, std::int64_t, std::int64_t, std::int64_t, Bfloat*, AmxPairs) {}
void amx_pack_columns(const Bfloat*, std::int64_t, std::int64_t, std::int64_t, Bfloat*) {}
void amx_pad(const Bfloat*, std::int64_t, std::int64_t, std::int64_t, Bfloat*) {}
void amx_multiply(const AmxProduct&) {}

#endif

}  // namespace xpuruntime::cpu
