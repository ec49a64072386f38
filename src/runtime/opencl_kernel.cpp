#include "xpuruntime/runtime/opencl_kernel.h"

#include <algorithm>
#include <bit>
#include <map>

#include "core/json_text.h"
#include "core/sha256.h"
#include "runtime/opencl_parameters.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime {
namespace {

constexpr std::string_view function_name = "OpenclKernel";
constexpr std::string_view token_prefix = "local=";

/// For a compiler a text ends there.
void check_text(std::string_view what, const std::string& text, const std::string& name) {
  if (const std::size_t at = text.find('\0'); at != std::string::npos)
    fail(ErrorCode::invalid_argument, function_name,
         "the " + std::string(what) + " of '" + name.substr(0, name.find('\0')) + "' has a NUL character at byte " +
             std::to_string(at) + ": remove it, with what a compiler would not see behind it");
}

OpenclKernelSpec checked(OpenclKernelSpec spec) {
  if (spec.name.empty()) fail(ErrorCode::invalid_argument, function_name, "the name of the __kernel function is empty");
  if (spec.source.empty() == spec.file.empty())
    fail(ErrorCode::invalid_argument, function_name, "give the source or the file of '" + spec.name + "', one of them");
  if (!spec.file.empty()) {
    const JsonSource file = {.function = function_name, .prefix = "source file '" + spec.file + "': "};
    spec.source = read_text_file(spec.file, file);
    if (spec.source.empty())
      file.refuse(ErrorCode::invalid_argument, "it is empty; name the file of '" + spec.name + "'");
  }
  check_text("name", spec.name, spec.name);
  check_text("flags", spec.flags, spec.name);
  check_text("source", spec.source, spec.name);
  for (std::size_t d = 1; spec.work_group_size[0] != 0 && d < 3; ++d)
    if (spec.work_group_size[d] == 0) spec.work_group_size[d] = 1;
  return spec;
}

WorkSize counted(const WorkSize& asked) {
  const WorkSize global = filled(asked);
  std::uint64_t items = std::uint64_t{1} << 62;
  for (const std::size_t size : global)
    if (size != 0) items /= size;
  if (items == 0) fail(ErrorCode::invalid_argument, function_name, "the global size is more than 2^62 work-items");
  return global;
}

/// A size for a dim that the launch does not have would run every item that often.
void check_dims(const WorkSize& local, const WorkSize& asked) {
  for (std::size_t d = 1; d < 3; ++d)
    if (asked[d] == 0 && local[d] > 1)
      fail(ErrorCode::invalid_argument, function_name,
           "work_group_size has more dims than the global size: give both as many");
}

std::string count_of(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

/// Of a kernel that serves an op on so many tensors.
std::string wrong_count(const std::string& name, std::size_t found, const std::string& what, std::size_t inputs,
                        std::size_t outputs) {
  return "'" + name + "' has " + count_of(found, "parameter") + ", and " + what + " needs " +
         std::to_string(inputs + outputs + 1) + ": " + count_of(inputs, "input") + ", " + count_of(outputs, "output") +
         " and the number of elements as a ulong";
}

/// As far as the source says it plainly; the rest is found when it is prepared.
void check_parameters(const std::string& name, const std::vector<std::string>& types, OpId op) {
  if (types.empty()) return;
  const OpInfo& info = op_info(op);
  std::size_t most_outputs = info.outputs;  // with those that are updated in place
  for (const InputSpec& input : info.inputs)
    if (input.in_place != any_output)
      most_outputs = std::max<std::size_t>(most_outputs, static_cast<std::size_t>(std::bit_width(input.in_place)));
  const std::string what(info.name);
  const bool few = types.size() < std::size_t{info.min_inputs} + info.outputs + 1;
  if (few || types.size() > std::size_t{info.max_inputs} + most_outputs + 1)
    fail(ErrorCode::invalid_argument, "OpenclKernel::register_for",
         wrong_count(name, types.size(), what, few ? info.min_inputs : info.max_inputs,
                     few ? info.outputs : most_outputs));
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool last = i + 1 == types.size();
    const Takes takes = takes_of(types[i]), wanted = last ? Takes::number : Takes::tensor;
    const bool eight_bytes = types[i].ends_with("long") || types[i] == "size_t";
    if (takes != Takes::unknown && (takes != wanted || (last && !eight_bytes)))
      fail(ErrorCode::invalid_argument, "OpenclKernel::register_for",
           "parameter " + std::to_string(i) + " of '" + name + "' is '" + types[i] + "', and for " + what +
               " it gets " + (last ? "the number of elements as a ulong" : "a tensor"));
  }
}

std::string token_of(const WorkSize& local) {
  return local[0] == 0 ? std::string() : std::string(token_prefix) + to_string(local);
}

Device device_of(const std::vector<FunctionArgument>& arguments, const std::string& name) {
  for (const FunctionArgument& argument : arguments)
    if (argument.value.empty() && argument.local_bytes == 0) return argument.tensor.device();
  fail(ErrorCode::invalid_argument, function_name, "no argument of '" + name + "' is a tensor: it says where to run");
}

/// The same bytes in other memory.
Tensor copy_of(const Tensor& tensor, DeviceManager& devices) {
  const std::size_t bytes = tensor.span();
  const Device device = tensor.device();
  const Tensor copy = devices.allocate(DataType::uint8, {static_cast<std::int64_t>(bytes)}, device);
  if (bytes == 0) return copy;
  std::vector<std::byte> host(bytes);
  DeviceDriver& driver = devices.driver(device);
  const Stream stream = current_stream(device);
  Status status = driver.copy_to_host(device.index, host.data(), tensor.data(), tensor.byte_offset(), bytes, stream);
  if (status.ok()) status = driver.copy_from_host(device.index, copy.data(), 0, host.data(), bytes, stream);
  if (!status.ok()) fail(status.code(), function_name, status.message());
  return copy;
}

class SourcePlan final : public Plan {
 public:
  SourcePlan(std::shared_ptr<SourceFunction> function, const WorkSize& global, std::int64_t count,
             const WorkSize& local)
      : function_(std::move(function)), global_(global), count_(count), local_(local) {}

  Status run(const RunArguments& run) const override {
    if (count_ == 0) return {};
    std::vector<FunctionArgument> arguments;
    for (const auto& tensors : {run.inputs, run.outputs})
      for (const Tensor* tensor : tensors) arguments.push_back(kernel_argument(*tensor));
    arguments.push_back(kernel_argument(static_cast<std::uint64_t>(count_)));
    return function_->run({arguments, global_, local_}, run.stream);
  }
  std::string token() const override { return token_of(local_); }
  bool outlives_its_work() const override { return false; }  // OpenCL keeps what queued work uses

 private:
  std::shared_ptr<SourceFunction> function_;
  WorkSize global_;
  std::int64_t count_;
  WorkSize local_;
};

std::shared_ptr<SourceFunction> compile(DeviceDriver& driver, Device device, const OpenclKernelSpec& spec) {
  auto* compiler = dynamic_cast<SourceCompiler*>(&driver);
  if (compiler == nullptr)
    fail(ErrorCode::not_supported, function_name,
         to_string(device) + " compiles no OpenCL C: use tensors on an OpenCL device");
  return compiler->compile(device.index, {spec.source, spec.name, spec.flags});
}

/// What was compiled of one kernel. Files that it includes may change meanwhile: it stays what it is.
class BuiltFunctions {
 public:
  std::shared_ptr<SourceFunction> get(DeviceDriver& driver, Device device, const OpenclKernelSpec& spec) {
    const std::lock_guard lock(mutex_);
    auto& known = built_[{&driver, device}];
    if (known == nullptr) known = compile(driver, device, spec);
    return known;
  }

 private:
  LongMutex mutex_;  // held while it compiles
  std::map<std::pair<DeviceDriver*, Device>, std::shared_ptr<SourceFunction>> built_;
};

class SourceKernel final : public Kernel {
 public:
  SourceKernel(OpId op, OpenclKernelSpec spec, std::string version, OpenclKernelForOp how,
               std::shared_ptr<BuiltFunctions> built)
      : op_(op), spec_(std::move(spec)), version_(std::move(version)), how_(std::move(how)), built_(std::move(built)) {}

  OpId op() const override { return op_; }
  std::string_view name() const override { return spec_.name; }
  DeviceType device_type() const override { return DeviceType::opencl; }
  std::string_view version() const override { return version_; }
  bool deterministic() const override { return how_.deterministic; }

  Verdict accepts(const Problem& problem, const DeviceProfile& profile) const override {
    const Verdict verdicts[] = {takes_dtypes(problem, how_.dtypes, how_.dtypes), is_contiguous(problem),
                                is_aligned(problem)};
    for (const Verdict& verdict : verdicts)
      if (!verdict.supported) return verdict;
    return how_.supports ? how_.supports(problem, profile) : Verdict::yes();
  }

  std::vector<std::string> variants(const Problem& problem, const PrepareContext& context) const override {
    if (!spec_.tune) return {};
    std::vector<std::string> tokens;
    const auto function = built_->get(context.driver, context.device, spec_);
    for (const WorkSize& local : WorkGroupTuner().candidates(function->limits(), global_of(problem)))
      if (local[0] != 0) tokens.push_back(token_of(local));
    return tokens;
  }

  std::unique_ptr<const Plan> make_plan(const Problem& problem, const PrepareContext& context,
                                        std::string_view token) const override {
    WorkSize local = spec_.work_group_size;
    if (!token.empty())  // of which `prepare` makes sure
      local = token.starts_with(token_prefix) ? parse_work_size(token.substr(token_prefix.size())) : WorkSize{};
    auto function = built_->get(context.driver, context.device, spec_);
    const std::size_t inputs = problem.inputs.size(), outputs = problem.outputs.size();
    if (const std::size_t found = function->limits().parameters; found != inputs + outputs + 1)
      fail(ErrorCode::not_supported, function_name,
           wrong_count(spec_.name, found, to_string(problem), inputs, outputs));
    const WorkSize global = global_of(problem);
    if (!has_countable_groups(global, local[0] == 0 ? function->limits().required : local))
      fail(ErrorCode::not_supported, function_name,
           "the global size " + to_string(global) + " of '" + spec_.name +
               "' is more than 2^31 work-groups: give it a larger work-group size");
    return std::make_unique<SourcePlan>(std::move(function), global, element_count(problem.outputs.at(0)), local);
  }

 private:
  WorkSize global_of(const Problem& problem) const {
    if (how_.global_size) return counted(how_.global_size(problem));
    return {static_cast<std::size_t>(std::max<std::int64_t>(1, element_count(problem.outputs.at(0)))), 1, 1};
  }

  OpId op_;
  OpenclKernelSpec spec_;
  std::string version_;
  OpenclKernelForOp how_;
  std::shared_ptr<BuiltFunctions> built_;
};

}  // namespace

struct OpenclKernel::State {
  OpenclKernelSpec spec = {};
  std::string version = {};
  std::vector<std::string> types = {};  // of the parameters
  Runtime* runtime = nullptr;
  std::shared_ptr<BuiltFunctions> built = std::make_shared<BuiltFunctions>();
  Mutex mutex = {};
  std::unique_ptr<Autotuner> autotuner = {};

  Runtime& in() const { return runtime != nullptr ? *runtime : Runtime::global(); }

  std::shared_ptr<SourceFunction> function(Device device) {
    return built->get(in().devices().driver(device), device, spec);
  }
  Autotuner& tuner() {
    const std::lock_guard lock(mutex);
    if (autotuner == nullptr)
      autotuner = std::make_unique<Autotuner>(WorkGroupOptions{}, [this](StoreMode mode) { return in().store(mode); });
    return *autotuner;
  }
  TunedKernel known_as(Device device) const { return {device, &in().devices().profile(device), spec.name, version}; }
};

FunctionArgument kernel_argument(const Tensor& tensor) { return {tensor}; }

FunctionArgument kernel_argument(LocalMemory local) {
  FunctionArgument argument;
  if (local.bytes == 0) fail(ErrorCode::invalid_argument, "LocalMemory", "it has 0 bytes: give it 1 or more");
  argument.local_bytes = local.bytes;
  return argument;
}

OpenclKernel::OpenclKernel(OpenclKernelSpec spec, Runtime* runtime) : state_(std::make_shared<State>()) {
  state_->spec = checked(std::move(spec));
  state_->types = types_in(state_->spec.source, state_->spec.name);
  state_->runtime = runtime;
  const OpenclKernelSpec& given = state_->spec;
  const std::string all = given.name + '\0' + given.flags + '\0' + given.source;
  state_->version = "sha256:" + Sha256().add(all).finish().substr(0, 16);
}

const OpenclKernelSpec& OpenclKernel::spec() const { return state_->spec; }
const std::string& OpenclKernel::version() const { return state_->version; }

std::vector<std::string> OpenclKernel::parameter_types() const { return state_->types; }

std::shared_ptr<SourceFunction> OpenclKernel::function(Device device) const { return state_->function(device); }
TunedKernel OpenclKernel::tuned_as(Device device) const { return state_->known_as(device); }

FunctionLimits OpenclKernel::build(Device device) const { return state_->function(device)->limits(); }

void OpenclKernel::run(const std::vector<FunctionArgument>& arguments, const WorkSize& asked) const {
  const WorkSize global = counted(asked);
  const Device device = device_of(arguments, state_->spec.name);
  check_kinds(arguments, state_->types, state_->spec.name);
  check_dims(state_->spec.work_group_size, asked);
  const auto function = state_->function(device);
  check_dims(function->limits().required, asked);
  WorkSize local = state_->spec.work_group_size;
  if (state_->spec.tune) {
    const auto known = state_->tuner().known(state_->known_as(device), global);
    local = known ? *known : tune(arguments, global).local;
  }
  const Status status = function->run({arguments, global, local}, current_stream(device));
  if (!status.ok()) fail(status.code(), function_name, status.message());
}

WorkGroupResult OpenclKernel::tune(const std::vector<FunctionArgument>& arguments, const WorkSize& asked) const {
  const Device device = device_of(arguments, state_->spec.name);
  const auto function = state_->function(device);
  check_dims(function->limits().required, asked);
  const std::vector<FunctionArgument> copies = copies_of(arguments);
  return state_->tuner().tune(state_->known_as(device), *function, {copies, counted(asked)});
}

std::vector<FunctionArgument> OpenclKernel::copies_of(const std::vector<FunctionArgument>& arguments) const {
  check_kinds(arguments, state_->types, state_->spec.name);
  std::vector<FunctionArgument> copies = arguments;
  for (FunctionArgument& argument : copies)
    if (argument.value.empty() && argument.local_bytes == 0)
      argument.tensor = copy_of(argument.tensor, state_->in().devices());
  return copies;
}

void OpenclKernel::register_for(OpId op, OpenclKernelForOp how) const {
  check_parameters(state_->spec.name, state_->types, op);
  state_->in().registry().register_kernel(
      std::make_shared<SourceKernel>(op, state_->spec, state_->version, std::move(how), state_->built));
}

}  // namespace xpuruntime
