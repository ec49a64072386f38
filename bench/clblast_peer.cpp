#include "clblast_peer.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

namespace xpuruntime::bench {
namespace {

// The C interfaces of OpenCL and CLBlast, as far as they are called.
struct Functions {
  int (*finish)(void* queue) = nullptr;
  int (*queue_info)(void* queue, unsigned what, std::size_t bytes, void* to, std::size_t*) = nullptr;
  int (*override_parameters)(void* device, const char* kernel, int precision, std::size_t count, const char** names,
                             const std::size_t* values) = nullptr;
  int (*temporary_size)(int, int, int, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t,
                        std::size_t, std::size_t, std::size_t, void** queue, std::size_t*) = nullptr;
  int (*gemm)(int, int, int, std::size_t, std::size_t, std::size_t, float, void*, std::size_t, std::size_t, void*,
              std::size_t, std::size_t, float, void*, std::size_t, std::size_t, void** queue, void* event,
              void* temporary) = nullptr;
  int (*gemv)(int, int, std::size_t, std::size_t, float, void*, std::size_t, std::size_t, void*, std::size_t,
              std::size_t, float, void*, std::size_t, std::size_t, void** queue, void* event) = nullptr;
  bool complete = false;
};
constexpr int by_rows = 101, plain = 111, turned = 112, single_precision = 32;
constexpr unsigned device_of_queue = 0x1091;  // CL_QUEUE_DEVICE

const Functions& functions() {
  static const Functions found = [] {
    Functions f;
    void* opencl = dlopen("libOpenCL.so.1", RTLD_NOW);
    void* clblast = dlopen("libclblast.so.1", RTLD_NOW);
    if (opencl == nullptr || clblast == nullptr) return f;
    const auto find = [](auto& function, void* library, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    f.complete = find(f.finish, opencl, "clFinish") && find(f.queue_info, opencl, "clGetCommandQueueInfo") &&
                 find(f.override_parameters, clblast, "CLBlastOverrideParameters") &&
                 find(f.temporary_size, clblast, "CLBlastSGemmTempBufferSize") &&
                 find(f.gemm, clblast, "CLBlastSgemmWithTempBuffer") && find(f.gemv, clblast, "CLBlastSgemv");
    return f;
  }();
  return found;
}

using Values = std::vector<std::size_t>;
struct Parameter {
  const char* name;
  Values values;
};
/// One of CLBlast's kernels: its parameters, which of their values go together, and good ones to begin with.
struct Space {
  const char* kernel;
  std::vector<Parameter> parameters;
  bool (*valid)(const Values&);
  std::vector<Values> starts;
  std::int64_t side;  // of the square matrices that it is fitted on
};

template <std::size_t count>
std::array<std::size_t, count> array_of(const Values& values) {
  std::array<std::size_t, count> all = {};
  std::copy_n(values.begin(), count, all.begin());
  return all;
}

const Space& tiles() {
  static const Space space = {"Xgemm",
                              {{"GEMMK", {0, 1}},
                               {"KREG", {1, 2, 4}},
                               {"KWG", {1, 16, 32}},
                               {"KWI", {1, 2, 8}},
                               {"MDIMA", {4, 8, 16, 32}},
                               {"MDIMC", {4, 8, 16, 32}},
                               {"MWG", {16, 32, 64, 128}},
                               {"NDIMB", {4, 8, 16, 32}},
                               {"NDIMC", {4, 8, 16, 32}},
                               {"NWG", {16, 32, 64, 128}},
                               {"SA", {0, 1}},
                               {"SB", {0, 1}},
                               {"STRM", {0, 1}},
                               {"STRN", {0, 1}},
                               {"VWM", {1, 2, 4, 8}},
                               {"VWN", {1, 2, 4, 8}}},
                              [](const Values& v) {
                                const auto [kernel, kreg, kwg, kwi, mdima, mdimc, mwg, ndimb, ndimc, nwg, sa, sb, strm,
                                            strn, vwm, vwn] = array_of<16>(v);
                                if (mwg % (mdimc * vwm) != 0 || nwg % (ndimc * vwn) != 0) return false;
                                if (mwg % (mdima * vwm) != 0 || nwg % (ndimb * vwn) != 0) return false;
                                if (kernel == 1)
                                  return kwg == 1 && kwi == 1 && mdima == mdimc && ndimb == ndimc &&
                                         sa + sb + strm + strn == 0 && kreg % vwn == 0;
                                const std::size_t items = mdimc * ndimc;
                                return kreg == 1 && kwg > 1 && kwi > 1 && items >= mdima && items >= ndimb &&
                                       kwg % (items / mdima) == 0 && kwg % (items / ndimb) == 0;
                              },
                              {{0, 1, 32, 2, 8, 8, 128, 4, 16, 64, 1, 1, 0, 1, 8, 2},
                               {0, 1, 32, 2, 8, 8, 128, 8, 8, 16, 0, 1, 1, 1, 8, 2},
                               {0, 1, 32, 2, 16, 8, 128, 32, 16, 64, 1, 1, 0, 0, 8, 2},
                               {1, 4, 1, 1, 4, 4, 32, 4, 4, 32, 0, 0, 0, 0, 4, 4}},
                              512};
  return space;
}

const Space& direct() {
  static const Space space = {
      "XgemmDirect",
      {{"KWID", {2, 8, 16}},
       {"MDIMAD", {8, 16, 32}},
       {"MDIMCD", {8, 16, 32}},
       {"NDIMBD", {8, 16, 32}},
       {"NDIMCD", {8, 16, 32}},
       {"PADA", {0, 1}},
       {"PADB", {0, 1}},
       {"VWMD", {1, 2, 4, 8}},
       {"VWND", {1, 2, 4, 8}},
       {"WGD", {8, 16, 32, 64}}},
      [](const Values& v) {
        const auto [kwid, mdima, mdimc, ndimb, ndimc, pada, padb, vwm, vwn, wgd] = array_of<10>(v);
        const std::size_t items = mdimc * ndimc;
        return wgd % kwid == 0 && wgd % (mdimc * vwm) == 0 && wgd % (ndimc * vwn) == 0 && wgd % (mdima * vwm) == 0 &&
               wgd % (ndimb * vwn) == 0 && wgd % (items / mdima) == 0 && wgd % (items / ndimb) == 0;
      },
      {{2, 8, 8, 8, 8, 1, 1, 4, 4, 32}, {2, 8, 8, 8, 8, 1, 1, 8, 2, 64}},
      256};
  return space;
}

void set(void* device, const char* kernel, const std::vector<const char*>& names, const Values& values) {
  std::vector<const char*> given = names;
  const int code =
      functions().override_parameters(device, kernel, single_precision, values.size(), given.data(), values.data());
  if (code != 0) fail(ErrorCode::device_error, "CLBlastOverrideParameters", "gave " + std::to_string(code));
}

std::vector<const char*> names_of(const Space& space) {
  std::vector<const char*> names;
  for (const Parameter& parameter : space.parameters) names.push_back(parameter.name);
  return names;
}

/// One to three values other than those of `best`.
Values neighbour(const Space& space, const Values& best, std::mt19937& random) {
  while (true) {
    Values next = best;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % next.size();
      const Values& all = space.parameters[at].values;
      next[at] = all[random() % all.size()];
    }
    if (next != best && space.valid(next)) return next;
  }
}

void* device_behind(Stream stream) {
  void* device = nullptr;
  functions().queue_info(stream.handle, device_of_queue, sizeof(device), &device, nullptr);
  return device;
}

}  // namespace

ClBlastPeer::ClBlastPeer(Runtime& runtime, Device device, const Tensor& a, const Tensor& b)
    : runtime_(runtime),
      device_(device),
      stream_(runtime.devices().driver(device).create_stream(device.index)),
      a_(a),
      b_(b),
      c_(runtime.devices().allocate(DataType::float32, {a.shape()[0], b.shape()[1]}, device)),
      m_(static_cast<std::size_t>(a.shape()[0])),
      n_(static_cast<std::size_t>(b.shape()[1])),
      k_(static_cast<std::size_t>(b.shape()[0])) {}

ClBlastPeer::~ClBlastPeer() { runtime_.devices().driver(device_).destroy_stream(device_.index, stream_); }

std::unique_ptr<ClBlastPeer> ClBlastPeer::make(Runtime& runtime, const Problem& problem,
                                               const std::vector<Tensor>& tensors) {
  const auto matrix = [](const TensorSpec& spec) { return spec.shape.size() == 2 && spec.dtype == DataType::float32; };
  const Attributes& attributes = problem.attributes;
  const bool fits = problem.op == OpId::matmul && problem.inputs.size() == 2 && matrix(problem.inputs[0]) &&
                    matrix(problem.inputs[1]) && !attributes.boolean("transpose_a") &&
                    !attributes.boolean("transpose_b") && attributes.real("alpha") == 1;
  if (!fits || !functions().complete) return nullptr;
  std::unique_ptr<ClBlastPeer> peer(new ClBlastPeer(runtime, problem.device, tensors[0], tensors[1]));
  Way best = Way::tiles;
  double least = std::numeric_limits<double>::max();
  for (const Way way : {Way::tiles, Way::direct, Way::vector}) {
    if (way == Way::vector && peer->m_ != 1) continue;
    peer->take(way);
    const double seconds = peer->seconds_of(3);
    if (seconds < least) best = way;
    least = std::min(least, seconds);
  }
  peer->take(best);
  return peer;
}

void ClBlastPeer::take(Way way) {
  way_ = way;
  // Products from this many multiplications on, in the cube root, are computed in tiles.
  set(device_behind(stream_), "GemmRoutine", {"XGEMM_MIN_INDIRECT_SIZE"}, {way == Way::tiles ? 1U : 1U << 20});
  std::size_t bytes = 0;
  void* queue = stream_.handle;
  functions().temporary_size(by_rows, plain, plain, m_, n_, k_, 0, k_, 0, n_, 0, n_, &queue, &bytes);
  temporary_ = {};
  if (bytes > 0) temporary_ = runtime_.devices().allocate(DataType::uint8, {static_cast<std::int64_t>(bytes)}, device_);
}

int ClBlastPeer::multiply() const {
  void* queue = stream_.handle;
  const auto offset = [](const Tensor& tensor) { return tensor.byte_offset() / sizeof(float); };
  if (way_ == Way::vector)
    return functions().gemv(by_rows, turned, k_, n_, 1, b_.data(), offset(b_), n_, a_.data(), offset(a_), 1, 0,
                            c_.data(), offset(c_), 1, &queue, nullptr);
  return functions().gemm(by_rows, plain, plain, m_, n_, k_, 1, a_.data(), offset(a_), k_, b_.data(), offset(b_), n_, 0,
                          c_.data(), offset(c_), n_, &queue, nullptr, temporary_.data());
}

void ClBlastPeer::operator()(int calls) const {
  for (int i = 0; i < calls; ++i)
    if (const int code = multiply(); code != 0)
      fail(ErrorCode::device_error, "CLBlast", "a product gave " + std::to_string(code));
  functions().finish(stream_.handle);
}

double ClBlastPeer::seconds_of(int calls) const {
  (*this)(1);  // builds
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < calls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    (*this)(1);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void ClBlastPeer::tune(Runtime& runtime, Device device, int trials) {
  if (!functions().complete) return;
  for (const Space* space : {&tiles(), &direct()}) {
    const Tensor ones = Tensor::empty(DataType::float32, {space->side, space->side});
    std::fill_n(ones.as<float>(), space->side * space->side, 1.0f);
    const Tensor a = runtime.devices().copy_to(ones, device);
    ClBlastPeer peer(runtime, device, a, a);
    void* const id = device_behind(peer.stream_);
    const std::vector<const char*> names = names_of(*space);
    Values best;
    double least = std::numeric_limits<double>::max();
    const auto attempt = [&](const Values& values) {
      set(id, space->kernel, names, values);
      peer.take(space == &tiles() ? Way::tiles : Way::direct);
      if (peer.multiply() != 0) return;  // not for this device
      const double seconds = peer.seconds_of(3);
      if (seconds < least) best = values;
      least = std::min(least, seconds);
    };
    for (const Values& start : space->starts) attempt(start);
    std::mt19937 random(1);
    // PoCL's compiler comes to no end with some of the direct kernel's.
    const int more = space == &tiles() && !best.empty() ? trials : 0;
    for (int i = 0; i < more; ++i) attempt(neighbour(*space, best, random));
    if (best.empty()) continue;
    set(id, space->kernel, names, best);
    std::string text;
    for (std::size_t i = 0; i < best.size(); ++i) text += std::string(" ") + names[i] + "=" + std::to_string(best[i]);
    std::fprintf(stderr, "CLBlast's %s:%s\n", space->kernel, text.c_str());
  }
}

}  // namespace xpuruntime::bench
