#include "graph/openvino/engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "graph/native/run_aside.h"
#include "graph/openvino/find_library.h"
#include "graph/openvino/worker.h"
#include "graph/process/packed_tensors.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::openvino {
namespace {

using native::Deadline;

/// By number of ov_element_type_e.
constexpr std::array<std::pair<int, DataType>, 10> element_types = {{{1, DataType::boolean},
                                                                     {2, DataType::bfloat16},
                                                                     {3, DataType::float16},
                                                                     {4, DataType::float32},
                                                                     {5, DataType::float64},
                                                                     {7, DataType::int8},
                                                                     {8, DataType::int16},
                                                                     {9, DataType::int32},
                                                                     {10, DataType::int64},
                                                                     {16, DataType::uint8}}};

int number_of(DataType dtype) {
  for (const auto& [number, ours] : element_types) {
    if (ours == dtype) return number;
  }
  fail(ErrorCode::not_supported, "Session",
       "engine openvino takes no " + std::string(to_string(dtype)) + "; cast the model's inputs");
}

DataType dtype_of(int number) {
  for (const auto& [theirs, dtype] : element_types) {
    if (theirs == number) return dtype;
  }
  fail(ErrorCode::not_supported, "Session",
       "a result of engine openvino is of its element type " + std::to_string(number) + ", which is none of ours");
}

/// Runs what throws Failures; as errors they name the engine.
template <class Use>
auto as_errors(const Use& use) {
  try {
    return use();
  } catch (const Failure& failure) {
    fail_as(failure.kind, failure.what());
  }
}

bool is_double(const Tensor& tensor) { return tensor.dtype() == DataType::float64 && element_count(tensor.spec()) > 1; }

/// Whether a model computes in f64, as far as its inputs, outputs and constants tell.
bool has_doubles(const ModelGraph& graph) {
  const auto of_doubles = [](const ModelValue& value) { return value.dtype == DataType::float64; };
  if (std::any_of(graph.inputs.begin(), graph.inputs.end(), of_doubles) ||
      std::any_of(graph.outputs.begin(), graph.outputs.end(), of_doubles) ||
      std::any_of(graph.constants.begin(), graph.constants.end(),
                  [](const auto& one) { return is_double(one.second); })) {
    return true;
  }
  for (const ModelNode& node : graph.nodes) {
    for (const auto& [name, value] : node.attributes) {
      const auto* const tensor = std::get_if<Tensor>(&value);
      const auto* const body = std::get_if<std::shared_ptr<const ModelGraph>>(&value);
      if ((tensor != nullptr && is_double(*tensor)) || (body != nullptr && has_doubles(**body))) return true;
    }
  }
  return false;
}

/// It computes integers of 64 bits in 32.
void check_range(const Tensor& tensor) {
  if (tensor.dtype() != DataType::int64) return;
  const auto* const values = tensor.as<const std::int64_t>();
  const auto is_wide = [](std::int64_t value) { return value != static_cast<std::int32_t>(value); };
  if (!std::any_of(values, values + element_count(tensor.spec()), is_wide)) return;
  throw EngineLacks(
      "engine openvino computes i64 in 32 bits, and an input has numbers that need more; run the model by another "
      "engine");
}

/// The same memory, or a copy with one element after the other.
Tensor in_line(const Tensor& tensor) {
  if (tensor.contiguous()) return tensor;
  Tensor copy = Tensor::empty(tensor.dtype(), tensor.shape());
  process::pack({&tensor, 1}, copy.as<std::byte>());
  return copy;
}

/// What runs of one model share, also those that nobody waits for any more.
class Shared {
 public:
  /// `bytes`: what it was imported from, if it was.
  Shared(std::shared_ptr<const Library> library, std::shared_ptr<const std::string> bytes, Owned<Compiled> compiled,
         const std::vector<ModelValue>& inputs)
      : library_(std::move(library)), bytes_(std::move(bytes)), compiled_(std::move(compiled)) {
    library_->check(library_->functions().count_outputs(compiled_.get(), &outputs_));
    for (const ModelValue& input : inputs) {
      inputs_.push_back(library_->has_input(*compiled_.get(), input.name) ? input.name : "");
    }
    idle_.push_back(new_request());
  }

  const Library& library() const { return *library_; }
  /// The names of the model's inputs; empty: nothing reads it.
  const std::vector<std::string>& inputs() const { return inputs_; }
  std::size_t outputs() const { return outputs_; }

  /// One that no run uses; null where one has to be made first.
  Owned<Request> idle_request() {
    const std::lock_guard lock(mutex_);
    ++under_way_;
    if (idle_.empty()) return {};
    Owned<Request> request = std::move(idle_.back());
    idle_.pop_back();
    return request;
  }
  /// A forked child has none of the library's threads: its runs would not end.
  void check_process() const {
    if (generation_ == process_generation()) return;
    fail(
        ErrorCode::not_supported, "Session",
        "engine openvino has no threads in a process that was forked after the model was loaded; load it in the child");
  }
  /// Waits for runs that go on.
  Owned<Request> new_request() const {
    check_process();
    Owned<Request> request(library_->functions().free_request);
    library_->check(library_->functions().make_request(compiled_.get(), request.place()));
    return request;
  }
  void give_back(Owned<Request> request) {
    const std::lock_guard lock(mutex_);
    --under_way_;
    idle_.push_back(std::move(request));
  }
  void end() {
    const std::lock_guard lock(mutex_);
    --under_way_;
  }
  bool others_run() const {
    const std::lock_guard lock(mutex_);
    return under_way_ > 1;
  }

 private:
  const std::shared_ptr<const Library> library_;
  const std::shared_ptr<const std::string> bytes_;  // its constants stay where they are
  const Owned<Compiled> compiled_;
  const std::int32_t generation_ = process_generation();
  std::size_t outputs_ = 0;
  std::vector<std::string> inputs_ = {};
  mutable Mutex mutex_ = {};
  std::vector<Owned<Request>> idle_ = {};
  int under_way_ = 0;
};

/// One run.
class Run {
 public:
  Run(std::shared_ptr<Shared> shared, std::span<const Tensor> inputs) : shared_(std::move(shared)) {
    shared_->check_process();
    for (const Tensor& input : inputs) {
      inputs_.push_back(in_line(input));
      check_range(inputs_.back());
    }
    request_ = shared_->idle_request();
  }
  ~Run() {
    if (is_over_) {
      shared_->give_back(std::move(request_));
    } else {
      shared_->end();
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Whether it may wait for others before it begins.
  bool may_wait() const { return request_.get() == nullptr && shared_->others_run(); }

  /// Nothing where it is still under way at the end.
  std::optional<std::vector<Tensor>> results(Deadline::Clock::time_point end) {
    if (request_.get() == nullptr) request_ = shared_->new_request();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!shared_->inputs().at(i).empty()) set_input(i);
    }
    library().check(functions().start(request_.get()));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Deadline::Clock::now()).count();
    const Status status = functions().wait_for(request_.get(), std::max<std::int64_t>(0, left));
    if (status == not_ready) return {};
    library().check(status);
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < shared_->outputs(); ++i) results.push_back(output(i));
    is_over_ = true;
    return results;
  }

  /// Of one that is under way.
  void cancel_and_wait() {
    functions().cancel(request_.get());
    functions().wait(request_.get());
  }

 private:
  const Library& library() const { return shared_->library(); }
  const Functions& functions() const { return library().functions(); }

  void set_input(std::size_t i) {
    const Tensor& input = inputs_[i];
    std::vector<std::int64_t> extents(input.shape().begin(), input.shape().end());
    extents.reserve(1);  // without dims a null pointer would be refused
    alignas(64) static std::byte nothing = {};
    void* const memory = input.span() == 0 ? &nothing : const_cast<void*>(input.as<const void>());
    Owned<TensorHandle> tensor(functions().free_tensor);
    library().check(functions().make_tensor(
        number_of(input.dtype()), {static_cast<std::int64_t>(extents.size()), extents.data()}, memory, tensor.place()));
    library().check(functions().set_input(request_.get(), shared_->inputs()[i].c_str(), tensor.get()));
  }

  Tensor output(std::size_t i) const {
    Owned<TensorHandle> tensor(functions().free_tensor);
    library().check(functions().get_output(request_.get(), i, tensor.place()));
    int type = 0;
    library().check(functions().type(tensor.get(), &type));
    Shape shape;
    const Status status = functions().shape(tensor.get(), &shape);
    if (status != invalid_parameter) library().check(status);  // which it says of a shape without dims
    const std::vector<std::int64_t> extents(shape.dims, shape.dims + shape.rank);
    functions().free_shape(&shape);
    Tensor result = Tensor::empty(dtype_of(type), Dims(std::span(extents)));
    void* data = nullptr;
    if (result.span() == 0) return result;
    library().check(functions().data(tensor.get(), &data));
    std::memcpy(result.data(), data, result.span());
    return result;
  }

  const std::shared_ptr<Shared> shared_;
  std::vector<Tensor> inputs_ = {};
  Owned<Request> request_ = {};
  bool is_over_ = false;
};

class OpenVinoModel : public CompiledModel {
 public:
  /// `to_cache`: null where it came from there.
  OpenVinoModel(std::shared_ptr<Shared> shared, std::shared_ptr<const std::string> to_cache)
      : to_cache_(std::move(to_cache)), shared_(std::move(shared)) {}

  std::vector<Tensor> run(std::span<const Tensor> inputs, std::chrono::milliseconds timeout) override {
    const Deadline deadline(timeout.count(), "execution_timeout_ms");
    const auto run = std::make_shared<Run>(shared_, inputs);
    const auto work = [run, deadline] {
      if (auto results = as_errors([&] { return run->results(deadline.end()); })) return std::move(*results);
      run->cancel_and_wait();
      return std::vector<Tensor>();
    };
    if (run->may_wait()) {
      auto results = native::run_aside(work, deadline);
      if (!results.empty() || shared_->outputs() == 0) return results;
      deadline.refuse();
    }
    if (auto results = as_errors([&] { return run->results(deadline.end()); })) return std::move(*results);
    native::run_aside(
        [run] {
          run->cancel_and_wait();
          return std::vector<Tensor>();
        },
        deadline);
    deadline.refuse();
  }

  std::string to_cache() override { return to_cache_ == nullptr ? "" : *to_cache_; }

 private:
  const std::shared_ptr<const std::string> to_cache_;
  const std::shared_ptr<Shared> shared_;
};

constexpr std::pair<const char*, DeviceType> device_types[] = {
    {"CPU", DeviceType::cpu}, {"GPU", DeviceType::opencl}, {"NPU", DeviceType::npu}};

class OpenVinoEngine : public Engine {
 public:
  OpenVinoEngine(std::string file, std::function<int()> threads)
      : file_(std::move(file)), threads_(std::move(threads)) {}

  std::string name() const override { return "openvino"; }
  std::string version() const override { return here().library->version(); }
  std::string why_absent() const override { return here().absent; }
  bool caches() const override { return true; }
  std::vector<DataType> precisions() const override {
    return {DataType::float32, DataType::float16, DataType::bfloat16};
  }
  bool runs_on(DeviceType type) const override { return type == DeviceType::cpu || Engine::runs_on(type); }
  std::vector<DeviceType> devices() const override {
    std::call_once(asked_, [&] {
      const std::vector<std::string> names = here().worker->devices();
      for (const auto& [name, type] : device_types) {
        const bool is_here = std::any_of(names.begin(), names.end(), [name = std::string_view(name)](const auto& one) {
          return one == name || one.starts_with(std::string(name) + ".");
        });
        if (is_here) devices_.push_back(type);
      }
    });
    return devices_;
  }

  EngineVerdict check(const EngineRequest& request) const override {
    if (request.model->path.empty()) {
      return EngineVerdict::no("it reads models from files, and this one is from memory; save it first");
    }
    const std::vector<DataType> known = precisions();
    if (has_doubles(request.model->graph)) return EngineVerdict::no("it computes f64 in f32");
    if (std::find(known.begin(), known.end(), request.execution.precision) != known.end()) return EngineVerdict::yes();
    return EngineVerdict::no("precision " + std::string(engine_precision_name(request.execution.precision)) +
                             " is not done: give it a model that is quantized");
  }

  std::unique_ptr<CompiledModel> compile(const EngineRequest& request) const override {
    const Settings settings = settings_for(request);
    const bool is_kept = request.cached != nullptr;
    const std::chrono::milliseconds limit(request.execution.compile_timeout_ms);
    const Deadline deadline(limit.count(), "compile_timeout_ms");
    auto bytes =
        is_kept ? request.cached
                : std::make_shared<const std::string>(here().worker->compile(request.model->path, settings, limit));
    const auto taken = std::make_shared<std::shared_ptr<Shared>>();
    native::run_aside(
        [=, library = here().library, model = request.model] {
          as_errors([&] {
            Owned<Compiled> compiled =
                bytes->empty() ? library->compile(model->path, settings) : library->import(*bytes, settings);
            *taken = std::make_shared<Shared>(library, bytes, std::move(compiled), model->graph.inputs);
          });
          return std::vector<Tensor>();
        },
        deadline);
    return std::make_unique<OpenVinoModel>(*taken, is_kept ? nullptr : bytes);
  }

 private:
  struct Here {
    std::string absent = {};
    std::shared_ptr<const Library> library = {};
    std::optional<Worker> worker = {};
  };

  const Here& here() const {
    const std::lock_guard lock(mutex_);
    if (!here_) here_ = std::make_unique<const Here>(look());
    return *here_;
  }

  Here look() const {
    Here found;
    const std::string file = file_.empty() ? find_library() : file_;
    try {
      found.library = std::make_shared<const Library>(file);
      found.worker.emplace(file);
    } catch (const Failure& failure) {
      const bool is_file = file.find('/') != file.npos;
      found.absent =
          is_file ? failure.what() : "the Python package openvino is not installed; pip install 'xpuruntime[openvino]'";
    }
    return found;
  }

  Settings settings_for(const EngineRequest& request) const {
    Settings settings{.precision = std::string(to_string(request.execution.precision)),
                      .threads = request.threads > 0 ? request.threads : threads_()};
    for (const auto& [name, type] : device_types) {
      if (type == request.target) settings.device = name;
    }
    if (request.execution.static_shape) settings.shapes = request.execution.fixed_shapes;
    return settings;
  }

  const std::string file_;
  const std::function<int()> threads_;
  mutable LongMutex mutex_ = {};
  mutable std::unique_ptr<const Here> here_ = {};
  mutable std::once_flag asked_ = {};
  mutable std::vector<DeviceType> devices_ = {};
};

}  // namespace

std::shared_ptr<const Engine> make_engine(std::function<int()> threads) { return make_engine("", std::move(threads)); }

std::shared_ptr<const Engine> make_engine(std::string library, std::function<int()> threads) {
  return std::make_shared<OpenVinoEngine>(std::move(library), std::move(threads));
}

}  // namespace xpuruntime::openvino
