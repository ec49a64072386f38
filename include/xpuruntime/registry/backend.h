#pragma once

// The backend contract. Everything needed to bring a device or a set of kernels to xpuruntime is in this header and the
// two it includes: device/driver.h (how the library reaches your devices) and registry/kernel.h (what a kernel
// answers). registry/refusals.h has the usual reasons to refuse a problem.
//
// A backend is
//   1. a DeviceDriver: which devices are there, memory, streams and events;
//   2. one ordered constexpr table of KernelSpec rows, fastest first, reference last;
//   3. a Backend object that returns both.
//
// The shortest one that works is a plugin, a shared library, with a kernel for the CPU:
//
//   #include <algorithm>
//
//   #include "xpuruntime/registry/backend.h"
//   #include "xpuruntime/registry/refusals.h"
//
//   using namespace xpuruntime;
//
//   Verdict supports_relu(const Problem& problem, const DeviceProfile&) { return is_contiguous(problem); }
//
//   struct ReluPlan : Plan {
//     Status run(const RunArguments& arguments) const override {
//       const float* in = arguments.inputs[0]->as<const float>();
//       const float* end = in + element_count(arguments.inputs[0]->spec());
//       std::transform(in, end, arguments.outputs[0]->as<float>(), [](float x) { return x <= 0 ? 0 : x; });
//       return {};
//     }
//   };
//
//   std::unique_ptr<const Plan> prepare_relu(const Problem&, const PrepareContext&) {
//     return std::make_unique<ReluPlan>();
//   }
//
//   constexpr KernelSpec table[] = {
//       {OpId::relu, "my_relu", "a plain loop", DataType::float32, prepare_relu, supports_relu}};
//
//   class MyBackend : public Backend {
//    public:
//     std::string_view name() const override { return "mine"; }
//     DeviceType device_type() const override { return DeviceType::cpu; }
//     std::shared_ptr<DeviceDriver> driver() override { return nullptr; }  // the CPU has one already
//     std::span<const KernelSpec> kernels() const override { return table; }
//   };
//
//   XRT_EXPORT_BACKEND(MyBackend)  // once, at the end
//
// It is opened with `xrt --plugin ./libmine.so ...`, `XPURUNTIME_PLUGINS=./libmine.so` or KernelRegistry::load_plugin.
// A plugin is trusted code that runs in the caller's process: it is opened only from paths the user named. Of the file
// only length, format and version are checked, so one whose bytes were changed can crash the process.
//
// Rules of the house
//   * A row is forward only: no kernel is asked about a backward that it does not declare (with_backward, or
//     KernelSpec::directions). Backward is another computation, on the forward inputs and the output's gradient.
//   * supports() is data, not an exception, and reads nothing but the problem and the profile. It is asked only about
//     the dtypes of its row, and about tensors aligned to their elements unless the row takes others.
//   * prepare() may be slow and may throw Error: with not_supported it refuses the problem as supports() would have,
//     with out_of_memory it is passed over this time, with any other code the kernel is quarantined for the problem.
//     run() must be quick to queue, and reports a failed launch as a Status.
//   * A kernel that can make several plans lists their tokens (KernelSpec::variants) and makes the one it is asked for
//     (prepare_variant): tuning races them, and a store or a lock brings the very plan back in another process. A token
//     describes the plan by what stays the same in another version of a library.
//   * What an op's row marks as opt_in goes to kernels that name it (KernelSpec::takes): no kernel passes over an
//     attribute or an input that came after it was written.
//   * One plan may serve a class of problems, such as all lengths of a sequence (plan_problem; in a table, by_class):
//     its runs read the extents, and get the workspace of their own problem unless the plan names one for all.
//   * While a stream is captured (DeviceDriver::capturing) nothing is prepared, tuned or waited for, and no plan that
//     would have to be waited for is destroyed. Workspace may be allocated (DeviceDriver::allocate). A plan that ran
//     there, its workspace and its tensors' memory are kept for as long as the graph (keep_with_graph).
//   * A device that takes no more work in this process is an error or Status with device_lost: nothing is quarantined
//     or stored because of what fails after that.
//   * On an asynchronous device a wrong value is found too late for a Status: the plan holds a word for it
//     (DeviceDriver::make_value_fault), its kernels set it and write nothing for that value, and the next
//     synchronisation reports it.
//   * A value in the caller's tensors that cannot be right (an index past the end) is a Status with invalid_argument,
//     given before anything is written. The call then fails with that text; the kernel is not quarantined for it.
//   * An output that overlaps an input never reaches run(), but for one exactly in place of an input that the op lets
//     it be written over (InputSpec::in_place).
//   * run() works on `arguments.stream`, on the tensors' own device, and never waits for the device if it is
//     asynchronous.
//   * Nothing prints, aborts or exits.

#include <memory>
#include <span>
#include <string_view>

#include "xpuruntime/device/driver.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {

/// Incremented when this header or one that it includes changes in a way that breaks old plugins: driver.h
/// and kernel.h, and what they show: core/problem.h, core/tensor.h, core/op.h, device/profile.h, device/stream.h
/// and registry/data_type_set.h.
inline constexpr std::uint32_t backend_contract_version = 7;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  virtual DeviceType device_type() const = 0;
  /// Null where the backend only adds kernels to a type that another backend drives.
  virtual std::shared_ptr<DeviceDriver> driver() = 0;
  virtual std::span<const KernelSpec> kernels() const = 0;
  /// Of its kernels' code (Kernel::version). A plugin's is followed by a hash of its file, so that a build is told from
  /// another; empty: the hash alone, and for a backend that is not a plugin none.
  virtual std::string_view version() const { return {}; }
};

/// What a plugin exports as `xpuruntime_plugin`. Plain data first, so that a mismatch is found before any call.
struct PluginInfo {
  std::uint32_t contract_version = backend_contract_version;
  std::uint32_t struct_bytes = sizeof(PluginInfo);
  const char* compiler = "";  // the C++ ABI it was built with: must equal XRT_PLUGIN_ABI
  Backend* (*create)() = nullptr;
};

/// Names the C++ ABI of this build.
#define XRT_STRINGIFY_(x) #x
#define XRT_STRINGIFY(x) XRT_STRINGIFY_(x)
#define XRT_PLUGIN_ABI "libstdc++-cxx11-" XRT_STRINGIFY(_GLIBCXX_USE_CXX11_ABI)

#define XRT_EXPORT_BACKEND(Type)                                                                         \
  extern "C" __attribute__((visibility("default"))) const ::xpuruntime::PluginInfo xpuruntime_plugin = { \
      ::xpuruntime::backend_contract_version, sizeof(::xpuruntime::PluginInfo), XRT_PLUGIN_ABI,          \
      []() -> ::xpuruntime::Backend* { return new Type(); }};

}  // namespace xpuruntime
