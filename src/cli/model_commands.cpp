#include "cli/model_commands.h"

#include "cli/table.h"

namespace xpuruntime::cli {
namespace {

/// Where a session's results are: other engines than ours give them on the host.
Device device_of(const SessionRecord& record) {
  return record.engine == "native" ? Device{record.target, 0} : Device{};
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
  opened.device = device_of(opened.session.record());
  return opened;
}

void add_model_lock_to(CLI::App& command, std::string& lock) {
  command.add_option("--lock", lock, "Of a model: the choices of this lock, or an error")->type_name("FILE");
}

Json engine_json(const SessionRecord& record) {
  Json json = {{"name", record.engine},
               {"version", record.version},
               {"target", to_string(record.target)},
               {"is_fallback", record.is_fallback},
               {"because", record.because}};
  json["rejections"] = Json::array();
  for (const EngineRejection& one : record.rejections) {
    json["rejections"].push_back({{"engine", one.engine}, {"target", to_string(one.target)}, {"reason", one.reason}});
  }
  json["on_fallback"] = Json::array();
  for (const MissingOp& one : record.on_fallback) {
    json["on_fallback"].push_back({{"operator", one.op}, {"nodes", one.nodes}, {"reason", one.reason}});
  }
  return json;
}

std::string engine_text(const SessionRecord& record) {
  return "engine " + record.engine + " " + record.version + " on " + std::string(to_string(record.target)) + ": " +
         printable(record.because);
}

Json step_json(const SessionStep& step) {
  Json json = {{"node", step.node}, {"operator", step.op}, {"kind", to_string(step.kind)}};
  json["output"] = to_string(step.output);
  json["decision"] = step.decision ? parse_known_json(step.decision->to_json()) : Json();
  json["transfer"] = Json();
  if (step.transfer) {
    json["transfer"] = {{"source", to_string(step.transfer->source)},
                        {"destination", to_string(step.transfer->destination)},
                        {"bytes", step.transfer->bytes}};
  }
  return json;
}

std::string duration_of_us(double us) {
  return us < 1000 ? figure("%.2f us", us) : us < 1e6 ? figure("%.3f ms", us / 1e3) : figure("%.3f s", us / 1e6);
}

}  // namespace xpuruntime::cli
