#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/driver.h"
#include "xpuruntime/device/profile.h"
#include "xpuruntime/device/stream.h"
#include "xpuruntime/registry/data_type_set.h"

namespace xpuruntime {

/// A kernel's answer to "can you take this problem on this device?". No answer without a reason.
struct Verdict {
  bool supported = true;
  std::string reason = {};  // "k = 1023 is not a multiple of 8"; empty when supported

  static Verdict yes() { return {}; }
  static Verdict no(std::string reason) { return {false, std::move(reason)}; }
};

/// What a plan gets to run with. The tensors match the problem that the plan was prepared for, or another of its class
/// (Kernel::plan_problem); `workspace` has at least the bytes that were declared and is valid until the work queued on
/// `stream` is done. Where the op allows it (InputSpec::in_place), an output may be the very memory of an input, with
/// the same shape and strides: a kernel reads each element before it writes it, or takes a copy of the input first.
struct RunArguments {
  std::span<const Tensor* const> inputs = {};
  std::span<const Tensor* const> outputs = {};
  void* workspace = nullptr;
  Stream stream = {};
};

/// What a kernel made once for one problem, or for a class of them (Kernel::plan_problem): algorithm, compiled program,
/// descriptors. Runs many times, from several threads at once.
class Plan {
 public:
  virtual ~Plan() = default;

  /// Queues the work. Never throws for a failed launch: that is a Status. One with `invalid_argument` says that the
  /// caller's values are wrong and nothing was written.
  virtual Status run(const RunArguments& arguments) const = 0;

  /// Describes the choice made inside the kernel by attributes that mean the same in another version of its library
  /// ("tile=64x32 stages=4"), never an index into an enumeration. Empty where there was nothing to choose.
  virtual std::string token() const { return {}; }

  /// Temporary memory a run needs. Nothing: what the kernel said of the problem (Kernel::workspace_bytes).
  virtual std::optional<std::uint64_t> workspace_bytes() const { return {}; }

  /// Gives the same bits every time for the same inputs. Nothing: as the kernel says.
  virtual std::optional<bool> deterministic() const { return {}; }

  /// Whether work that it queued reads what it holds, so that the library waits for the device before it destroys the
  /// plan. False for one whose launches copy all they need: it may go at once.
  virtual bool outlives_its_work() const { return true; }

  /// This plan for calls whose inputs given here (null: any other) keep their contents: what it would make of them in
  /// every run, such as another layout, is made now. It computes the same, with the same workspace, and its calls get
  /// these inputs again. Null: there is nothing to gain.
  virtual std::unique_ptr<const Plan> with_constants(std::span<const Tensor* const> constants) const;

  /// Whether `run` itself makes its device current in the vendor's runtime and brings the caller's back. False: the
  /// library does both around it.
  virtual bool sets_device() const { return false; }
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

/// Whether this version was given to a kernel; false for what Kernel::version makes up.
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
  /// The op's opt-in inputs and attributes that it computes, forward: "alpha|beta|c". It never sees a problem that uses
  /// another one, so that a kernel cannot ignore an attribute that is newer than itself.
  virtual std::string_view takes() const;

  /// Whether it can run the problem, for whoever chooses a kernel: checks directions and `takes`, then `accepts`.
  Verdict supports(const Problem& problem, const DeviceProfile& profile) const;

  /// Its own answer, to problems of the directions that it declares. Reads nothing but its arguments, so that it can be
  /// asked about devices that are not here.
  virtual Verdict accepts(const Problem& problem, const DeviceProfile& profile) const = 0;

  /// Temporary memory a run needs; a bound where only the plan knows. Asked only where supports said yes.
  virtual std::uint64_t workspace_bytes(const Problem& problem, const DeviceProfile& profile) const;

  /// Gives the same bits every time for the same inputs, with every plan that does not say otherwise.
  virtual bool deterministic() const;

  /// Which code this is. Times and lock entries are kept under name and version, so that other code under the same name
  /// does not pass for it. Empty for kernels of this library: the environment has its version. Where none is given,
  /// a text that no other kernel has, in this process or another; a lock does not replay such a kernel.
  virtual std::string_view version() const { return unversioned_; }

  /// The tokens of the plans to choose from, where it can make more than one for this problem. The choice it would make
  /// itself need not be first. Tuning races them; a store and a lock keep the token.
  virtual std::vector<std::string> variants(const Problem& problem, const PrepareContext& context) const;

  /// Names the class of problems that one plan serves, by one of them: all that are answered with the same get the plan
  /// that is prepared for that one, whose runs read the extents from the tensors. A sequence that grows then builds no
  /// plan a step. Nothing: each problem has a plan of its own.
  virtual std::optional<Problem> plan_problem(const Problem& problem) const;

  /// The plan with this token, or the one the kernel chooses itself where the token is empty. Throws Error when that
  /// fails: with `not_supported` it is a refusal like one of `accepts`, found late; with any other code the kernel is
  /// quarantined for the problem. Called with `context.device` current.
  std::unique_ptr<const Plan> prepare(const Problem& problem, const PrepareContext& context,
                                      std::string_view token = {}) const;

  /// What prepare makes the plan with. One without variants need not look at the token: prepare compares.
  virtual std::unique_ptr<const Plan> make_plan(const Problem& problem, const PrepareContext& context,
                                                std::string_view token) const = 0;

 private:
  std::string unversioned_;
};

// The functions of a row. A header may declare its own by these: `SupportsFunction supports_tiled, supports_packed;`
using PrepareFunction = std::unique_ptr<const Plan>(const Problem&, const PrepareContext&);
using SupportsFunction = Verdict(const Problem&, const DeviceProfile&);
using WorkspaceFunction = std::uint64_t(const Problem&, const DeviceProfile&);
using VariantsFunction = std::vector<std::string>(const Problem&, const PrepareContext&);
using PrepareVariantFunction = std::unique_ptr<const Plan>(const Problem&, const PrepareContext&,
                                                           std::string_view token);

/// A row of a backend's table: all there is to know of one kernel. The order of the rows is the order of preference,
/// fastest first, reference last.
struct KernelSpec {
  OpList ops = {};
  std::string_view name = {};
  std::string_view summary = {};  // what it is good for, one line
  /// Of the inputs that must be given. Optional inputs and gradients may be of `outputs` too; indices are not asked.
  DataTypeSet dtypes = any_dtype;
  PrepareFunction* prepare = nullptr;
  /// Null: it takes every problem of its dtypes. Asked only about these, and about aligned tensors.
  SupportsFunction* supports = nullptr;
  WorkspaceFunction* workspace_bytes = nullptr;  // null: none
  Directions directions = Directions::forward;
  DataTypeSet outputs = {};    // empty: as `dtypes`
  bool any_alignment = false;  // takes tensors that are not aligned to their elements
  bool deterministic = true;
  std::string_view needs = {};  // "a CPU with AMX"; empty: what its backend needs
  /// Libraries that it calls, as DeviceProfile::library_versions names them, with blanks between: another version of
  /// one of these is another kernel to a lock.
  std::string_view libraries = {};
  VariantsFunction* variants = nullptr;                              // null: has none
  PrepareVariantFunction* prepare_variant = nullptr;                 // makes one of them
  std::optional<Problem> (*plan_problem)(const Problem&) = nullptr;  // null: a plan for each problem
  std::string_view takes = {};                                       // see Kernel::takes

  /// What its kernel answers about problems of its directions: dtypes, then alignment, then `supports`.
  Verdict accepts(const Problem& problem, const DeviceProfile& profile) const;
};

/// The row of a kernel that computes backward too.
constexpr KernelSpec with_backward(KernelSpec row) {
  row.directions = Directions::both;
  return row;
}

/// The row of a kernel that computes opt-in inputs and attributes of its op: "alpha|beta|c".
constexpr KernelSpec taking(std::string_view names, KernelSpec row) {
  row.takes = names;
  return row;
}

/// The row of a kernel whose plans serve a class of problems each: see Kernel::plan_problem.
constexpr KernelSpec by_class(std::optional<Problem> (*plan_problem)(const Problem&), KernelSpec row) {
  row.plan_problem = plan_problem;
  return row;
}

/// The kernel that a row describes, for one of its ops. The row must outlive it (rows live in constexpr tables).
/// Without a version it is unversioned.
std::shared_ptr<const Kernel> make_kernel(const KernelSpec& spec, OpId op, DeviceType device_type,
                                          std::optional<std::string> version = {});

/// A kernel from functions, for users who plug one in at run time. `run` is called for each call of the op; an output
/// may be the memory of an input (RunArguments).
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
  std::string takes = {};    // see Kernel::takes
};
std::shared_ptr<const Kernel> make_kernel(FunctionKernel function);

}  // namespace xpuruntime
