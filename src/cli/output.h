#pragma once

#include <string_view>

namespace xpuruntime::cli {

/// Writes all of the answer. A reader that has gone is fine; any other failure is told on stderr and gives false.
bool write_to_stdout(std::string_view text);

/// Writes a file; an error names the path.
void write_file(const char* path, std::string_view text);

}  // namespace xpuruntime::cli
