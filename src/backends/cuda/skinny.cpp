#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

// A product with few rows is bound by reading b once. Everything here serves that: 16-byte loads where the layout
// allows, and enough of them in flight on every multiprocessor.

namespace xpuruntime::cuda {
namespace {

// The kernels count in 32 bits, also bytes of 16-bit elements and of the vector that they begin in.
constexpr std::int64_t most_extent = (std::int64_t{1} << 30) - 64;
constexpr std::size_t most_variants = 8;

bool is_16_bit(DataType dtype) { return dtype == DataType::float16 || dtype == DataType::bfloat16; }

Verdict few_rows(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = product_shape(problem);
  const std::int64_t most_rows = is_16_bit(problem.inputs[0].dtype) ? 64 : 16;
  if (const Verdict rows = is_at_most("m", shape.m, most_rows); !rows.supported) return rows;
  if (const Verdict columns = is_at_most("n", shape.n, most_extent); !columns.supported) return columns;
  return is_at_most("k", shape.k, most_extent);
}

Verdict one_matrix(const Problem& problem, const DeviceProfile&) {
  const std::int64_t batch = product_shape(problem).batch_count;
  return batch == 0 ? is_not_empty(problem) : is_at_most("batch", batch, 1);
}

Verdict skinny_dtype(const Problem& problem, const DeviceProfile&) {
  const DataType dtype = problem.inputs[0].dtype, output = problem.outputs[0].dtype;
  const Verdict alike = is_same_dtype("input 1", problem.inputs[1].dtype, "the input's", dtype);
  if (!alike.supported || output == DataType::float32) return alike;
  return is_same_dtype("output 0", output, "f32 and the input's", dtype);
}

bool along_k(const MatmulShape& shape) { return shape.b.row == 1 || shape.k <= 1; }
bool along_n(const MatmulShape& shape) { return shape.b.column == 1 || shape.n <= 1; }

Verdict b_is_dense(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = product_shape(problem);
  return along_k(shape) || along_n(shape) ? Verdict::yes() : Verdict::no("no stride of the second input is 1");
}

/// The third input's strides over rows and columns of the product. Nothing where one stride does not walk the rows.
std::optional<MatrixStrides> addend_strides(const Problem& problem) {
  const TensorSpec& addend = problem.inputs[2];
  const Dims& out = problem.outputs[0].shape;
  const std::size_t missing = out.size() - addend.shape.size();
  const auto stride = [&](std::size_t dim) {
    return dim < missing || addend.shape[dim - missing] == 1 ? 0 : addend.strides[dim - missing];
  };
  std::size_t dim = out.size();
  MatrixStrides strides;
  if (problem.inputs[1].shape.size() > 1) strides.column = stride(--dim);
  std::int64_t rows = 1;
  while (dim-- > 0) {
    if (out[dim] == 1) continue;
    if (rows > 1 && stride(dim) != strides.row * rows) return {};
    if (rows == 1) strides.row = stride(dim);
    rows *= out[dim];
  }
  return strides;
}

bool has_addend(const Problem& problem) {
  return has_input(problem.inputs, 2) && (problem.op == OpId::linear || problem.attributes.real("beta") != 0);
}

Verdict c_is_walked(const Problem& problem, const DeviceProfile&) {
  if (!has_addend(problem) || addend_strides(problem)) return Verdict::yes();
  return Verdict::no("one stride does not walk the rows of c");
}

/// Every row starts on 16 bytes and is whole vectors long.
bool has_vectors(std::int64_t extent, std::int64_t rows, std::int64_t stride, const TensorSpec& spec) {
  const auto wide = static_cast<std::int64_t>(16 / size_of(spec.dtype));
  return spec.alignment >= 16 && extent % wide == 0 && (rows <= 1 || stride % wide == 0);
}

bool a_vectors(const MatmulShape& shape, const Problem& problem) {
  return shape.a.column == 1 && has_vectors(shape.k, shape.m, shape.a.row, problem.inputs[0]);
}

bool k_vectors(const MatmulShape& shape, const Problem& problem) {
  return a_vectors(shape, problem) && shape.b.row == 1 &&
         has_vectors(shape.k, shape.n, shape.b.column, problem.inputs[1]);
}

bool n_vectors(const MatmulShape& shape, const Problem& problem) {
  return shape.b.column == 1 && has_vectors(shape.n, shape.k, shape.b.row, problem.inputs[1]);
}

int power_of_two_rows(std::int64_t m) { return m > 4 ? 8 : m > 2 ? 4 : m > 1 ? 2 : 1; }

/// Enough warps to fill the device: about 32 for each multiprocessor.
int warps_per_dot(const MatmulShape& shape, int units) {
  int warps = 1;
  while (warps < 8 && shape.n * warps < 32 * static_cast<std::int64_t>(units) && shape.k >= 256 * warps) warps *= 2;
  return warps;
}

/// Wide blocks read longer runs; narrower ones are taken while too few blocks would leave multiprocessors idle.
int lanes_for(const MatmulShape& shape, bool vector, DataType dtype, int units) {
  if (!vector) return 32;
  const auto wide = static_cast<std::int64_t>(16 / size_of(dtype));
  int lanes = 8;
  while (lanes > 2 && (shape.n + lanes * wide - 1) / (lanes * wide) * 4 < 3 * static_cast<std::int64_t>(units)) {
    lanes /= 2;
  }
  return lanes;
}

std::int64_t parts(std::int64_t of, std::int64_t size) { return (of + size - 1) / size; }

/// All that the paths have in common.
SkinnyLaunch launch_of(const Problem& problem, const MatmulShape& shape) {
  SkinnyLaunch launch;
  launch.m = static_cast<int>(shape.m);
  launch.n = static_cast<int>(shape.n);
  launch.k = static_cast<int>(shape.k);
  launch.a = {shape.a.row, shape.a.column};
  launch.b = {shape.b.row, shape.b.column};
  launch.c = {shape.c.row, shape.c.column};
  launch.dtype = problem.inputs[0].dtype;
  launch.output = problem.outputs[0].dtype;
  if (has_addend(problem)) {
    const MatrixStrides strides = *addend_strides(problem);
    launch.addend = problem.inputs[2].dtype;
    launch.addend_strides = {strides.row, strides.column};
    launch.beta = problem.op == OpId::linear ? 1 : static_cast<float>(problem.attributes.real("beta"));
  }
  if (problem.op == OpId::matmul) {
    launch.alpha = static_cast<float>(problem.attributes.real("alpha"));
  } else {
    constexpr std::string_view names[] = {"none", "relu", "gelu", "silu"};
    const auto found = std::find(std::begin(names), std::end(names), problem.attributes.choice("activation"));
    launch.activation = static_cast<Activation>(found - std::begin(names));
  }
  return launch;
}

/// A way to run the problem, and about how many microseconds it takes: good enough to put ways in order. The figures
/// were fitted to the times of all ways of 308 problems on an H200: the first one took 3 % longer than the best, in
/// geometric mean.
struct Way {
  SkinnyLaunch launch = {};
  double us = 0;
};

/// Lists ways for one problem.
class Ways {
 public:
  Ways(const Problem& problem, const DeviceProfile& profile)
      : problem_(problem),
        profile_(profile),
        shape_(product_shape(problem)),
        units_(std::max(profile.compute_units, 1)),
        common_(launch_of(problem, shape_)) {
    common_.along_k = shape_.b.row == 1 || !along_n(shape_);
    if (is_16_bit(problem.inputs[0].dtype) && (shape_.a.column == 1 || shape_.k <= 1) && has_long_lines()) {
      common_.vector =
          common_.along_k ? k_vectors(shape_, problem) : a_vectors(shape_, problem) && n_vectors(shape_, problem);
      add_tiles();
      if (common_.along_k && shape_.k > 0) {
        if (shape_.m == 1) add_lanes();
        add_held();
      }
      std::stable_sort(ways_.begin(), ways_.end(), [](const Way& a, const Way& b) { return a.us < b.us; });
    }
    // Where tensor cores would be idle but for a few rows, they may win.
    if (ways_.empty() || (shape_.m <= 4 && !common_.along_k)) add_scalar();
  }

  const std::vector<Way>& all() const { return ways_; }

 private:
  std::vector<int> splits() const {
    return profile_.compute_capability_major >= 9 ? std::vector{1, 2, 4, 8} : std::vector{1};
  }

  /// Lines are read by vectors of 8: only the last may end in a vector that reaches behind the tensor.
  bool has_long_lines() const {
    const std::int64_t lines = common_.along_k ? shape_.n : shape_.k;
    const std::int64_t step = common_.along_k ? shape_.b.column : shape_.b.row;
    return (shape_.m <= 1 || shape_.a.row >= 8) && (lines <= 1 || step >= 8);
  }

  /// Vectors of 8 k's that a column has, the parts of vectors at its ends included.
  std::int64_t column_vectors() const { return parts(shape_.k + (common_.vector ? 0 : 7), 8); }

  SkinnyLaunch streaming(SkinnyPath path, int pieces, std::int64_t warps) const {
    SkinnyLaunch launch = common_;
    launch.path = path;
    launch.pieces = pieces;
    launch.warps = static_cast<int>(warps);
    const bool apart = !common_.vector && shape_.n > 1;
    launch.classes = apart ? static_cast<int>(8 / std::gcd<std::int64_t>(8, shape_.b.column)) : 1;
    return launch;
  }

  /// A way with as many blocks for each multiprocessor, fewer where they would have too few columns.
  void add_streaming(SkinnyLaunch launch, int each, std::int64_t least_columns, double us) {
    const std::int64_t most = std::max(static_cast<std::int64_t>(units_) * each / launch.classes, std::int64_t{1});
    const std::int64_t useful = std::max(parts(shape_.n, launch.classes * least_columns), std::int64_t{1});
    launch.blocks = static_cast<int>(std::min(most, useful)) * launch.classes;
    const auto same = [&](const Way& way) {
      const SkinnyLaunch& other = way.launch;
      return other.path == launch.path && other.pieces == launch.pieces && other.tile == launch.tile &&
             other.blocks == launch.blocks;
    };
    if (std::none_of(ways_.begin(), ways_.end(), same)) ways_.push_back({launch, us});
  }

  /// Time to read b at the device's bandwidth.
  double weight_us() const { return 2.0 * static_cast<double>(shape_.n) * static_cast<double>(shape_.k) / 4.2e6; }

  void add_lanes() {
    for (const int pieces : {1, 2, 4}) {
      const std::int64_t warps = parts(column_vectors(), 32 * pieces);
      if (warps > 16) continue;
      const SkinnyLaunch launch = streaming(SkinnyPath::lanes, pieces, warps);
      const int each = static_cast<int>(16 / warps);
      // A block takes eight columns at once. More blocks are better only where all have as many.
      const bool many = shape_.n >= 12 * static_cast<std::int64_t>(units_);
      const double us = 0.4 + 0.65 * weight_us() + (common_.vector ? 0 : 0.4);
      add_streaming(launch, many ? each : 1, 1, us);
      add_streaming(launch, many ? 1 : each, 1, us + 0.2);
      return;
    }
  }

  void add_held() {
    const std::int64_t vectors = column_vectors();
    for (const int rows : {16, 8}) {
      if (rows == 16 && shape_.m <= 8) continue;
      // Further rows read b again, from the cache.
      const auto passes = static_cast<double>(parts(shape_.m, rows));
      const double us = 3.3 + (1.0 + 0.7 * passes) * weight_us() + (rows == 16 ? 0.9 : 0) +
                        (common_.vector ? 0 : 0.65 * (1 + weight_us()));
      for (const int pieces : {4, 2, 8, 10, 16}) {
        const std::int64_t warps = parts(vectors, 4 * pieces);
        if (warps > 16 || (warps < 4 && pieces > 2) || (pieces > 8 && (rows == 16 || warps < 10))) continue;
        SkinnyLaunch launch = streaming(SkinnyPath::held, pieces, warps);
        launch.tile = rows;
        const std::int64_t each = std::clamp<std::int64_t>((rows == 8 && pieces < 8 ? 32 : 16) / warps, 1, 4);
        add_streaming(launch, static_cast<int>(each), 4, us + 0.13 * std::abs(pieces - 6));
        add_streaming(launch, 1, 4, us + 0.13 * std::abs(pieces - 6));
      }
    }
  }

  double tiles_us(const SkinnyLaunch& launch, const TilesLimits& limits, std::int64_t steps) const {
    const auto m = static_cast<double>(shape_.m), any = common_.vector ? 0.0 : 1.0, wide = launch.tile / 32.0;
    const auto blocks = static_cast<double>(parts(shape_.n, launch.tile) * launch.split);
    const double units = units_;
    // Each multiprocessor has a share of the bandwidth, a larger one while others have nothing to do.
    const double busy = std::min(blocks / units, 1.0), crowd = std::max(blocks / units, 1.0);
    const double line = 2.0 * static_cast<double>(shape_.k) / launch.split;  // bytes
    const double reading = std::max(launch.tile * line / std::min(33.6e3 / busy, 82e3),
                                    (launch.tile + m) * line / std::min(54e3 / busy, 127e3));
    const double multiplying = static_cast<double>(steps) / launch.split * wide * (0.024 + 0.0031 * m * (1 + any / 2));
    // Large clusters do not fit everywhere: they keep to parts of the device.
    const double places = launch.split > 4 ? 0.85 * units : launch.split > 2 ? 0.91 * units : units;
    const auto bytes = limits.bytes_per_warp * static_cast<std::uint64_t>(launch.warps) + 1024;
    const auto resident = static_cast<double>(std::max<std::uint64_t>(profile_.local_memory_bytes / bytes, 1));
    const auto turns = static_cast<double>(parts(steps, static_cast<std::int64_t>(launch.warps) * launch.split));
    const double waiting =
        std::ceil(blocks / (places * resident)) * (0.56 + turns * (0.6 + 0.009 * m + 0.4 * any) * std::sqrt(wide));
    return 1.4 + 0.017 * launch.warps + (launch.split > 1 ? 0.77 + 0.06 * m * (crowd - 1) : 0) + 0.006 * m * wide +
           std::max({crowd * reading, crowd * multiplying, waiting});
  }

  void add_tiles() {
    const std::int64_t steps = std::max<std::int64_t>(parts(shape_.k, 64), 1);
    for (const int tile : {32, 64}) {
      for (const int split : splits()) {
        if (split > steps) break;
        SkinnyLaunch launch = common_;
        launch.path = SkinnyPath::tiles;
        launch.tile = tile;
        launch.split = split;
        const TilesLimits limits = tiles_limits(launch);
        for (launch.warps = 4; launch.warps <= limits.most_warps; launch.warps *= 2) {
          if (limits.bytes_per_warp * static_cast<std::uint64_t>(launch.warps) > profile_.local_memory_bytes) break;
          ways_.push_back({launch, tiles_us(launch, limits, steps)});
          if (static_cast<std::int64_t>(launch.warps) * split >= steps) break;
        }
      }
    }
  }

  void add_scalar() {
    SkinnyLaunch launch = common_;
    // A vector may be both: a column of b is then one long run along k.
    const bool by_columns = shape_.n > 1 && along_n(shape_) && !(shape_.b.row == 1 && k_vectors(shape_, problem_));
    launch.path = by_columns ? SkinnyPath::columns : SkinnyPath::dots;
    launch.vector = by_columns ? n_vectors(shape_, problem_) : k_vectors(shape_, problem_);
    launch.rows = power_of_two_rows(shape_.m);
    launch.warps_per_dot = warps_per_dot(shape_, units_);
    launch.lanes = lanes_for(shape_, launch.vector, launch.dtype, units_);
    const std::size_t at = std::min(ways_.size(), most_variants - 1);
    ways_.insert(ways_.begin() + static_cast<std::ptrdiff_t>(at), {launch, 0});
  }

  const Problem& problem_;
  const DeviceProfile& profile_;
  MatmulShape shape_;
  int units_;
  SkinnyLaunch common_;
  std::vector<Way> ways_ = {};
};

std::string token_of(const SkinnyLaunch& launch) {
  const std::string load = launch.vector ? " load=16" : " load=1";
  const std::string split = " split=" + std::to_string(launch.split);
  const std::string streams = " pieces=" + std::to_string(launch.pieces) + " warps=" + std::to_string(launch.warps) +
                              " blocks=" + std::to_string(launch.blocks) + (launch.vector ? load : " load=any");
  switch (launch.path) {
    case SkinnyPath::held:
      return "path=held rows=" + std::to_string(launch.tile) + streams;
    case SkinnyPath::lanes:
      return "path=lanes" + streams;
    case SkinnyPath::tiles:
      return "path=tiles tile=" + std::to_string(launch.tile) + split + " warps=" + std::to_string(launch.warps) +
             (launch.vector ? load : " load=any");
    case SkinnyPath::dots:
      return "path=dots rows=" + std::to_string(launch.rows) +
             " warps_per_dot=" + std::to_string(launch.warps_per_dot) + load;
    default:
      return "path=columns rows=" + std::to_string(launch.rows) + " lanes=" + std::to_string(launch.lanes) + load;
  }
}

}  // namespace

Verdict supports_skinny(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, skinny_dtype, few_rows, one_matrix, b_is_dense, c_is_walked}, problem, profile);
}

std::vector<std::string> skinny_variants(const Problem& problem, const PrepareContext& context) {
  const Ways ways(problem, context.profile);
  std::vector<std::string> tokens;
  for (const Way& way : ways.all()) {
    if (tokens.size() < most_variants) tokens.push_back(token_of(way.launch));
  }
  return tokens;
}

std::unique_ptr<const Plan> prepare_skinny_variant(const Problem& problem, const PrepareContext& context,
                                                   std::string_view token) {
  const Ways ways(problem, context.profile);
  for (const Way& way : ways.all()) {
    const std::string name = token_of(way.launch);
    if (!token.empty() && name != token) continue;
    return std::make_unique<LaunchPlan<SkinnyLaunch>>("skinny", context.device, way.launch, name);
  }
  fail(ErrorCode::not_supported, "skinny", "it has no plan '" + std::string(token) + "' for this problem here");
}

std::unique_ptr<const Plan> prepare_skinny(const Problem& problem, const PrepareContext& context) {
  return prepare_skinny_variant(problem, context, {});
}

}  // namespace xpuruntime::cuda
