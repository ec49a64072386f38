#pragma once

#include <string>

namespace xpuruntime {

/// Why a file cannot be a whole shared library for this machine; empty if nothing speaks against it. The loader maps
/// what the headers promise without comparing it with the file's length: a file that was cut off would end the process.
std::string flaw_of_shared_object(const std::string& path);

/// The folder `xpuruntime` beside this library, which holds what the library opens at run time.
std::string parts_folder();

}  // namespace xpuruntime
