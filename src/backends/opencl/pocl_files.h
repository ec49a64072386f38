#pragma once

#include <cstdint>
#include <string>

// PoCL ends the process where a file of its cache is damaged, is missing when a launch needs it, or cannot be written.

namespace xpuruntime::opencl {

/// A file as it is now: its size, checksum and path. Empty where it cannot be read.
std::string mark_of_file(const std::string& path);
std::string path_in_mark(const std::string& mark);

/// Whether the file is still as its mark says. One that is another by now is removed, so that PoCL makes it anew.
bool is_as_marked(const std::string& mark);

/// What PoCL compiled the program to whose machine code is in this file.
std::string program_file_of(const std::string& machine_code);

/// Makes the folder of the cache where somebody has removed it: PoCL does so only at its start. Throws out_of_memory
/// where its disk has fewer bytes free; one that does not tell may have enough.
void make_room(const std::string& folder, std::uint64_t least = std::uint64_t{1} << 20);

}  // namespace xpuruntime::opencl
