#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace xpuruntime::onnx {

/// Bytes that are not written to, and what keeps them.
struct SharedBytes {
  std::span<const std::byte> bytes = {};
  std::shared_ptr<void> owner = {};
};

/// A file's bytes: a copy up to 64 MiB. Larger ones as the system maps them: read when they are touched, and shared
/// with other processes. Whoever replaces such a file must rename a new one over it; writing into it changes the model,
/// and shortening it ends the process that reads there. Only regular files; one without bytes is `corrupt_data`.
SharedBytes map_file(const std::string& path);

/// The same from a copy, aligned to 64 bytes.
SharedBytes copy_bytes(std::span<const std::byte> bytes);

}  // namespace xpuruntime::onnx
