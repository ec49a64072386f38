#pragma once

#include <string>

#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

/// What the system says of a file, which every change of the file changes: where it lies, its size, and when it was
/// last written and changed. That last moment, unlike the one before, cannot be set by programs.
struct FileIdentity {
  std::string text = {};    // empty: there is no such file
  bool is_settled = false;  // its clock has gone on since: a later change gives another identity
};
FileIdentity identity_of(const std::string& path);

/// Of all files of a model, as they are now. Model::identity has what they were when they were read.
std::string identity_of_files(const Model& model);

}  // namespace xpuruntime::onnx
