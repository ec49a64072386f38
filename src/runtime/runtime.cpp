#include "xpuruntime/runtime/runtime.h"

#include <sstream>

#include "core/environment_variable.h"
#include "graph/openvino/engine.h"
#include "runtime/measured_choices.h"
#include "runtime/runtime_parts.h"
#include "runtime/tune_range.h"
#include "runtime/tune_together.h"
#include "xpuruntime/graph/process_engine.h"

namespace xpuruntime {
namespace {

void load_plugins_of_environment(KernelRegistry& registry) {
  constexpr const char* variable = "XPURUNTIME_PLUGINS";
  const char* value = environment_variable(variable);
  std::istringstream list(value == nullptr ? "" : value);
  for (std::string path; std::getline(list, path, ':');) {
    try {
      if (!path.empty()) registry.load_plugin(path);
    } catch (const Error& error) {
      fail(error.code(), variable, error.message());
    }
  }
}

/// Where there is no home and no cache folder there is no store either, which is reported only when one is asked for.
std::string store_of_the_user() {
  try {
    return default_store_path();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options)
    : devices_(std::make_unique<DeviceManager>()),
      registry_(std::make_unique<KernelRegistry>(*devices_)),
      dispatcher_(std::make_unique<Dispatcher>(*registry_)),
      amp_(std::make_unique<AmpRegistry>()),
      engines_(std::make_unique<EngineRegistry>()),
      measured_(std::make_unique<MeasuredChoices>(*dispatcher_)) {
  dispatcher_->set_revalidator([this](const Problem& problem, const std::string& kernel, const std::string& plan) {
    return flaw_of_kernel(*registry_, problem, kernel, plan);
  });
  add_builtin_backends(*registry_, options);
  engines_->add(make_process_engine("onnxruntime", "xpuruntime.engines.onnxruntime:OnnxRuntime"));
  engines_->add(openvino::make_engine(threads_of_the_cpu));
  for (const std::string& path : options.plugins) registry_->load_plugin(path);
}

Runtime::~Runtime() = default;

Runtime& Runtime::global(std::span<const std::string> plugins) {
  bool loaded = plugins.empty();
  // Never destroyed: vendors' runtimes may be gone before the last static destructor runs.
  static Runtime* instance = [&] {
    auto made = std::make_unique<Runtime>(RuntimeOptions{});
    load_plugins_of_environment(made->registry());
    for (const std::string& path : plugins) made->registry().load_plugin(path);
    loaded = true;
    const bool tunes = tuning_is_asked_for();
    made->measured_->set_default_path(tunes ? default_store_path() : store_of_the_user(),
                                      tunes ? StoreMode::read_write : StoreMode::read_only);
    apply_environment(*made);
    return made.release();
  }();
  if (!loaded) [[unlikely]] {
    for (const std::string& path : plugins) instance->registry().load_plugin(path);
  }
  return *instance;
}

void Runtime::use_store(std::shared_ptr<MeasurementStore> store) { measured_->use(std::move(store)); }

std::shared_ptr<MeasurementStore> Runtime::store() const { return measured_->store(); }

std::shared_ptr<MeasurementStore> Runtime::store(StoreMode mode) const { return measured_->store(mode); }

std::shared_ptr<MeasurementStore> Runtime::readable_store() const noexcept {
  try {
    return store(StoreMode::read_only);
  } catch (...) {
    return nullptr;
  }
}

void Runtime::refresh_measurements() { measured_->refresh(); }

void Runtime::enable_tuning(const TuneOptions& options) { measured_->enable_tuning(options); }

void Runtime::disable_tuning() { measured_->disable_tuning(); }

bool Runtime::tune(std::span<const Problem> problems, const TuneOptions& options,
                   const std::function<void(const TuneResult&)>& finished) {
  return tune_problems(*dispatcher_, *measured_, problems, options, finished);
}

RangeResult Runtime::tune(const ProblemRange& range, const TuneOptions& options,
                          const std::function<void(const TuneResult&)>& finished) {
  return RangeTuning(*dispatcher_, *measured_, range, options, finished).run(options.total_budget_s);
}

TunedTogether Runtime::tune(std::span<const Problem> problems, std::span<const ProblemRange> ranges,
                            const TuneOptions& options, const std::function<void(const TuneResult&)>& finished) {
  return tune_together(*dispatcher_, *measured_, problems, ranges, options, finished);
}

std::string_view version() { return XRT_VERSION; }

}  // namespace xpuruntime
