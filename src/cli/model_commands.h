#pragma once

#include <string>

#include "cli/model_options.h"
#include "cli/store_option.h"
#include "core/json_text.h"
#include "xpuruntime/runtime/report.h"

namespace xpuruntime::cli {

/// What a command is asked about a model. Other parts of the command's options are its own.
struct ModelRequest {
  std::string path = {};
  ModelOptions options = {};
  PolicyOptions policy = {};
  std::string lock = {};
};

/// Where `xrt run` writes a model's outputs: each into a file of a folder, or all into one. Empty: nowhere.
struct ModelOutputs {
  std::string folder = {};
  std::string file = {};
};

/// A model and tensors for its inputs, ready for a command.
struct OpenedModel {
  Session session;
  std::vector<Tensor> inputs = {};
  Device device = {};
};
/// Under the request's policy and lock.
OpenedModel open_model(Context& context, const ModelRequest& request);

// Each is what the command of its name does where it is given a model instead of a problem.
Answer run_model(Context& context, const ModelRequest& request, const ModelOutputs& outputs, int repeat);
Answer explain_model(Context& context, const ModelRequest& request);
/// For a report: which engine runs it, how fast all are, and the calls of native with their times.
ReportModel report_model(Context& context, const ModelRequest& request);
Answer bench_model(Context& context, const ModelRequest& request, double budget_s);

/// Adds --lock, and a check that refuses the options of `problem_only` for a model and the model's for a problem.
void add_model_lock_to(CLI::App& command, std::string& lock);

/// Which engine runs a model, and why.
Json engine_json(const SessionRecord& record);
std::string engine_text(const SessionRecord& record);
/// A step as `inspect` and `explain` print it in JSON.
Json step_json(const SessionStep& step);
/// "12.3 us", "1.234 ms", "1.2 s"
std::string duration_of_us(double us);

}  // namespace xpuruntime::cli
