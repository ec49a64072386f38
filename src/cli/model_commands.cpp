#include "cli/model_commands.h"

#include "cli/table.h"

namespace xpuruntime::cli {
namespace {

/// Where a session runs: the target, or where it is not here what is declared instead.
Device device_of(const ModelOptions& options, const DeviceManager& devices) {
  if (options.execution.empty()) return {};
  const ExecutionPolicy policy = ExecutionPolicy::load(options.execution);
  const Device target{policy.target, 0};
  return devices.has(target) ? target : Device{policy.allow_fallback.value_or(policy.target), 0};
}

}  // namespace

OpenedModel open_model(Context& context, const ModelRequest& request) {
  Runtime& runtime = context.runtime();
  std::optional<LockUse> lock;
  if (!request.lock.empty()) {
    lock = LockUse{std::make_shared<const KernelLock>(KernelLock::load(request.lock)), LockMode::strict};
  }
  OpenedModel opened{
      request.options.open(context, load_onnx(request.path), context.policy_of(request.policy.file), lock)};
  opened.inputs = request.options.tensors(opened.session, runtime.devices());
  opened.device = device_of(request.options, runtime.devices());
  return opened;
}

void add_model_lock_to(CLI::App& command, std::string& lock) {
  command.add_option("--lock", lock, "Of a model: the choices of this lock, or an error")->type_name("FILE");
}

Json step_json(const SessionStep& step) {
  Json json = {{"node", step.node}, {"operator", step.op}, {"kind", to_string(step.kind)}};
  json["output"] = to_string(step.output);
  json["decision"] = step.decision ? parse_known_json(step.decision->to_json()) : Json();
  return json;
}

std::string duration_of_us(double us) {
  return us < 1000 ? figure("%.2f us", us) : us < 1e6 ? figure("%.3f ms", us / 1e3) : figure("%.3f s", us / 1e6);
}

}  // namespace xpuruntime::cli
