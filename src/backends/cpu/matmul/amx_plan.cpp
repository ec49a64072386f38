#include <algorithm>
#include <string>

#include "backends/cpu/base/amx.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/matmul/packed_layout.h"

namespace xpuruntime::cpu {
namespace {

constexpr double multiplications_per_microsecond = 4e5;
// Of the packed operand, which every band of rows goes over: half of the smallest second cache that comes with AMX.
constexpr std::int64_t packed_bytes = std::int64_t{1} << 20;

// Terms that the tiles add up, 32 at a time, before their sum goes to a longer one.
constexpr std::int64_t most_terms = std::int64_t{1} << 16;

/// A buffer: 32 padded rows, the packed lanes, and the sums of 32 rows, or of all where they wait for the next piece of
/// k; where k is longer than most_terms, their totals too.
struct AmxBuffer {
  explicit AmxBuffer(const TileTask& task)
      : row_elements(amx_block * amx_blocks(task.k_block) * amx_block),
        lane_elements(amx_packed_elements(task.k_block, std::min(task.lane_block, task.lane_count))),
        sums_row(amx_blocks(std::min(task.lane_block, task.lane_count)) * amx_block),
        sums_rows(task.k > task.k_block ? amx_blocks(task.row_count) * amx_block : amx_block),
        rows(reinterpret_cast<Bfloat*>(task.buffer)),
        lanes(rows + row_elements),
        sums(task.buffer + (row_elements + lane_elements) / 2),
        totals(task.k > most_terms ? sums + sums_rows * sums_row : sums) {}

  std::int64_t floats() const {
    return (row_elements + lane_elements) / 2 + sums_rows * sums_row * (totals == sums ? 1 : 2);
  }

  std::int64_t row_elements;
  std::int64_t lane_elements;
  std::int64_t sums_row;
  std::int64_t sums_rows;
  Bfloat* rows;
  Bfloat* lanes;
  float* sums;
  float* totals;
};

/// A block of lanes and a piece of k.
struct AmxPiece {
  std::int64_t lane = 0;
  std::int64_t lanes = 0;
  std::int64_t begin = 0;
  std::int64_t depth = 0;
  bool last = true;
};

void pack(const TileOperand& lanes, const AmxPiece& piece, Bfloat* packed) {
  const Bfloat* from = static_cast<const Bfloat*>(lanes.data) + piece.lane * lanes.outer + piece.begin * lanes.inner;
  if (lanes.outer != 1) return amx_pack_columns(from, lanes.outer, piece.depth, piece.lanes, packed);
  // Along the rows, as memory likes it, block by block.
  const std::int64_t blocks = amx_blocks(piece.depth);
  for (std::int64_t i = 0; i < blocks; ++i) {
    for (std::int64_t j = 0; j < amx_blocks(piece.lanes); ++j) {
      const std::int64_t p = i * amx_block, lane = j * amx_block;
      amx_pack_rows(from + p * lanes.inner + lane, lanes.inner, std::min(amx_block, piece.depth - p),
                    std::min(amx_block, piece.lanes - lane), packed + (j * blocks + i) * amx_block_elements);
    }
  }
}

/// Adds the sums of most_terms to the totals, or makes them these.
void add_to_totals(const AmxProduct& product, std::int64_t rows, bool first, float* totals) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = i * product.c_row; j < i * product.c_row + product.column_blocks * amx_block; ++j) {
      totals[j] = first ? product.c[j] : totals[j] + product.c[j];
    }
  }
}

/// At most 32 rows of the output's block of lanes.
void run_band(const TileTask& task, const AmxBuffer& buffer, std::int64_t row, const AmxPiece& piece) {
  const std::int64_t rows = std::min(amx_block, task.row_count - row), blocks = amx_blocks(piece.depth);
  const Bfloat* from = static_cast<const Bfloat*>(task.rows.data) + row * task.rows.outer + piece.begin;
  AmxProduct product;
  // Whole tiles are read where they are; what is less gets a frame of zeros.
  const bool whole = rows % 16 == 0 && piece.depth % amx_block == 0;
  if (!whole) amx_pad(from, task.rows.outer, rows, piece.depth, buffer.rows);
  product.a = whole ? from : buffer.rows;
  product.a_row = whole ? task.rows.outer : blocks * amx_block;
  product.row_tiles = rows > 16 ? 2 : 1;
  product.b = buffer.lanes;
  product.b_step = blocks * amx_block_elements;
  product.depth_blocks = blocks;
  product.column_blocks = amx_blocks(piece.lanes);
  const std::int64_t at = buffer.sums_rows > amx_block ? row * buffer.sums_row : 0;
  product.c = buffer.sums + at;
  product.c_row = buffer.sums_row;
  product.accumulate = piece.begin % most_terms != 0;
  amx_multiply(product);
  if (buffer.totals != buffer.sums && (piece.last || (piece.begin + piece.depth) % most_terms == 0)) {
    add_to_totals(product, rows, piece.begin < most_terms, buffer.totals + at);
  }
  if (piece.last) finish_sums(task, buffer.totals + at, product.c_row, row, rows, piece.lane, piece.lanes);
}

void run_amx(const TileTask& task) {
  const AmxTiles tiles;
  const AmxBuffer buffer(task);
  for (std::int64_t lane = 0; lane < task.lane_count; lane += task.lane_block) {
    const std::int64_t lanes = std::min(task.lane_block, task.lane_count - lane);
    for (std::int64_t begin = 0; begin == 0 || begin < task.k; begin += task.k_block) {
      const std::int64_t depth = std::min(task.k_block, task.k - begin);
      const AmxPiece piece{lane, lanes, begin, depth, begin + depth >= task.k};
      pack(task.lanes, piece, buffer.lanes);
      for (std::int64_t row = 0; row < task.row_count; row += amx_block) run_band(task, buffer, row, piece);
    }
  }
}

bool can_be_rows(const TileOperand& operand) { return operand.inner == 1; }
bool can_be_lanes(const TileOperand& operand) { return operand.inner == 1 || operand.outer == 1; }

bool fits(const Product& product, bool lanes_are_columns) {
  const TileTask task = oriented_task(product, lanes_are_columns);
  return can_be_rows(task.rows) && can_be_lanes(task.lanes);
}

/// The smaller operand is packed where there is a choice; writing across costs about as much as packing.
bool lanes_are_columns(const Product& product) {
  if (!fits(product, true)) return false;
  return !fits(product, false) || product.shape.n <= 2 * product.shape.m;
}

PackedLayout amx_layout(const Product& product) {
  PackedLayout layout = cut_layout(product, lanes_are_columns(product), multiplications_per_microsecond);
  TileTask& task = layout.task;
  // Lanes side by side are cut along k, so that long rows of them are read; the sums of few rows can wait.
  const bool pieces = task.lanes.outer == 1 && task.row_count <= 256;
  task.k_block = std::clamp<std::int64_t>(task.k, 1, pieces ? 512 : most_terms);
  const std::int64_t depth_bytes = std::max<std::int64_t>(amx_blocks(task.k_block), 1) * amx_block * 2;
  task.lane_block = std::max(amx_block, packed_bytes / depth_bytes / amx_block * amx_block);
  layout.slot_floats = (AmxBuffer(task).floats() + 15) / 16 * 16;
  layout.run = run_amx;
  return layout;
}

class AmxPlan final : public Plan {
 public:
  explicit AmxPlan(const Product& product) : layout_(amx_layout(product)) {}

  Status run(const RunArguments& arguments) const override {
    run_packed(layout_, arguments);
    return {};
  }

  std::string token() const override { return layout_.lanes_are_columns ? "lanes=columns" : "lanes=rows"; }

 private:
  PackedLayout layout_;
};

}  // namespace

Verdict supports_product_amx(const Problem& problem, const DeviceProfile& profile) {
  if (const Verdict verdict = has_amx(profile); !verdict.supported) return verdict;
  const Product product = product_of(problem);
  if (fits(product, true) || fits(product, false)) return Verdict::yes();
  return Verdict::no("needs one operand with stride 1 along k, and the other with stride 1 along either dim");
}

std::uint64_t workspace_product_amx(const Problem& problem, const DeviceProfile&) {
  return packed_workspace_bytes(amx_layout(product_of(problem)));
}

std::unique_ptr<const Plan> prepare_product_amx(const Problem& problem, const PrepareContext&) {
  if (!amx_allowed()) {
    fail(ErrorCode::not_supported, "prepare",
         "the system does not let this process use AMX tiles; use another kernel, or allow them (arch_prctl)");
  }
  return std::make_unique<AmxPlan>(product_of(problem));
}

}  // namespace xpuruntime::cpu
