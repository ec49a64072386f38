#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/driver.h"
#include "xpuruntime/device/profile.h"
#include "xpuruntime/device/stream.h"

namespace xpuruntime {

/// A kernel's answer to "can you take this problem on this device?". No answer without a reason.
struct Verdict {
  bool supported = true;
  std::string reason = {};  // "k = 1023 is not a multiple of 8"; empty when supported

  static Verdict yes() { return {}; }
  static Verdict no(std::string reason) { return {false, std::move(reason)}; }
};

/// What a plan gets to run with. The tensors match the problem that the plan was prepared for; `workspace` has at least
/// the bytes the kernel declared and is valid until the work queued on `stream` is done.
struct RunArguments {
  std::span<const Tensor* const> inputs = {};
  std::span<const Tensor* const> outputs = {};
  void* workspace = nullptr;
  Stream stream = {};
};

/// What a kernel made once for one problem: algorithm, compiled program, descriptors. Runs many times, from several
/// threads at once. On an asynchronous device it stays alive until the work it queued is done: the library sees to
/// that.
class Plan {
 public:
  virtual ~Plan() = default;

  /// Queues the work. Never throws for a failed launch: that is a Status. One with `invalid_argument` says that the
  /// caller's values are wrong and nothing was written.
  virtual Status run(const RunArguments& arguments) const = 0;

  /// Describes the choice made inside the kernel by attributes that mean the same in another version of its library
  /// ("tile=64x32 stages=4"), never an index into an enumeration. Empty where there was nothing to choose.
  virtual std::string token() const { return {}; }
};

/// Where a kernel is prepared.
struct PrepareContext {
  Device device = {};
  const DeviceProfile& profile;
  DeviceDriver& driver;
};

/// Which ways of an op a kernel computes. Backward is another computation than forward, on other tensors: a kernel is
/// asked only about what it declares.
enum class Directions : std::uint8_t { forward, backward, both };

/// Whether somebody gave a kernel this version; false for what Kernel::version makes up.
bool is_versioned(std::string_view version);
/// As files and people get it: "unversioned" for all that is_versioned denies.
std::string written_version(std::string_view version);

/// One implementation of one op on one type of device.
class Kernel {
 public:
  Kernel();
  virtual ~Kernel() = default;

  virtual OpId op() const = 0;
  virtual std::string_view name() const = 0;
  virtual DeviceType device_type() const = 0;
  virtual Directions directions() const;  // forward, unless it says more

  /// Can it run this at all? What all ask who choose a kernel: its directions first, then `accepts`.
  Verdict supports(const Problem& problem, const DeviceProfile& profile) const;

  /// Its own answer, to problems of the directions that it declares. Reads nothing but its arguments, so that it can be
  /// asked about devices that are not here.
  virtual Verdict accepts(const Problem& problem, const DeviceProfile& profile) const = 0;

  /// Is this the kind of problem it is good at? A hint for the choice, never a refusal.
  virtual bool prefers(const Problem& problem, const DeviceProfile& profile) const;

  /// Temporary memory a run needs. Asked only where supports said yes.
  virtual std::uint64_t workspace_bytes(const Problem& problem, const DeviceProfile& profile) const;

  /// Gives the same bits every time for the same inputs.
  virtual bool deterministic() const;

  /// Which code this is. Times and lock entries are kept under name and version, so that other code under the same name
  /// does not pass for it. Empty for kernels of this library: the environment has its version. Where nobody gives one,
  /// a text that no other kernel has, in this process or another; a lock does not replay such a kernel.
  virtual std::string_view version() const { return unversioned_; }

  /// Builds the plan; throws Error when that fails. Called with `context.device` current.
  virtual std::unique_ptr<const Plan> prepare(const Problem& problem, const PrepareContext& context) const = 0;

 private:
  std::string unversioned_;
};

/// A row of a backend's table. The order of the rows is the order of preference, fastest first, reference last.
struct KernelSpec {
  OpId op = OpId::matmul;
  std::string_view name = {};
  Verdict (*supports)(const Problem&, const DeviceProfile&) = nullptr;
  std::unique_ptr<const Plan> (*prepare)(const Problem&, const PrepareContext&) = nullptr;
  std::uint64_t (*workspace_bytes)(const Problem&, const DeviceProfile&) = nullptr;  // null: none
  bool (*prefers)(const Problem&, const DeviceProfile&) = nullptr;                   // null: no opinion
  bool deterministic = true;
  Directions directions = Directions::forward;
};

/// The row of a kernel that computes backward too.
constexpr KernelSpec with_backward(KernelSpec row) {
  row.directions = Directions::both;
  return row;
}

/// The kernel a row describes. The row must outlive it (rows live in constexpr tables). Without a version it is
/// unversioned.
std::shared_ptr<const Kernel> make_kernel(const KernelSpec& spec, DeviceType device_type,
                                          std::optional<std::string> version = {});

/// A kernel from functions, for users who plug one in at run time. `run` is called for each call of the op.
struct FunctionKernel {
  OpId op = OpId::matmul;
  std::string name = {};
  DeviceType device_type = DeviceType::cpu;
  std::function<Verdict(const Problem&, const DeviceProfile&)> supports = {};  // empty: everything
  std::function<Status(const Problem&, const RunArguments&)> run = {};         // required
  std::uint64_t workspace_bytes = 0;
  bool deterministic = true;
  Directions directions = Directions::forward;
  std::string version = {};  // another one for other code; empty: unversioned
};
std::shared_ptr<const Kernel> make_kernel(FunctionKernel function);

}  // namespace xpuruntime
