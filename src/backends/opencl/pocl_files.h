#pragma once

#include <cstdint>
#include <string>

#include "backends/opencl/disk_cache.h"

// PoCL ends the process where a file of its cache is damaged, is missing when a launch needs it, or cannot be written.

namespace xpuruntime::opencl {

/// Notes that a file is whole as it is now. Processes that make it at once make it differently: each notes what it
/// finds.
void note_whole(const std::string& path, const DiskCache& notes);

/// Whether somebody has noted the file as it is now, or it was written within a minute and may yet be noted. Another
/// one is removed where it lies in PoCL's folder, so that PoCL makes it anew.
bool is_whole(const std::string& path, const std::string& folder, const DiskCache& notes);

/// What PoCL compiled the program to whose machine code is in this file.
std::string program_file_of(const std::string& machine_code);

/// Makes the folder of the cache where somebody has removed it: PoCL does so only at its start. Throws out_of_memory
/// where its disk has fewer bytes free; one that does not tell may have enough.
void make_room(const std::string& folder, std::uint64_t least = std::uint64_t{1} << 20);

}  // namespace xpuruntime::opencl
