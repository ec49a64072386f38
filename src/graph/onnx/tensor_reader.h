#pragma once

#include <memory>
#include <optional>
#include <string>

#include "graph/onnx/external_data.h"
#include "graph/onnx/mapped_file.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime::onnx {

struct NamedTensor {
  std::string name = {};
  Tensor tensor = {};
};

/// Reads the tensors of one model. They are read-only views of its file and of those with external data; what is not
/// aligned to its elements there, is written as a list of numbers, or does not last is copied.
class TensorReader {
 public:
  /// `file` has the model's bytes; `folder` may have external data.
  TensorReader(SharedBytes file, std::string folder) : file_(std::move(file)), external_(std::move(folder)) {}

  /// The name and ONNX's type of a TensorProto of a type that no op here reads.
  struct Unread {
    std::string name = {};
    std::string type = {};
  };
  static std::optional<Unread> unread(const WireField& message);

  /// Notes the file of a TensorProto that is not read, if it has one.
  void pass_over(const WireField& message);

  /// A TensorProto. `subject` says in errors what it is; its own name is added.
  NamedTensor read(const WireField& message, const std::string& subject);

  /// What of the model lies outside its file.
  const ExternalData& external() const { return external_; }

 private:
  SharedBytes file_;
  ExternalData external_;
};

}  // namespace xpuruntime::onnx
