#include <algorithm>
#include <cstring>

#include "backends/cpu/matmul/int8_task.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/int8_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/matmul/int8_tile.h"
#include "backends/cpu/matmul/packed_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

inline constexpr std::int64_t panel_words = tile_vectors * hn::MaxLanes(Word());

template <class Dot>
class Int8Runner {
 public:
  explicit Int8Runner(const Int8Task& task)
      : task_(task), shift_(Dot::shift(task.rows.is_signed, task.lanes.is_signed)) {
    rows_ = task.buffer;
    lane_sums_ = rows_ + row_buffer_floats;
    row_sums_ = lane_sums_ + group_lanes(task.lane_count);
    panels_ = row_sums_ + (task.row_count + 15) / 16 * 16;
    sums_ = panels_ + group_lanes(task.lane_count) * most_k_block;
    words_ = (task.k + per_word - 1) / per_word;
  }

  void run() {
    if (shift_.lanes != 0) sum_rows();
    for (std::int64_t lane = 0; lane < task_.lane_count; lane += int8_lane_group) {
      for (std::int64_t word = 0; word == 0 || word < words_; word += most_k_block) {
        const std::int64_t lanes = std::min(int8_lane_group, task_.lane_count - lane);
        run_piece({lane, lanes, word, std::min(most_k_block, words_ - word)});
      }
    }
  }

 private:
  using Stored = typename Dot::Stored;
  static constexpr std::int64_t per_word = 4 / sizeof(Stored);

  /// A group of lanes and a piece of their words.
  struct Piece {
    std::int64_t lane, lanes, word, words;
  };

  void run_piece(const Piece& piece) {
    pack_lanes(piece);
    if (shift_.rows != 0) sum_lanes(piece);
    const std::int64_t tiles = (task_.row_count + std::int64_t{tile_rows} - 1) / std::int64_t{tile_rows};
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t row = task_.row_count * i / tiles, end = task_.row_count * (i + 1) / tiles;
      pack_rows(row, end - row, piece.word, piece.words);
      std::int32_t* sums = words_ <= most_k_block ? sums_ : sums_ + row * sums_step();
      for (std::int64_t at = 0; at < piece.lanes; at += panel_words) {
        word_tile_for<Dot>(end - row, width(piece, at) / vector())(rows_, panel(piece, at), piece.words, sums + at,
                                                                   sums_step(), piece.word != 0);
      }
      if (piece.word + piece.words >= words_) finish(row, end - row, piece, sums);
    }
  }

  static std::int64_t vector() { return static_cast<std::int64_t>(hn::Lanes(Word())); }
  std::int64_t sums_step() const { return group_lanes(task_.lane_count); }
  /// Lanes of the panel at `at`, whole vectors.
  static std::int64_t width(const Piece& piece, std::int64_t at) {
    return (std::min(panel_words, piece.lanes - at) + vector() - 1) / vector() * vector();
  }
  std::int32_t* panel(const Piece& piece, std::int64_t at) const { return panels_ + at * piece.words; }

  /// One value as it is stored.
  HWY_INLINE static Stored stored(std::uint8_t bits, bool is_signed, int shift) {
    if constexpr (per_word == 4) {
      return static_cast<Stored>(bits + shift);  // modulo 256
    } else {
      return static_cast<Stored>(is_signed ? static_cast<std::int8_t>(bits) : bits);
    }
  }

  /// Copies whole vectors and says how many elements that were.
  HWY_INLINE static std::int64_t copy_vectors(const std::uint8_t* from, std::int64_t count, bool is_signed, int shift,
                                              Stored* to) {
    std::int64_t p = 0;
    if constexpr (per_word == 4) {
      const hn::ScalableTag<std::uint8_t> d;
      const auto added = hn::Set(d, static_cast<std::uint8_t>(shift));
      const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
      for (; p + lanes <= count; p += lanes) hn::StoreU(hn::Add(hn::LoadU(d, from + p), added), d, to + p);
    } else {
      const hn::ScalableTag<std::int16_t> d;
      const hn::Rebind<std::uint8_t, decltype(d)> narrow;
      const hn::Rebind<std::int8_t, decltype(d)> narrow_signed;
      const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
      for (; p + lanes <= count; p += lanes) {
        const auto bits = hn::LoadU(narrow, from + p);
        hn::StoreU(is_signed ? hn::PromoteTo(d, hn::BitCast(narrow_signed, bits)) : hn::PromoteTo(d, bits), d, to + p);
      }
    }
    return p;
  }

  void pack_rows(std::int64_t row, std::int64_t count, std::int64_t word, std::int64_t words) {
    for (std::int64_t i = 0; i < count; ++i) {
      pack_along_k(task_.rows, shift_.rows, row + i, word, words, rows_ + i * row_step);
    }
  }

  void pack_along_k(const Int8Operand& operand, int shift, std::int64_t outer, std::int64_t word, std::int64_t words,
                    std::int32_t* to) {
    const std::int64_t begin = word * per_word, count = std::min(words * per_word, task_.k - begin);
    const std::uint8_t* from = operand.data + outer * operand.outer + begin * operand.inner;
    Stored* values = reinterpret_cast<Stored*>(to);
    std::int64_t p = 0;
    if (operand.inner == 1) p = copy_vectors(from, count, operand.is_signed, shift, values);
    for (; p < count; ++p) values[p] = stored(from[p * operand.inner], operand.is_signed, shift);
    // Past k, zeros: what they meet in the other operand adds nothing.
    std::fill(values + count, values + words * per_word, Stored{0});
  }

  void pack_lanes(const Piece& piece) {
    // Lanes side by side are read along the lanes, a word's rows at a time; others one panel at a time.
    const std::int64_t words = task_.lanes.inner == 1 ? piece.words : 1;
    for (std::int64_t begin = 0; begin < piece.words; begin += words) {
      for (std::int64_t at = 0; at < piece.lanes; at += panel_words) {
        const std::int64_t lanes = std::min(panel_words, piece.lanes - at), wide = width(piece, at);
        std::int32_t* to = panel(piece, at) + begin * wide;
        if (lanes < wide) std::fill_n(to, words * wide, 0);
        if (task_.lanes.inner == 1) {
          pack_across(piece.lane + at, lanes, wide, piece.word, words, to);
        } else {
          pack_side_by_side(piece.lane + at, lanes, piece.word + begin, reinterpret_cast<Stored*>(to));
        }
      }
    }
  }

  /// Each lane's values lie along k: packed so, then spread.
  void pack_across(std::int64_t lane, std::int64_t count, std::int64_t wide, std::int64_t word, std::int64_t words,
                   std::int32_t* to) {
    constexpr std::int64_t some_words = 16;  // of each lane: together they stay in the first cache
    HWY_ALIGN std::int32_t along[most_tile_lanes][some_words];
    for (std::int64_t begin = 0; begin < words; begin += some_words) {
      const std::int64_t some = std::min(some_words, words - begin);
      for (std::int64_t j = 0; j < count; ++j) {
        pack_along_k(task_.lanes, shift_.lanes, lane + j, word + begin, some, along[j]);
      }
      // A copy does not look at what the words mean.
      gather(Gather<float>{reinterpret_cast<const float*>(along), 1, some_words, some, count,
                           reinterpret_cast<float*>(to + begin * wide), wide});
    }
  }

  /// Sixteen lanes at a time from rows that lie `step` apart; says how many lanes that were.
  HWY_INLINE std::int64_t interleave([[maybe_unused]] const std::uint8_t* from, [[maybe_unused]] std::int64_t step,
                                     [[maybe_unused]] std::int64_t count, [[maybe_unused]] Stored* to) const {
    std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (per_word == 4) {
      const hn::FixedTag<std::uint8_t, 16> d;
      const hn::Repartition<std::uint16_t, decltype(d)> d16;
      const auto added = hn::Set(d, static_cast<std::uint8_t>(shift_.lanes));
      for (; j + 16 <= count; j += 16) {
        const auto a = hn::LoadU(d, from + j), b = hn::LoadU(d, from + step + j);
        const auto c = hn::LoadU(d, from + 2 * step + j), e = hn::LoadU(d, from + 3 * step + j);
        const auto ab_low = hn::BitCast(d16, hn::InterleaveLower(d, a, b));
        const auto ab_high = hn::BitCast(d16, hn::InterleaveUpper(d, a, b));
        const auto ce_low = hn::BitCast(d16, hn::InterleaveLower(d, c, e));
        const auto ce_high = hn::BitCast(d16, hn::InterleaveUpper(d, c, e));
        Stored* at = to + j * 4;
        hn::StoreU(hn::Add(hn::BitCast(d, hn::InterleaveLower(d16, ab_low, ce_low)), added), d, at);
        hn::StoreU(hn::Add(hn::BitCast(d, hn::InterleaveUpper(d16, ab_low, ce_low)), added), d, at + 16);
        hn::StoreU(hn::Add(hn::BitCast(d, hn::InterleaveLower(d16, ab_high, ce_high)), added), d, at + 32);
        hn::StoreU(hn::Add(hn::BitCast(d, hn::InterleaveUpper(d16, ab_high, ce_high)), added), d, at + 48);
      }
    }
#endif
    return j;
  }

  void pack_side_by_side(std::int64_t lane, std::int64_t count, std::int64_t word, Stored* to) {
    const Int8Operand& operand = task_.lanes;
    const std::int64_t first = word * per_word;
    const std::uint8_t* from = operand.data + first * operand.inner + lane * operand.outer;
    const bool whole = operand.outer == 1 && first + per_word <= task_.k;
    const std::int64_t done = whole ? interleave(from, operand.inner, count, to) : 0;
    for (std::int64_t q = 0; q < per_word; ++q) {
      const bool inside = first + q < task_.k;
      for (std::int64_t j = done; j < count; ++j) {
        const Stored zero = 0;
        to[j * per_word + q] =
            inside ? stored(from[q * operand.inner + j * operand.outer], operand.is_signed, shift_.lanes) : zero;
      }
    }
  }

  /// Sums of the packed lanes: their product with ones.
  void sum_lanes(const Piece& piece) {
    std::memset(rows_, 1, static_cast<std::size_t>(piece.words) * sizeof(std::int32_t));
    for (std::int64_t at = 0; at < piece.lanes; at += panel_words) {
      word_tile_for<Dot>(1, width(piece, at) / vector())(rows_, panel(piece, at), piece.words, lane_sums_ + at, 0,
                                                         piece.word != 0);
    }
  }

  void sum_rows() {
    for (std::int64_t i = 0; i < task_.row_count; ++i) {
      std::int32_t sum = 0;
      const std::uint8_t* from = task_.rows.data + i * task_.rows.outer;
      for (std::int64_t p = 0; p < task_.k; ++p) {
        const std::uint8_t bits = from[p * task_.rows.inner];
        sum += task_.rows.is_signed ? static_cast<std::int8_t>(bits) : bits;
      }
      row_sums_[i] = sum;
    }
  }

  /// With r' = r + s and l' = l + t, the sum of r l is that of r' l' - s l' - t r. All modulo 2^32.
  void finish(std::int64_t row, std::int64_t rows, const Piece& piece, const std::int32_t* sums) {
    const std::int64_t lane = piece.lane, count = piece.lanes;
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int32_t* to = task_.out + (row + i) * task_.out_row + lane * task_.out_lane;
      const std::uint32_t from_row =
          shift_.lanes == 0 ? 0u
                            : static_cast<std::uint32_t>(shift_.lanes) * static_cast<std::uint32_t>(row_sums_[row + i]);
      const bool plain = task_.out_lane == 1 && !task_.relu;
      std::int64_t j = plain ? finish_vectors(sums + i * sums_step(), from_row, row + i, lane, count, to) : 0;
      for (; j < count; ++j) {
        std::uint32_t sum = static_cast<std::uint32_t>(sums[i * sums_step() + j]) - from_row;
        if (shift_.rows != 0)
          sum -= static_cast<std::uint32_t>(shift_.rows) * static_cast<std::uint32_t>(lane_sums_[j]);
        std::int64_t value = static_cast<std::int32_t>(sum);
        if (task_.row_bias != nullptr) value += task_.row_bias[row + i];
        if (task_.lane_bias != nullptr) value += task_.lane_bias[lane + j];
        if (task_.relu && value < 0) value = 0;
        to[j * task_.out_lane] = static_cast<std::int32_t>(value);
      }
    }
  }

  /// Whole vectors of one row; says how many lanes that were.
  HWY_INLINE std::int64_t finish_vectors(const std::int32_t* sums, std::uint32_t from_row, std::int64_t row,
                                         std::int64_t lane, std::int64_t count, std::int32_t* to) const {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Word()));
    const std::uint32_t bias = task_.row_bias == nullptr ? 0u : static_cast<std::uint32_t>(task_.row_bias[row]);
    const WordVec added = hn::Set(Word(), static_cast<std::int32_t>(bias - from_row));
    const WordVec shift = hn::Set(Word(), shift_.rows);
    std::int64_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      WordVec sum = hn::Add(hn::LoadU(Word(), sums + j), added);
      if (shift_.rows != 0) sum = hn::Sub(sum, hn::Mul(shift, hn::LoadU(Word(), lane_sums_ + j)));
      if (task_.lane_bias != nullptr) sum = hn::Add(sum, hn::LoadU(Word(), task_.lane_bias + lane + j));
      hn::StoreU(sum, Word(), to + j);
    }
    return j;
  }

  const Int8Task& task_;
  Shift shift_;
  std::int32_t* rows_;
  std::int32_t* lane_sums_;
  std::int32_t* row_sums_;
  std::int32_t* panels_;
  std::int32_t* sums_;
  std::int64_t words_;
};

void run_int8_here(const Int8Task& task) { task.quads ? Int8Runner<Quads>(task).run() : Int8Runner<Pairs>(task).run(); }

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {
namespace {
HWY_EXPORT(run_int8_here);
}

std::int64_t int8_buffer_words(std::int64_t rows, std::int64_t lanes) {
  const std::int64_t row_sums = (rows + 15) / 16 * 16, kept = std::max(rows, most_tile_rows);
  return row_buffer_floats + row_sums + group_lanes(lanes) * (1 + most_k_block + kept);
}

void run_int8(const Int8Task& task) { HWY_DYNAMIC_DISPATCH(run_int8_here)(task); }

}  // namespace xpuruntime::cpu
#endif
