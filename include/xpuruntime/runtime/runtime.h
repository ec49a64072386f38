#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/graph/engine.h"
#include "xpuruntime/precision/amp_registry.h"
#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/tune/range_result.h"
#include "xpuruntime/tune/store.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime {

/// What a runtime opens when it is made.
struct RuntimeOptions {
  bool cuda = true;
  bool opencl = true;
  std::vector<std::string> plugins = {};  // paths of shared libraries; one that cannot be opened is an error
};

class MeasuredChoices;

/// Owns one of each: devices, kernels, dispatcher, precision rules, measured choices. Most programs use
/// `Runtime::global()`.
class Runtime {
 public:
  explicit Runtime(const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The default instance, made on first use, with the plugins that XPURUNTIME_PLUGINS names (paths, ':' between them),
  /// the policy that XPURUNTIME_POLICY and the lock that XPURUNTIME_LOCK names (paths), and what else
  /// docs/environment.md lists. Its measured choices are those of the store at default_store_path(), which is opened
  /// when a policy first asks for measured choices, and only if it is there. It lives until the process ends. Texts and
  /// files that speak of a plugin's ops, kernels or devices can be read once it is made. `plugins` are loaded besides.
  static Runtime& global(std::span<const std::string> plugins = {});

  DeviceManager& devices() { return *devices_; }
  KernelRegistry& registry() { return *registry_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  /// The precision rules that autocast scopes of this runtime usually take.
  AmpRegistry& amp() { return *amp_; }
  /// What can run whole models besides `native`, for SessionOptions::engines: onnxruntime and openvino, and what is
  /// added.
  EngineRegistry& engines() { return *engines_; }

  // Measured choices. They are frozen when a strategy first asks for them: what this or another process puts into the
  // store afterwards counts once refresh_measurements was called and a policy is set or a scope entered.

  /// Takes measured choices from this store from now on; null: from the dispatcher's statistics.
  void use_store(std::shared_ptr<MeasurementStore> store);
  /// The store in use; null where there is none.
  std::shared_ptr<MeasurementStore> store() const;
  /// The same, or where none was put in use that at default_store_path(), opened now (only the global runtime has it);
  /// to read, null where that file is missing.
  std::shared_ptr<MeasurementStore> store(StoreMode mode) const;
  /// The same to read, for what only looks whether something was measured: null also where it cannot be read.
  std::shared_ptr<MeasurementStore> readable_store() const noexcept;
  void refresh_measurements();

  /// Measures problems that the strategy best_performance meets for the first time, before they run, and puts what it
  /// finds into the store if that can be written. One problem is measured at a time; a total budget is for all of them
  /// until tuning is disabled.
  void enable_tuning(const TuneOptions& options = {});
  void disable_tuning();

  /// Measures problems now, each against what the policy in force would choose without measuring, and stores what was
  /// found before `finished` hears of it. What it stored counts once a policy is set or a scope entered. Returns false
  /// where it was cancelled or the total budget ran out before every problem had its turn.
  bool tune(std::span<const Problem> problems, const TuneOptions& options = {},
            const std::function<void(const TuneResult&)>& finished = {});

  /// Measures a range at points that it chooses, cut finer where the choice changes, and says which kernel runs which
  /// part of it. `finished` hears of each measured problem, which is stored as above; the parts are not stored:
  /// range_rules and with_range_rules (select/range_rule.h) make a policy of them.
  RangeResult tune(const ProblemRange& range, const TuneOptions& options = {},
                   const std::function<void(const TuneResult&)>& finished = {});

  /// Problems and ranges under one total budget. Each has a share of it by how much it needs, more or less; what some
  /// leave over goes to those that it cut short: problems are measured again, ranges go on from what they measured.
  TunedTogether tune(std::span<const Problem> problems, std::span<const ProblemRange> ranges,
                     const TuneOptions& options = {}, const std::function<void(const TuneResult&)>& finished = {});

 private:
  std::unique_ptr<DeviceManager> devices_;
  std::unique_ptr<KernelRegistry> registry_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<AmpRegistry> amp_;
  std::unique_ptr<EngineRegistry> engines_;
  std::unique_ptr<MeasuredChoices> measured_;
};

/// "0.1.0"
std::string_view version();

}  // namespace xpuruntime
