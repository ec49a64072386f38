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
  bool lasts = true;  // false: what is kept of it is to be copied, as others may write over it
};

/// A file's bytes: up to 32 MiB as they are read now, as such files are often written over while they are in use; those
/// do not last. Of larger ones as the system maps them: read when they are touched, and shared with other processes.
/// Whoever replaces such a file must rename a new one over it; writing into it changes the model, and shortening it
/// ends the process that reads there. Only regular files; one without bytes is `corrupt_data`.
SharedBytes map_file(const std::string& path);

/// Says that bytes are not needed for now, where they are a mapped file's: they take no memory until they are read
/// again.
void forget_pages(std::span<const std::byte> bytes, const std::shared_ptr<void>& owner);

/// The same of the whole file that a constant is mapped from: the system may have read far around what was touched.
void forget_file(const std::shared_ptr<void>& owner);

/// The same from a copy, aligned to 64 bytes.
SharedBytes copy_bytes(std::span<const std::byte> bytes);

}  // namespace xpuruntime::onnx
