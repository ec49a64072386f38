#include <algorithm>

#include "backends/cpu/matmul/packed_task.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/packed_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/matmul/packed_blocks.h"
#include "backends/cpu/matmul/packed_tile.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

inline constexpr std::int64_t panel_lanes = tile_vectors * hn::MaxLanes(F32());

/// Where the sums of one tile are kept between two pieces of k.
struct SumsPlace {
  float* data = nullptr;
  std::int64_t step = 0;
  bool in_out = false;  // the output itself
};

/// One piece of k of one block of lanes.
struct Piece {
  std::int64_t lane_begin, lane_count, k_begin, k_count;
  bool first, last;
};

void finish_tile(const TileTask& task, float* sums, std::int64_t step, std::int64_t row, std::int64_t row_count,
                 std::int64_t lane, std::int64_t lane_count) {
  with_storage(task.out_dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    finish(Finish<T>{sums, step, row_count, lane_count,
                     static_cast<T*>(task.out) + row * task.out_row + lane * task.out_lane, task.out_row, task.out_lane,
                     task.row_bias == nullptr ? nullptr : task.row_bias + row,
                     task.lane_bias == nullptr ? nullptr : task.lane_bias + lane, task.activation});
  });
}

class TileRunner {
 public:
  explicit TileRunner(const TileTask& task)
      : task_(task),
        rows_(task.buffer),
        lanes_(rows_ + row_buffer_floats),
        sums_(lanes_ + packed_lane_floats(task)),
        into_out_(task.out_dtype == DataType::float32 && task.out_lane == 1) {}

  void run() {
    const std::int64_t pieces = std::max<std::int64_t>(1, (task_.k + task_.k_block - 1) / task_.k_block);
    for (std::int64_t lane = 0; lane < task_.lane_count; lane += task_.lane_block) {
      const std::int64_t lane_count = std::min(task_.lane_block, task_.lane_count - lane);
      for (std::int64_t i = 0; i < pieces; ++i) {
        const std::int64_t k = i * task_.k_block;
        run_piece({lane, lane_count, k, std::min(task_.k_block, task_.k - k), i == 0, i + 1 == pieces});
      }
    }
  }

 private:
  void run_piece(const Piece& piece) {
    pack_lanes(piece);
    // Tiles of even height: a low one at the end would keep the multipliers waiting.
    const std::int64_t tiles = (task_.row_count + std::int64_t{tile_rows} - 1) / std::int64_t{tile_rows};
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t begin = task_.row_count * i / tiles, end = task_.row_count * (i + 1) / tiles;
      pack_rows(piece, begin, end - begin);
      for (std::int64_t lane = 0; lane < piece.lane_count; lane += panel_lanes) {
        multiply(piece, begin, end - begin, lane);
      }
    }
  }

  bool packs(const Piece& piece, std::int64_t lane) const {
    return task_.pack_lanes || piece.lane_count - lane < panel_lanes;
  }

  // Where only the last, partial panel is packed, it has the buffer for itself.
  float* panel(const Piece& piece, std::int64_t lane) const {
    return task_.pack_lanes ? lanes_ + lane * piece.k_count : lanes_;
  }

  void pack_lanes(const Piece& piece) {
    // Lanes side by side are read along the lanes, a few rows at a time, as memory likes it; others one panel at a
    // time.
    const std::int64_t rows = task_.lanes.outer == 1 ? 4 : piece.k_count;
    with_storage(task_.lanes.dtype, [&](auto storage) HWY_ATTR {
      for (std::int64_t k = 0; k < piece.k_count; k += rows) {
        for (std::int64_t lane = 0; lane < piece.lane_count; lane += panel_lanes) {
          if (packs(piece, lane)) pack_panel(piece, lane, k, std::min(rows, piece.k_count - k), storage);
        }
      }
    });
  }

  template <class T>
  HWY_INLINE void pack_panel(const Piece& piece, std::int64_t lane, std::int64_t k, std::int64_t k_count, T) {
    const std::int64_t vector = static_cast<std::int64_t>(f32_lanes());
    const std::int64_t count = std::min(panel_lanes, piece.lane_count - lane);
    const std::int64_t width = (count + vector - 1) / vector * vector;
    float* to = panel(piece, lane) + k * width;
    if (width != count) std::fill_n(to, width * k_count, 0.0f);
    gather(Gather<T>{static_cast<const T*>(task_.lanes.data) + (piece.lane_begin + lane) * task_.lanes.outer +
                         (piece.k_begin + k) * task_.lanes.inner,
                     task_.lanes.inner, task_.lanes.outer, k_count, count, to, width});
  }

  void pack_rows(const Piece& piece, std::int64_t begin, std::int64_t count) {
    with_storage(task_.rows.dtype, [&](auto storage) HWY_ATTR {
      using T = decltype(storage);
      gather(Gather<T>{
          static_cast<const T*>(task_.rows.data) + begin * task_.rows.outer + piece.k_begin * task_.rows.inner,
          task_.rows.outer, task_.rows.inner, count, piece.k_count, rows_, row_step});
    });
  }

  SumsPlace sums_place(const Piece& piece, std::int64_t row, std::int64_t lane) {
    const bool whole = piece.lane_count - lane >= panel_lanes;
    if (into_out_ && whole) {
      float* out = static_cast<float*>(task_.out) + row * task_.out_row + piece.lane_begin + lane;
      return {out, task_.out_row, true};
    }
    if (piece.first && piece.last) return {sums_, most_tile_lanes, false};
    if (into_out_) return {sums_ + row * most_tile_lanes, most_tile_lanes, false};
    const std::int64_t step = lane_block_step(task_);
    return {sums_ + row * step + lane, step, false};
  }

  void multiply(const Piece& piece, std::int64_t row, std::int64_t rows, std::int64_t lane) {
    const std::int64_t vector = static_cast<std::int64_t>(f32_lanes());
    const std::int64_t count = std::min(panel_lanes, piece.lane_count - lane);
    const std::int64_t vectors = (count + vector - 1) / vector;
    const bool packed = packs(piece, lane);
    const float* lanes = packed ? panel(piece, lane)
                                : static_cast<const float*>(task_.lanes.data) + piece.lane_begin + lane +
                                      piece.k_begin * task_.lanes.inner;
    const SumsPlace sums = sums_place(piece, row, lane);
    if (piece.first && task_.accumulate && !sums.in_out) {
      const float* out =
          static_cast<const float*>(task_.out) + row * task_.out_row + (piece.lane_begin + lane) * task_.out_lane;
      gather(Gather<float>{out, task_.out_row, task_.out_lane, rows, count, sums.data, sums.step});
    }
    const bool accumulate = !piece.first || task_.accumulate;
    tile_for(rows, vectors)(rows_, lanes, packed ? vectors * vector : task_.lanes.inner, piece.k_count, sums.data,
                            sums.step, accumulate);
    const bool has_end =
        task_.row_bias != nullptr || task_.lane_bias != nullptr || task_.activation != Activation::none;
    if (piece.last && (has_end || !sums.in_out))
      finish_tile(task_, sums.data, sums.step, row, rows, piece.lane_begin + lane, count);
  }

  const TileTask& task_;
  float* rows_;
  float* lanes_;
  float* sums_;
  bool into_out_;
};

void run_tiles_here(const TileTask& task) { TileRunner(task).run(); }

/// In blocks of a tile where the output's lanes do not lie side by side.
void finish_sums_here(const TileTask& task, float* sums, std::int64_t step, std::int64_t row, std::int64_t row_count,
                      std::int64_t lane, std::int64_t lane_count) {
  const bool along = task.out_lane == 1;
  const std::int64_t rows = along ? row_count : most_tile_rows / 4 * 4, lanes = along ? lane_count : most_tile_lanes;
  for (std::int64_t i = 0; i < row_count; i += rows) {
    for (std::int64_t j = 0; j < lane_count; j += lanes) {
      finish_tile(task, sums + i * step + j, step, row + i, std::min(rows, row_count - i), lane + j,
                  std::min(lanes, lane_count - j));
    }
  }
}

void widen_here(const void* from, DataType dtype, std::int64_t stride, std::int64_t count, float* to) {
  with_storage(dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    gather(Gather<T>{static_cast<const T*>(from), 0, stride, 1, count, to, 0});
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {
namespace {

HWY_EXPORT(run_tiles_here);
HWY_EXPORT(finish_sums_here);
HWY_EXPORT(widen_here);

// A multiple of every target's panel of lanes.
constexpr std::int64_t lane_block_unit = 96;

std::int64_t pieces_of_k(const TileTask& task) {
  return std::max<std::int64_t>(1, (task.k + most_k_block - 1) / most_k_block);
}

}  // namespace

std::int64_t tile_buffer_floats(const TileTask& task) {
  const std::int64_t kept_rows = task.k > task.k_block ? std::max(task.row_count, most_tile_rows) : most_tile_rows;
  const bool into_out = task.out_dtype == DataType::float32 && task.out_lane == 1;
  const std::int64_t kept_lanes = into_out ? most_tile_lanes : lane_block_step(task);
  return row_buffer_floats + packed_lane_floats(task) + kept_rows * std::max(kept_lanes, most_tile_lanes);
}

void choose_blocks(TileTask& task, std::uint64_t l2_bytes) {
  const std::int64_t pieces = pieces_of_k(task);
  task.k_block = std::max<std::int64_t>(1, (task.k + pieces - 1) / pieces);
  // Half the cache for lanes: rows and sums pass through the other half.
  const std::uint64_t l2 = l2_bytes == 0 ? std::uint64_t{1} << 20 : l2_bytes;
  const std::int64_t fit = static_cast<std::int64_t>(l2 / 2 / sizeof(float)) / task.k_block;
  task.lane_block = std::max(lane_block_unit, fit / lane_block_unit * lane_block_unit);
}

void run_tiles(const TileTask& task) { HWY_DYNAMIC_DISPATCH(run_tiles_here)(task); }

void finish_sums(const TileTask& task, float* sums, std::int64_t step, std::int64_t row, std::int64_t row_count,
                 std::int64_t lane, std::int64_t lane_count) {
  HWY_DYNAMIC_DISPATCH(finish_sums_here)(task, sums, step, row, row_count, lane, lane_count);
}

void widen(const void* from, DataType dtype, std::int64_t stride, std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_here)(from, dtype, stride, count, to);
}

}  // namespace xpuruntime::cpu
#endif
