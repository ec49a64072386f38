
#include "cli/commands.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "xpuruntime/precision/amp_registry.h"

namespace xpuruntime::cli {
namespace {

constexpr DataType input_dtypes[] = {DataType::float64, DataType::float32, DataType::float16, DataType::bfloat16};

struct AmpRequest {
  std::string action = {};
  std::string op = {};
  std::string dtype = "bf16";
  std::string policy = {};
};

/// An op's rule and who it comes from.
struct OpRow {
  OpPrecisionRule rule = {};
  std::string from = {};
};

OpRow row_of(OpId op, const AmpRegistry& registry, const KernelPolicy& policy) {
  const OpPrecisionRule rule = registry.rule_in_force(op);
  const std::string source(to_string(registry.source(op)));
  const auto found = policy.precision.find(op);
  if (found == policy.precision.end()) return {rule, source};
  const DirectionPrecisions& requested = found->second;
  const RequestedPrecision open =
      requested.forward ? RequestedPrecision() : rule.backward();  // as forward, or as without the policy
  return {OpPrecisionRule::make(op, requested.forward.value_or(rule.forward()), requested.backward.value_or(open)),
          requested.forward ? "policy" : source + ", backward policy"};
}

std::string backward_text(const OpPrecisionRule& rule) {
  return rule.backward_precision == OpPrecision::keep ? "as forward" : to_string(rule.backward());
}

std::string list_text(const std::vector<OpRow>& rows, const AmpConfig& config, const Painter& paint) {
  Table table({"op", "forward", "backward", "f32 becomes", "and backward", "from"});
  for (const OpRow& row : rows) {
    const OpPrecisionRule& rule = row.rule;
    table.add({std::string(to_string(rule.op)), to_string(rule.forward()), backward_text(rule),
               std::string(to_string(rule.get_forward_dtype(config, DataType::float32))),
               std::string(to_string(rule.get_backward_dtype(config, DataType::float32))), row.from});
  }
  return table.to_text(paint);
}

std::string get_text(const OpRow& row, const AmpConfig& config, const Painter& paint) {
  const OpPrecisionRule& rule = row.rule;
  std::string text = paint(Colour::bold, to_string(rule.op)) + "  forward " + to_string(rule.forward()) +
                     ", backward " + backward_text(rule) + " (" + row.from + ")\n";
  for (const DataType input : input_dtypes) {
    text += "  " + padded(std::string(to_string(input)), 5) + "-> forward " +
            padded(std::string(to_string(rule.get_forward_dtype(config, input))), 7) + "backward " +
            std::string(to_string(rule.get_backward_dtype(config, input))) + "\n";
  }
  return text;
}

Json to_json(const OpRow& row, const AmpConfig& config) {
  Json forward = Json::object(), backward = Json::object();
  for (const DataType input : input_dtypes) {
    forward[std::string(to_string(input))] = to_string(row.rule.get_forward_dtype(config, input));
    backward[std::string(to_string(input))] = to_string(row.rule.get_backward_dtype(config, input));
  }
  return {{"op", to_string(row.rule.op)},
          {"forward", to_string(row.rule.forward())},
          {"backward", to_string(row.rule.backward())},
          {"from", row.from},
          {"forward_dtype", forward},
          {"backward_dtype", backward}};
}

std::string as_json(const std::vector<OpRow>& rows, const AmpConfig& config) {
  Json document = {{"version", 1},
                   {"target", to_string(config.target_precision)},
                   {"higher", to_string(config.higher_precision)},
                   {"ops", Json::array()}};
  for (const OpRow& row : rows) document["ops"].push_back(to_json(row, config));
  return dump_json(document, 2) + "\n";
}

Answer amp(Context& context, const AmpRequest& options) {
  const bool one = options.action == "get";
  if (one == options.op.empty()) {
    fail(ErrorCode::invalid_argument, "amp",
         one ? "get needs an op; write xrt amp get matmul"
             : "list shows all ops; for one write xrt amp get " + options.op);
  }
  context.runtime();  // a plugin may bring ops of its own
  const AmpRegistry registry({.target_precision = parse_data_type(options.dtype)});
  const KernelPolicy policy = load_policy(options.policy);
  std::vector<OpRow> rows;
  for (const OpId op : one ? std::vector<OpId>{parse_op(options.op)} : all_ops()) {
    rows.push_back(row_of(op, registry, policy));
  }
  if (context.json) return {as_json(rows, registry.config())};
  return {one ? get_text(rows.front(), registry.config(), context.paint)
              : list_text(rows, registry.config(), context.paint)};
}

}  // namespace

void add_amp(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "amp", "Show the precision that each op gets under autocast, and where it comes from",
                  "xrt amp get softmax --policy policy.json");
  const auto options = std::make_shared<AmpRequest>();
  command.add_option("action", options->action, "list: all ops; get: one op, for each dtype it may meet")
      ->type_name("ACTION")
      ->required()
      ->check(CLI::IsMember({"list", "get"}));
  command.add_option("op", options->op, "The op that get shows")->type_name("OP");
  command.add_option("--dtype", options->dtype, "What `lower` means: bf16 or f16 (default bf16)")->type_name("DTYPE");
  command.add_option("--policy", options->policy, "With the precision rules of this policy file")->type_name("FILE");
  command.callback([&context, options] { context.command = [&context, options] { return amp(context, *options); }; });
}

}  // namespace xpuruntime::cli
