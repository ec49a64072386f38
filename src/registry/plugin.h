#pragma once

#include <memory>
#include <string>

#include "xpuruntime/registry/backend.h"

namespace xpuruntime {

/// Opens a shared library and makes its backend. The library stays open as long as the backend and everything it handed
/// out through shared_ptr aliases lives; kernels and plans point into its code, so it is never closed once a backend
/// was made.
std::shared_ptr<Backend> open_plugin(const std::string& path);

/// What a plugin's file is: "sha256:" and sixteen hex digits. Of the libraries that it links it says nothing.
std::string hash_of_plugin(const std::string& path);

}  // namespace xpuruntime
