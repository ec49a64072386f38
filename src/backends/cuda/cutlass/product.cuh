#pragma once

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>
#include <type_traits>

#include "backends/cuda/cutlass.h"
#include "backends/cuda/finish.cuh"

// A kernel of CUTLASS for Hopper: one warp has tiles copied to shared memory, warpgroups multiply them.

namespace xpuruntime::cuda {

/// Which activation, chosen at run time: one kernel serves all.
struct ActivationArguments {
  Activation activation = Activation::none;
};

template <class Values>
struct Activate {
  using Arguments = ActivationArguments;

  CUTLASS_DEVICE Values operator()(Values x, const Arguments& p) const {
    if (p.activation == Activation::none) return x;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < Values::kElements; ++i) x[i] = activate<float>(x[i], p.activation);
    return x;
  }
};
template <>
struct Activate<float> {
  using Arguments = ActivationArguments;
};

/// How two warpgroups share tiles: both work on one, or each has its own and one multiplies while the other stores.
struct Cooperative {
  static constexpr const char* name = "cooperative";
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::TmaWarpSpecializedCooperative;
};
struct PingPong {
  static constexpr const char* name = "pingpong";
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
};

/// `turned`: the transpose is computed, c^T = b^T a^T, so that the longer side of the tile lies along n.
template <int tile_m, int tile_n, int tile_k, int cluster, class Schedule, bool splits = false, bool turned = false>
struct Tile {
  using Shape = cute::Shape<cute::Int<tile_m>, cute::Int<tile_n>, cute::Int<tile_k>>;
  using Cluster = cute::Shape<cute::Int<cluster>, cute::_1, cute::_1>;
  using Schedules = Schedule;
  using Scheduler = std::conditional_t<splits, cutlass::gemm::StreamKScheduler, cutlass::gemm::PersistentScheduler>;
  static constexpr bool takes_splits = splits;
  static constexpr bool is_turned = turned;

  static constexpr int m = turned ? tile_n : tile_m;
  static constexpr int n = turned ? tile_m : tile_n;
  static constexpr int k = tile_k;
  static constexpr int blocks = cluster;
};

template <class Tile, class Element, bool along_k>
class Product {
  using Row = cutlass::layout::RowMajor;
  using Column = cutlass::layout::ColumnMajor;
  // `b` is the second operand, the first one where the product is turned.
  using LayoutB = std::conditional_t<along_k, Column, Row>;
  using LayoutBTurned = std::conditional_t<along_k, Row, Column>;
  using FirstLayout = std::conditional_t<Tile::is_turned, LayoutBTurned, Row>;
  using SecondLayout = std::conditional_t<Tile::is_turned, Column, LayoutB>;
  using OutputLayout = std::conditional_t<Tile::is_turned, Column, Row>;
  static constexpr int vector = 8;  // elements of 16 bytes

  using Fusion =
      std::conditional_t<Tile::is_turned, cutlass::epilogue::fusion::LinCombPerRowBiasEltAct<Activate, Element, float>,
                         cutlass::epilogue::fusion::LinCombPerColBiasEltAct<Activate, Element, float>>;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, typename Tile::Shape, typename Tile::Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, Element, OutputLayout, vector, Element,
      OutputLayout, vector, typename Tile::Schedules::Epilogue, Fusion>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, FirstLayout, vector, Element, SecondLayout, vector,
      float, typename Tile::Shape, typename Tile::Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      typename Tile::Schedules::Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue,
                                                      typename Tile::Scheduler>;
  using Arguments = typename Kernel::Arguments;

  template <class Stride>
  static Stride strides(const CutlassMatrix& matrix) {
    if constexpr (std::is_same_v<std::decay_t<decltype(cute::get<0>(Stride{}))>, std::int64_t>) {
      return Stride{matrix.leading, {}, matrix.batch};
    } else {
      return Stride{{}, matrix.leading, matrix.batch};
    }
  }

  static Arguments arguments_of(const CutlassLaunch& p, const Pointers& x) {
    constexpr bool turned = Tile::is_turned;
    const auto* const a = static_cast<const Element*>(x.inputs[0]);
    const auto* const b = static_cast<const Element*>(x.inputs[1]);
    const auto* const addend = static_cast<const Element*>(x.inputs[2]);
    auto* const d = static_cast<Element*>(x.output);
    Arguments arguments = {};
    arguments.mode =
        p.batches > 1 ? cutlass::gemm::GemmUniversalMode::kBatched : cutlass::gemm::GemmUniversalMode::kGemm;
    arguments.problem_shape = {turned ? p.n : p.m, turned ? p.m : p.n, p.k, p.batches};
    arguments.mainloop.ptr_A = turned ? b : a;
    arguments.mainloop.dA = strides<typename Kernel::StrideA>(turned ? p.b : p.a);
    arguments.mainloop.ptr_B = turned ? a : b;
    arguments.mainloop.dB = strides<typename Kernel::StrideB>(turned ? p.a : p.b);
    arguments.epilogue.ptr_C = p.beta != 0 ? addend : d;
    arguments.epilogue.dC = strides<typename Kernel::StrideC>(p.beta != 0 ? p.c : p.d);
    arguments.epilogue.ptr_D = d;
    arguments.epilogue.dD = strides<typename Kernel::StrideD>(p.d);
    arguments.epilogue.thread.alpha = p.alpha;
    arguments.epilogue.thread.beta = p.beta;
    arguments.epilogue.thread.bias_ptr = p.bias ? addend : nullptr;
    arguments.epilogue.thread.activation = {p.activation};
    arguments.hw_info.sm_count = p.units;
    if constexpr (Tile::takes_splits) {
      using Mode = std::decay_t<decltype(arguments.scheduler.decomposition_mode)>;
      arguments.scheduler.splits = p.split > 1 ? p.split : 1;
      arguments.scheduler.decomposition_mode = p.split > 1    ? Mode::SplitK
                                               : p.split == 1 ? Mode::DataParallel
                                                              : Mode::StreamK;
    }
    return arguments;
  }

 public:
  static std::uint64_t workspace_bytes(const CutlassLaunch& p) {
    return Kernel::get_workspace_size(arguments_of(p, {}));
  }

  static cudaError_t prepare() {
    return cudaFuncSetAttribute(cutlass::device_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                Kernel::SharedStorageSize);
  }

  static cudaError_t launch(const CutlassLaunch& p, const Pointers& x, cudaStream_t stream) {
    const Arguments arguments = arguments_of(p, x);
    if (Kernel::initialize_workspace(arguments, x.workspace, stream) != cutlass::Status::kSuccess) {
      const cudaError_t error = cudaGetLastError();
      return error != cudaSuccess ? error : cudaErrorInvalidValue;
    }
    typename Kernel::Params params = Kernel::to_underlying_arguments(arguments, x.workspace);
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {Tile::blocks, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = Kernel::get_grid_shape(params);
    config.blockDim = Kernel::get_block_shape();
    config.dynamicSmemBytes = Kernel::SharedStorageSize;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, cutlass::device_kernel<Kernel>, params);
  }
};

template <class Tile, class Element>
constexpr CutlassConfiguration cutlass_configuration() {
  using Along = Product<Tile, Element, true>;
  using Across = Product<Tile, Element, false>;
  CutlassConfiguration result;
  result.dtype = std::is_same_v<Element, cutlass::half_t> ? DataType::float16 : DataType::bfloat16;
  result.m = Tile::m;
  result.n = Tile::n;
  result.k = Tile::k;
  result.cluster = Tile::blocks;
  result.schedule = Tile::Schedules::name;
  result.splits = Tile::takes_splits;
  result.workspace_bytes = [](const CutlassLaunch& p) {
    return p.along_k ? Along::workspace_bytes(p) : Across::workspace_bytes(p);
  };
  result.prepare = [](const CutlassLaunch& p) { return p.along_k ? Along::prepare() : Across::prepare(); };
  result.launch = [](const CutlassLaunch& p, const Pointers& x, cudaStream_t stream) {
    return p.along_k ? Along::launch(p, x, stream) : Across::launch(p, x, stream);
  };
  return result;
}

}  // namespace xpuruntime::cuda

// Defines the configuration that configurations.cpp lists, for the dtype that this file is compiled for.
#define XRT_JOIN(name, element) name##_##element
#define XRT_CUTLASS_NAME(name, element) XRT_JOIN(name, element)
#define XRT_CUTLASS_TILE(name, ...)                                                         \
  namespace xpuruntime::cuda {                                                              \
  extern const CutlassConfiguration XRT_CUTLASS_NAME(cutlass_##name, XRT_CUTLASS_ELEMENT) = \
      cutlass_configuration<__VA_ARGS__, cutlass::XRT_CUTLASS_ELEMENT>();                   \
  }
