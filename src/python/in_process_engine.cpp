#include "python/in_process_engine.h"

#include <nanobind/stl/string.h>

#include <optional>

#include "python/callables.h"
#include "python/gil.h"
#include "python/policy_values.h"
#include "python/tensor_object.h"
#include "python/types.h"
#include "xpuruntime/graph/process_engine.h"

namespace xpuruntime::python {
namespace {

ErrorCode code_of(const CallbackFailure& failure) {
  if (failure.text.starts_with("TimeoutError")) return ErrorCode::timeout;
  return failure.text.starts_with("NotImplementedError") ? ErrorCode::not_supported : failure.code;
}

/// What is raised is the error of the engine.
void call(const Callable& callable, const std::string& engine, const std::function<void(nb::handle)>& use) {
  if (const auto failure = call_back(callable, use)) fail(code_of(*failure), "Session", engine + ": " + failure->text);
}

class InProcessModel : public CompiledModel {
 public:
  InProcessModel(std::string engine, Callable model, std::string to_cache)
      : engine_(std::move(engine)), model_(std::move(model)), to_cache_(std::move(to_cache)) {}

  std::vector<Tensor> run(std::span<const Tensor> inputs, std::chrono::milliseconds timeout) override {
    std::vector<Tensor> results;
    call(model_, engine_, [&](nb::handle model) {
      nb::list arrays;
      for (const Tensor& input : inputs) arrays.append(make_tensor_object(input).attr("numpy")());
      const nb::object made = model.attr("run")(arrays, timeout.count());
      for (const nb::handle array : made) results.push_back(tensor_from(array, Access::read, "a result"));
    });
    return results;
  }

  std::string to_cache() override { return std::move(to_cache_); }

 private:
  const std::string engine_;
  const Callable model_;
  std::string to_cache_;
};

class InProcessEngine : public Engine {
 public:
  InProcessEngine(std::string name, std::string code)
      : name_(std::move(name)), code_(std::move(code)), trial_(make_process_engine(name_, code_)) {}

  std::string name() const override { return name_; }
  std::string version() const override { return text_of("version"); }
  std::string why_absent() const override { return text_of("why_absent"); }
  std::vector<DeviceType> devices() const override {
    std::vector<DeviceType> types;
    use([&](nb::handle engine) {
      const nb::object devices = engine.attr("devices")();
      for (const nb::handle device : devices) types.push_back(parse_device_type(nb::cast<std::string>(device)));
    });
    return types;
  }
  std::vector<DataType> precisions() const override {
    std::vector<DataType> found;
    use([&](nb::handle engine) {
      const nb::object precisions = engine.attr("precisions")();
      for (const nb::handle one : precisions) found.push_back(parse_engine_precision(nb::cast<std::string>(one)));
    });
    return found;
  }
  bool caches() const override {
    bool caches = false;
    use([&](nb::handle engine) { caches = nb::cast<bool>(engine.attr("caches")); });
    return caches;
  }
  EngineVerdict check(const EngineRequest& request) const override {
    if (request.model->path.empty()) {
      return EngineVerdict::no("it reads models from files, and this one is from memory; save it first");
    }
    std::string reason;
    use([&](nb::handle engine) { reason = nb::cast<std::string>(engine.attr("check")(to_python(request))); });
    return {reason};
  }

  std::unique_ptr<CompiledModel> compile(const EngineRequest& request) const override {
    EngineRequest proven = request;
    std::string made_before;
    if (request.cached == nullptr) {
      made_before = trial_->compile(request)->to_cache();
      if (!made_before.empty()) proven.cached = std::make_shared<const std::string>(made_before);
    }
    std::optional<Callable> model;
    use([&](nb::handle engine) {
      const nb::object made = engine.attr("compile")(to_python(proven));
      if (!made.is_none()) model.emplace(made);
    });
    if (!model) return nullptr;
    return std::make_unique<InProcessModel>(name_, *model, std::move(made_before));
  }

 private:
  nb::object to_python(const EngineRequest& request) const {
    const auto text = [](const std::string& path) { return nb::steal(PyUnicode_DecodeFSDefault(path.c_str())); };
    const nb::object made = nb::module_::import_("xpuruntime.engines").attr("EngineRequest");
    const nb::object threads = request.threads > 0
                                   ? nb::object(nb::int_(request.threads))
                                   : nb::module_::import_("xpuruntime.engines").attr("usable_threads")();
    return made(
        text(request.model->path), from_json_text(request.execution.to_json()), std::string(to_string(request.target)),
        threads,
        request.cached == nullptr ? nb::bytes("", 0) : nb::bytes(request.cached->data(), request.cached->size()));
  }

  std::string text_of(const char* function) const {
    std::string text;
    use([&](nb::handle engine) { text = nb::cast<std::string>(engine.attr(function)()); });
    return text;
  }

  /// The one object of the class in this process, made when it is first needed.
  void use(const std::function<void(nb::handle)>& function) const {
    std::optional<Callable> engine;
    {
      const WithGil held;
      if (!engine_) engine_ = Callable(nb::module_::import_("xpuruntime.engines").attr("made"));
      engine = engine_;
    }
    call(*engine, name_, [&](nb::handle made) { function(made(code_)); });
  }

  const std::string name_, code_;
  const std::shared_ptr<const Engine> trial_;
  mutable std::optional<Callable> engine_ = {};  // the GIL guards it
};

}  // namespace

std::shared_ptr<const Engine> make_in_process_engine(std::string name, std::string code) {
  return std::make_shared<InProcessEngine>(std::move(name), std::move(code));
}

}  // namespace xpuruntime::python
