#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime {

/// An extent of a model's tensor: a size, or a name for one that each run may choose, or neither.
struct ModelExtent {
  std::int64_t size = -1;  // below 0: not known
  std::string name = {};

  bool operator==(const ModelExtent&) const = default;
};

/// What a model says of one of its tensors.
struct ModelValue {
  std::string name = {};
  std::string type = {};               // as ONNX calls it: "float", "string", "sequence"; empty: not said
  std::optional<DataType> dtype = {};  // where it is one of ours
  std::optional<std::vector<ModelExtent>> shape = {};  // nothing: not even the rank is known
};

struct ModelGraph;

/// Tensors are read-only and on the CPU; their bytes are the file's, mapped, where its layout allows that. `monostate`
/// stands for a kind that no op here reads; a graph is the body of If, Loop or Scan.
using ModelAttribute =
    std::variant<std::monostate, std::int64_t, float, std::string, Tensor, std::shared_ptr<const ModelGraph>,
                 std::vector<std::int64_t>, std::vector<float>, std::vector<std::string>>;

/// One operator of a model. An empty name among the inputs or outputs is one that is left out.
struct ModelNode {
  std::string name = {};
  std::string op = {};      // "Conv"
  std::string domain = {};  // empty: ONNX's own
  std::vector<std::string> inputs = {};
  std::vector<std::string> outputs = {};
  std::map<std::string, ModelAttribute, std::less<>> attributes = {};
};

/// Nodes stand in an order in which each comes after those whose outputs it reads; every name is made once.
struct ModelGraph {
  std::string name = {};
  std::vector<ModelValue> inputs = {};  // without those that are constants
  std::vector<ModelValue> outputs = {};
  std::vector<ModelNode> nodes = {};
  std::map<std::string, Tensor, std::less<>> constants = {};
  /// Of types that no op here reads, such as strings: ONNX's name of the type, by the constant's. `native` takes no
  /// model with one; engines that read its file may.
  std::map<std::string, std::string, std::less<>> unread_constants = {};
  std::map<std::string, ModelValue, std::less<>> values = {};  // what the file says of tensors in between
};

/// A model as its file has it, checked.
struct Model {
  std::string path = {};                     // empty: from memory
  std::vector<std::string> data_files = {};  // others that have its constants
  std::string identity = {};                 // of these files, as they were when they were read
  std::string producer = {};                 // "pytorch 2.10.0"
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t, std::less<>> opsets = {};  // by domain; ONNX's own is ""
  ModelGraph graph = {};
};

/// Reads an ONNX file. Opsets 6 to 28. What is truncated, too large, or no model is `corrupt_data` with the place;
/// data outside the file's folder is refused; cycles, names that are made twice or never, and types that do not fit are
/// errors that name the node. Constants are mapped, not copied.
Model load_onnx(const std::string& path);

/// The same from bytes, which are copied once; `folder` is where its external data lies, empty: it may have none.
Model parse_onnx(std::span<const std::byte> bytes, const std::string& folder = {});

/// Writes an ONNX file of up to 2 GiB: to a temporary name, synced, renamed. What reading does not keep (attributes of
/// kinds that no op reads) is refused or, such as texts for people, left out.
void save_onnx(const Model& model, const std::string& path);

}  // namespace xpuruntime
