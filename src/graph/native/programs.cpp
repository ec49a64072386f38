#include "graph/native/programs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "graph/native/lowering.h"
#include "graph/native/report.h"
#include "graph/native/run_aside.h"
#include "graph/onnx/mapped_file.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {
namespace {

constexpr std::size_t most_programs = 32;
constexpr int much_less = 8;

/// What a shape may be made of.
bool is_list(const TensorSpec& spec) {
  constexpr std::int64_t most = 64;
  return spec.shape.size() <= 1 && element_count(spec) <= most;
}
bool is_list_of_integers(const TensorSpec& spec) { return !is_floating(spec.dtype) && is_list(spec); }

bool same_contents(const Tensor& known, const Tensor& given, const DeviceManager& devices) {
  const Tensor here = devices.copy_to(given, Device{});
  return known.spec().dtype == here.dtype() && known.shape() == here.shape() &&
         (element_count(known.spec()) == 0 ||
          std::memcmp(known.as<const void>(), here.as<const void>(), span_bytes(known.spec())) == 0);
}

using KnownInputs = std::vector<std::optional<Tensor>>;

/// Copies on the host of the inputs that `is_known` names; nothing for the others.
template <class IsKnown>
KnownInputs values_of(std::span<const Tensor> inputs, const DeviceManager& devices, IsKnown is_known) {
  KnownInputs values(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_known(inputs[i].spec())) values[i] = devices.copy_to(inputs[i], Device{});
  }
  return values;
}

/// What a program may be made of, the least first: shapes, lists of integers, and for one node alone lists of any kind,
/// or where it is little all that is given.
std::vector<KnownInputs> ways_to_know(std::span<const Tensor> inputs, const DeviceManager& devices, bool one_node) {
  constexpr std::uint64_t most_bytes = std::uint64_t{8} << 20;
  std::vector<KnownInputs> ways = {{}};
  const auto add = [&](const auto& is_known) {
    const bool any = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& one) { return is_known(one.spec()); });
    if (any) ways.push_back(values_of(inputs, devices, is_known));
  };
  add(is_list_of_integers);
  if (!one_node) return ways;
  add(is_list);
  std::uint64_t bytes = 0;
  for (const Tensor& input : inputs) bytes += span_bytes(input.spec());
  if (bytes <= most_bytes) add([](const TensorSpec&) { return true; });
  return ways;
}

/// Whether calls that the device has no kernel for go there.
bool may_use_cpu(const ExecutionPolicy& execution, Device device) {
  return device.type != DeviceType::cpu && execution.allow_fallback == DeviceType::cpu;
}

std::vector<Tensor> constants_on(const Program& program, const DeviceManager& devices, Device device) {
  std::vector<Tensor> constants(program.slots.size());
  std::vector<bool> is_read(program.slots.size(), false);
  for (const Step& step : program.steps) {
    for (const int slot : step.inputs) is_read[static_cast<std::size_t>(slot)] = true;
  }
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const Slot& slot = program.slots[i];
    if (!is_read[i] || slot.kind != Slot::Kind::constant) continue;
    const bool is_here = device.type == DeviceType::cpu || slot.on_cpu;
    constants[i] = (is_here ? slot.constant : devices.copy_to(slot.constant, device)).as_read_only();
    constants[i].set_version(is_here && slot.constant.version() != 0 ? slot.constant.version() : Tensor::new_version());
  }
  return constants;
}

/// What is packed is seldom read in the file again.
void forget(const Tensor& constant) {
  onnx::forget_pages({constant.as<const std::byte>(), constant.span()}, constant.owner());
}

/// Only on the CPU: elsewhere constants are in no kernel's reach before a run.
HeldBySteps held_by_steps(const Program& program, Device device) {
  HeldBySteps held(program.steps.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (device.type != DeviceType::cpu && program.steps[i].lacks.empty()) continue;
    std::vector<bool> is_constant;
    for (const int slot : program.steps[i].inputs) {
      is_constant.push_back(program.slots[static_cast<std::size_t>(slot)].kind == Slot::Kind::constant);
    }
    const bool any = std::find(is_constant.begin(), is_constant.end(), true) != is_constant.end();
    if (any) held[i] = std::make_unique<HeldConstants>(std::move(is_constant), forget);
  }
  return held;
}

/// In memory that it keeps: what the caller lends may be gone while a run that nobody waits for still reads it.
Tensor owned(const Tensor& tensor, const DeviceManager& devices) {
  if (tensor.owner() != nullptr) return tensor;
  Tensor copy = devices.allocate(tensor.spec(), tensor.device());
  devices.copy_into(tensor, copy);
  return copy;
}

/// Inputs on the program's device: others are copied there.
std::vector<Tensor> moved(std::span<const Tensor> inputs, const DeviceManager& devices, Device device) {
  std::vector<Tensor> tensors(inputs.begin(), inputs.end());
  for (Tensor& tensor : tensors) {
    if (tensor.device() != device) tensor = devices.copy_to(tensor, device);
  }
  return tensors;
}

}  // namespace

void NodesOnCpu::add(const Model& model, const Program& program) {
  if (!program.is_mixed) return;
  const std::lock_guard lock(mutex_);
  for (const Step& step : program.steps) {
    if (step.lacks.empty()) continue;
    nodes_.try_emplace(node_name(model, step.node), node_operator(model, step.node), step.lacks);
  }
}

std::vector<MissingOp> NodesOnCpu::list() const {
  std::map<std::string, MissingOp> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [node, why] : nodes_) {
    MissingOp& op = found[why.first];
    if (op.nodes++ == 0) op.op = why.first, op.reason = why.second;
  }
  std::vector<MissingOp> list;
  for (auto& [name, op] : found) list.push_back(std::move(op));
  return list;
}

ReadyProgram::ReadyProgram(Program program, std::vector<std::string> nodes, std::vector<std::optional<Tensor>> values,
                           std::shared_ptr<OutputPool> pool, Dispatcher& dispatcher, const DeviceManager& devices,
                           Device device)
    : program_(std::move(program)),
      nodes_(std::move(nodes)),
      values_(std::move(values)),
      pool_(std::move(pool)),
      dispatcher_(dispatcher),
      devices_(devices),
      device_(device),
      constants_(constants_on(program_, devices, device)),
      held_(held_by_steps(program_, device)) {}

bool ReadyProgram::fits(std::span<const TensorSpec> specs, std::span<const Tensor> inputs) const {
  if (!std::equal(specs.begin(), specs.end(), program_.inputs.begin(), program_.inputs.end())) return false;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (!values_[i]) continue;
    if (i >= inputs.size() || !same_contents(*values_[i], inputs[i], devices_)) return false;
  }
  return true;
}

std::unique_ptr<Frame> ReadyProgram::take_frame() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto frame = std::move(idle_.back());
      idle_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(program_, nodes_, constants_, held_, *pool_, devices_, device_);
}

void ReadyProgram::wait_for_device() const {
  if (device_.type == DeviceType::cpu) return;
  const Status status = devices_.driver(device_).synchronize(device_.index, current_stream(device_));
  if (!status.ok()) fail(status.code(), "Session", status.message());
}

bool ReadyProgram::is_captured() const {
  return device_.type != DeviceType::cpu && devices_.driver(device_).capturing(device_.index, current_stream(device_));
}

void ReadyProgram::give_back(std::unique_ptr<Frame> frame) {
  wait_for_device();  // the next run may be on another stream
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(frame));
}

/// Those of the outputs that a run can write into.
std::vector<std::optional<Tensor>> ReadyProgram::direct(GivenOutputs outputs) const {
  std::vector<TensorSpec> specs;
  for (const int slot : program_.outputs) specs.push_back(program_.slots[static_cast<std::size_t>(slot)].spec);
  if (!outputs.empty()) check_given(outputs, specs);
  std::vector<std::optional<Tensor>> found(outputs.begin(), outputs.end());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] && (found[i]->device() != device_ || found[i]->spec().alignment < specs[i].alignment))
      found[i].reset();
  }
  return found;
}

std::vector<Tensor> ReadyProgram::run_here(std::span<const Tensor> inputs, const Deadline& deadline,
                                           GivenOutputs outputs) {
  auto frame = take_frame();
  try {
    std::vector<Tensor> results = frame->run(dispatcher_, inputs, deadline, outputs);
    give_back(std::move(frame));
    return results;
  } catch (const Error& error) {
    // The CPU has a kernel for every problem; elsewhere only the choice finds out that there is none.
    if (device_.type == DeviceType::cpu || error.code() != ErrorCode::not_supported) throw;
    throw EngineLacks(error.message());
  }
}

std::vector<Tensor> ReadyProgram::run(std::span<const Tensor> inputs, const Deadline& deadline, GivenOutputs outputs) {
  const std::vector<std::optional<Tensor>> into = direct(outputs);
  if (is_quick_.load(std::memory_order_relaxed) || is_captured()) {
    return run_here(moved(inputs, devices_, device_), deadline, into);
  }
  const auto start = Deadline::Clock::now();
  std::vector<Tensor> given(inputs.begin(), inputs.end());
  for (Tensor& tensor : given) tensor = owned(tensor, devices_);
  // The other thread has a stream of its own. A device that is still busy with a run that was left behind takes long
  // even for a copy: those are made there.
  const auto is_on_device = [this](const Tensor& tensor) { return tensor.device() == device_; };
  if (std::any_of(given.begin(), given.end(), is_on_device)) wait_for_device();
  std::vector<Tensor> results = run_aside(
      [program = shared_from_this(), given = std::move(given), deadline, scope = dispatcher_.current_scope()] {
        const ScopedPolicy entered(program->dispatcher_, scope);
        return program->run_here(moved(given, program->devices_, program->device_), deadline, {});
      },
      deadline);
  const auto took = Deadline::Clock::now() - start;
  if (took < (deadline.end() - start) / much_less) is_quick_ = true;
  return results;
}

std::vector<Tensor> ReadyProgram::time(std::span<const Tensor> inputs, const Deadline& deadline,
                                       std::vector<double>& seconds) {
  const std::vector<Tensor> given = moved(inputs, devices_, device_);
  auto frame = take_frame();
  std::vector<Tensor> results = frame->time(dispatcher_, given, deadline, seconds);
  give_back(std::move(frame));
  return results;
}

std::vector<Decision> ReadyProgram::decide(const Deadline& deadline) {
  std::vector<Tensor> given;
  for (const TensorSpec& spec : program_.inputs) given.push_back(devices_.allocate(spec, device_));
  auto frame = take_frame();
  std::vector<Decision> decisions = frame->decide(dispatcher_, given, deadline);
  give_back(std::move(frame));
  return decisions;
}

void ReadyProgram::prepare(const Deadline& deadline) {
  try {
    decide(deadline);
  } catch (const Error& error) {  // what else goes wrong, the run meets again
    if (error.code() == ErrorCode::timeout) throw;
  }
}

Programs::Programs(const Model& model, Dispatcher& dispatcher, const DeviceManager& devices, Device device,
                   const ExecutionPolicy& execution, NodesOnCpu& on_cpu)
    : model_(model),
      dispatcher_(dispatcher),
      devices_(devices),
      device_(device),
      execution_(execution),
      on_cpu_(on_cpu),
      casts_(model, dispatcher) {}

std::shared_ptr<ReadyProgram> Programs::for_inputs(std::span<const Tensor> inputs) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : inputs) {  // those on another device are copied, and then lie in line
    specs.push_back(tensor.device() == device_ ? tensor.spec() : make_spec(tensor.dtype(), tensor.shape()));
  }
  return find_or_make(specs, inputs);
}

std::shared_ptr<ReadyProgram> Programs::find(std::span<const TensorSpec> specs, std::span<const Tensor> inputs) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const auto& program) { return program->fits(specs, inputs); });
  if (found == programs_.end()) return nullptr;
  std::rotate(programs_.begin(), found, found + 1);
  return programs_.front();
}

std::shared_ptr<ReadyProgram> Programs::find_or_make(std::span<const TensorSpec> specs,
                                                     std::span<const Tensor> inputs) {
  if (auto found = find(specs, inputs)) return found;
  const std::lock_guard making(making_);
  if (auto found = find(specs, inputs)) return found;
  const auto made = make(specs, inputs);
  const std::lock_guard lock(mutex_);
  if (programs_.size() == most_programs) programs_.pop_back();
  programs_.insert(programs_.begin(), made);
  return made;
}

std::shared_ptr<ReadyProgram> Programs::make(std::span<const TensorSpec> specs, std::span<const Tensor> inputs) const {
  const Deadline deadline(execution_.compile_timeout_ms, "compile_timeout_ms");
  try {
    auto ready = make_in_time(specs, inputs, deadline);
    const bool compiles_kernels = device_.type != DeviceType::cpu;
    if (compiles_kernels && !devices_.driver(device_).capturing(device_.index, current_stream(device_)))
      ready->prepare(deadline);
    return ready;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::timeout) throw CompileTimeout(error.message());
    throw;
  }
}

std::shared_ptr<ReadyProgram> Programs::make_in_time(std::span<const TensorSpec> specs, std::span<const Tensor> inputs,
                                                     const Deadline& deadline) const {
  const std::vector<KnownInputs> ways = ways_to_know(inputs, devices_, model_.graph.nodes.size() == 1);
  for (std::size_t way = 0;; ++way) {
    try {
      // To fold floats too, where shapes depend on them.
      const bool knows_all = !ways[way].empty() && std::all_of(ways[way].begin(), ways[way].end(),
                                                               [](const auto& input) { return input.has_value(); });
      const int level = std::max(execution_.optimize_level, knows_all ? 1 : 0);
      Program program = compile_for(specs, ways[way], level, deadline);
      std::vector<std::string> nodes;
      for (const Step& step : program.steps) {
        nodes.push_back(step.is_transfer ? to_string(transfer_of(program, step, device_))
                                         : node_name(model_, step.node));
      }
      on_cpu_.add(model_, program);
      return std::make_shared<ReadyProgram>(std::move(program), std::move(nodes), ways[way], pool_, dispatcher_,
                                            devices_, device_);
    } catch (const NeedsValues&) {
      if (way + 1 == ways.size()) throw;
    }
  }
}

PassContext Programs::pass_context() const {
  PassContext context{.device = device_, .may_use_cpu = may_use_cpu(execution_, device_)};
  context.aligned = [this](const Tensor& constant) { return casts_.aligned(constant); };
  context.is_named = [policy = dispatcher_.policy()](OpId op) {
    // Rules for some calls, such as those of tuning, choose among what is there once all is fused.
    const auto is_for_it = [=](const PolicyRule& rule) {
      return rule.op == op && rule.when.empty() && rule.range.empty();
    };
    return policy.preferences.contains(op) || policy.precision.contains(op) ||
           std::any_of(policy.rules.begin(), policy.rules.end(), is_for_it);
  };
  context.decide = [this](const Problem& problem, std::optional<DataType> precision) {
    return dispatcher_.explain(problem, precision);
  };
  if (execution_.precision == DataType::float16 || execution_.precision == DataType::bfloat16) {
    context.autocast = dispatcher_.current_scope()->autocast;
    context.precision_rules = dispatcher_.policy().precision;
    context.cast = [this](const Tensor& constant, DataType dtype) { return casts_.cast(constant, dtype); };
  }
  if (device_.type == DeviceType::cpu) {  // which has a reference for every problem
    context.takes_channels_last = [this](const Problem& problem) {
      const auto kernels = dispatcher_.registry().kernels(problem.op, device_.type);
      const auto fast =
          std::find_if(kernels.begin(), kernels.end(), [](const auto& kernel) { return kernel->name() == "onednn"; });
      return fast != kernels.end() && (*fast)->supports(problem, devices_.profile(device_)).supported;
    };
    return context;
  }
  context.can_run = [this](const Problem& problem) { return !dispatcher_.explain(problem).kernel.empty(); };
  return context;
}

Program Programs::compile_for(std::span<const TensorSpec> specs, Values values, int optimize_level,
                              const Deadline& deadline) const {
  const PassContext passes = pass_context();  // of the policy of the runs
  // What is computed now is no part of a run: under no policy and no lock.
  const ScopedPolicy plain(dispatcher_, dispatcher_.make_scope({}, {}, LockUse{}));
  Program program = compile(model_, specs, values,
                            Builder(dispatcher_, device_, devices_.profile(device_).global_memory_bytes, optimize_level,
                                    may_use_cpu(execution_, device_)),
                            passes, deadline);
  std::set<std::shared_ptr<void>> files;  // what was read of them is copied, or will be read again
  for (const auto& [name, constant] : model_.graph.constants) files.insert(constant.owner());
  for (const auto& file : files) onnx::forget_file(file);
  return program;
}

}  // namespace xpuruntime::native
