#include "graph/session/file_content.h"

#include <algorithm>

#include "core/printable.h"
#include "core/sha256.h"
#include "core/xxh64.h"
#include "graph/onnx/file_identity.h"
#include "graph/onnx/mapped_file.h"
#include "graph/session/constants.h"
#include "graph/session/engine_choice.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

bool has_unread(const ModelGraph& graph) {
  bool found = !graph.unread_constants.empty();
  for (const ModelNode& node : graph.nodes) {
    for (const auto& [name, value] : node.attributes) {
      if (std::holds_alternative<std::monostate>(value)) found = true;
      if (const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value))
        found = found || has_unread(**body);
    }
  }
  return found;
}

std::string digest_of(const Model& model) {
  std::string text = structure_of_model(model);
  for_each_constant(model.graph, [&](const std::string& name, const Tensor& tensor) {
    text += " " + name + " " + std::to_string(xxh64(std::span(tensor.as<const std::byte>(), tensor.span())));
  });
  return text;
}

}  // namespace

std::string content_of_file(const std::string& path, const DiskCache& kept) {
  const auto [identity, is_settled] = onnx::identity_of(path);
  const std::string key = is_settled ? Sha256().add(identity).finish() : "";
  if (!key.empty()) {
    if (auto content = kept.get(key)) return *content;
  }
  const onnx::SharedBytes file = onnx::map_file(path);
  const std::string content = Sha256().add(file.bytes).finish();
  if (!key.empty() && onnx::identity_of(path).text == identity) kept.put(key, content);
  return content;
}

void check_unchanged(const Model& model) {
  if (model.path.empty() || model.identity.empty() || onnx::identity_of_files(model) == model.identity) return;
  // What was touched or copied over itself is the same model; of values that nobody has read none can tell.
  if (!has_unread(model.graph) && digest_of(load_onnx(model.path)) == digest_of(model)) return;
  fail(ErrorCode::io_error, "Session",
       "'" + printable(model.path) + "', or a file with its data, is another than when it was loaded; load it again");
}

}  // namespace xpuruntime
