#pragma once

#include <string>
#include <string_view>

namespace xpuruntime::opencl {

/// What a compiler says of a source, for people: its first lines, and after the first error the line of the source that
/// it is about. Drivers put all kinds of things before the line's number. `skipped` lines stand before the source that
/// the reader knows; the number shown does not count them.
std::string explain_log(std::string_view log, std::string_view source, std::size_t skipped = 0);

/// Whether the source may read other files, which its text does not tell apart.
bool has_include(std::string_view source);

}  // namespace xpuruntime::opencl
