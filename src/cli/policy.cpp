
#include "cli/commands.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/graph/execution_policy.h"
#include "xpuruntime/select/policy_fields.h"
#include "xpuruntime/select/validate_policy.h"

namespace xpuruntime::cli {
namespace {

struct PolicyRequest {
  std::string action = {};
  std::vector<std::string> files = {};
  std::string out = {};
};

/// A value of a policy, or null where there is none.
Json value_of(const std::string& text) { return text.empty() ? Json() : parse_known_json(text); }

Json number_or_null(std::size_t number) { return number == 0 ? Json() : Json(number); }

std::string document(const Json& json) { return dump_json(json, 2) + "\n"; }

// ---- validate ----

/// As compilers write it, so that editors find the place.
std::string line_of(const std::string& file, const PolicyFinding& finding, const Painter& paint) {
  std::string place = printable(file) + ":";
  if (finding.line != 0) place += std::to_string(finding.line) + ":" + std::to_string(finding.column) + ":";
  const std::string severity(to_string(finding.severity));
  const Colour colour = finding.severity == Severity::note ? Colour::dim : Colour::red;
  return place + " " + paint(colour, severity) + ": " + printable(finding.field) + ": " + printable(finding.text) +
         "\n";
}

Json to_json(const PolicyFinding& finding) {
  return {{"severity", to_string(finding.severity)},
          {"field", finding.field},
          {"text", finding.text},
          {"line", number_or_null(finding.line)},
          {"column", number_or_null(finding.column)}};
}

Answer validate(Context& context, const PolicyRequest& options) {
  const KernelRegistry& registry = context.runtime().registry();
  const Device device = context.given_device().value_or(current_device());
  Json files = Json::array();
  std::string text;
  bool fine = true;
  for (const std::string& file : options.files) {
    Json findings = Json::array();
    for (const PolicyFinding& finding : validate_policy_file(file, registry, device, context.runtime().engines())) {
      text += line_of(file, finding, context.paint);
      findings.push_back(to_json(finding));
      fine = fine && finding.severity == Severity::note;
    }
    if (findings.empty()) text += printable(file) + ": fine on " + to_string(device) + "\n";
    files.push_back({{"file", file}, {"findings", findings}});
  }
  const int code = fine ? exit_fine : exit_no;
  if (!context.json) return {text, code};
  return {document({{"version", 1}, {"device", to_string(device)}, {"fine", fine}, {"files", files}}), code};
}

// ---- show ----

std::string set_at(const PolicyField& field) {
  if (field.value.empty()) return "";
  return "line " + std::to_string(field.line) + ", column " + std::to_string(field.column);
}

Answer show(Context& context, const PolicyRequest& options) {
  const std::string& file = options.files.front();
  const KernelPolicy policy = KernelPolicy::load(file);
  Json fields = Json::array();
  Table table({"field", "value", "set at"});
  for (const PolicyField& field : policy_fields_of_file(file)) {
    table.add({field.field, field.value.empty() ? "not set" : field.value, set_at(field)});
    fields.push_back({{"field", field.field},
                      {"value", value_of(field.value)},
                      {"line", number_or_null(field.line)},
                      {"column", number_or_null(field.column)}});
  }
  if (!context.json) return {table.to_text(context.paint)};
  return {document({{"version", 1}, {"file", file}, {"policy", value_of(policy.to_json())}, {"fields", fields}})};
}

// ---- merge ----

Answer merge(Context& context, const PolicyRequest& options) {
  KernelPolicy merged;
  for (const std::string& file : options.files) merged = merged.merge(KernelPolicy::load(file));
  if (options.out.empty()) {
    if (!context.json) return {merged.to_json()};
    return {document({{"version", 1}, {"out", nullptr}, {"policy", value_of(merged.to_json())}})};
  }
  merged.save(options.out);
  if (context.json) {
    return {document({{"version", 1}, {"out", options.out}, {"policy", value_of(merged.to_json())}})};
  }
  return {std::to_string(options.files.size()) + " policies merged into " + printable(options.out) + "\n"};
}

// ---- diff ----

std::string line_of(const PolicyChange& change, const Painter& paint) {
  std::string text;
  if (!change.before.empty()) text += paint(Colour::red, "- " + change.field + " " + change.before) + "\n";
  if (!change.after.empty()) text += paint(Colour::green, "+ " + change.field + " " + change.after) + "\n";
  return text;
}

Answer diff(Context& context, const PolicyRequest& options) {
  const auto changes = diff_policies(KernelPolicy::load(options.files[0]), KernelPolicy::load(options.files[1]));
  const int code = changes.empty() ? exit_fine : exit_no;
  Json list = Json::array();
  std::string text = changes.empty() ? "the policies say the same\n" : "";
  for (const PolicyChange& change : changes) {
    text += line_of(change, context.paint);
    list.push_back({{"field", change.field}, {"before", value_of(change.before)}, {"after", value_of(change.after)}});
  }
  if (!context.json) return {text, code};
  return {document({{"version", 1}, {"equal", changes.empty()}, {"changes", list}}), code};
}

struct PolicyAction {
  std::string_view name = {};
  std::size_t least = 1;
  std::size_t most = 1;
  Answer (*run)(Context&, const PolicyRequest&) = nullptr;
  std::string_view needs = {};
};

constexpr PolicyAction policy_actions[] = {
    {"validate", 1, SIZE_MAX, validate, "one policy file or more"},
    {"show", 1, 1, show, "one policy file"},
    {"merge", 2, SIZE_MAX, merge, "two policy files or more, the strongest last"},
    {"diff", 2, 2, diff, "two policy files"},
};

Answer policy(Context& context, const PolicyRequest& options) {
  const auto action = std::find_if(std::begin(policy_actions), std::end(policy_actions),
                                   [&](const PolicyAction& candidate) { return candidate.name == options.action; });
  const std::string name(action->name);
  if (options.files.size() < action->least || options.files.size() > action->most) {
    fail(ErrorCode::invalid_argument, "policy",
         name + " takes " + std::string(action->needs) + "; write xrt policy " + name + " base.json" +
             (action->least > 1 ? " override.json" : ""));
  }
  if (!options.out.empty() && action->run != merge) {
    fail(ErrorCode::invalid_argument, "policy", "--out goes with merge; leave it out for " + name);
  }
  context.runtime();  // a plugin may bring ops and kernels of its own
  return action->run(context, options);
}

}  // namespace

void add_policy(CLI::App& app, Context& context) {
  CLI::App& command = add_command(app, context, "policy", "Check, show, merge and compare policy files",
                                  "xrt policy validate policy.json --device cpu:0");
  const auto options = std::make_shared<PolicyRequest>();
  command
      .add_option("action", options->action,
                  "validate: what will not work as written; show: every field and where it is set; merge: later files "
                  "win; diff: the differences of two")
      ->type_name("ACTION")
      ->required()
      ->check(CLI::IsMember({"validate", "show", "merge", "diff"}));
  command.add_option("files", options->files, "Policy files")->type_name("FILE")->required();
  add_output_to(command, context, "--out", options->out, "Where merge writes; else it prints");
  command.callback(
      [&context, options] { context.command = [&context, options] { return policy(context, *options); }; });
}

}  // namespace xpuruntime::cli
