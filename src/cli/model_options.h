#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/context.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime::cli {

/// Whether a word names a model's file: it ends in .onnx, or is a file and no problem.
bool names_model(const std::string& word);

/// --input, --shape, --execution and --engine, as all commands take them that work on a whole model.
struct ModelOptions {
  std::vector<std::string> inputs = {};
  std::vector<std::string> shapes = {};
  std::string execution = {};
  std::string engine = {};
  std::uint64_t seed = 1;  // of the inputs that are not given

  void add_to(CLI::App& command);
  /// What the options and --device say: that of the file, or one for the CPU.
  ExecutionPolicy execution_policy(const Context& context) const;
  /// Whether another engine than native is named.
  bool names_other_engine(const Context& context) const;
  /// A session under the policy in force and one of the command's own.
  Session open(Context& context, Model model, const KernelPolicy& policy = {},
               const std::optional<LockUse>& lock = {}) const;
  /// One tensor for each input: given ones, else random ones. An error where a shape is open, or an input whose values
  /// determine shapes is not given.
  std::vector<Tensor> tensors(const Session& session, const DeviceManager& devices) const;
  bool says_shapes() const { return !inputs.empty() || !shapes.empty(); }
  /// Which input's shape is open; empty: none's.
  std::string flaw_of_shapes(const Model& model) const;
  /// Refuses options of models where there is none.
  void check_used(bool has_model) const;
  /// Values or shapes of inputs that the model does not have are an error.
  void check_names(const Model& model) const;
};

/// Refuses those of a command's options that were given and mean nothing to `what`: "a model".
void refuse_options(const CLI::App& command, std::initializer_list<const char*> names, const std::string& what);

/// "x f32[batch,8]"
std::string value_text(const ModelValue& value);

}  // namespace xpuruntime::cli
