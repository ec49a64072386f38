#pragma once

#include <string>
#include <string_view>

namespace xpuruntime {

class Database;

/// A store's bytes with what its log has committed, read without locks: for a file that another user writes, or that
/// lies where nothing can be written. A timeout where its owner wrote meanwhile.
std::string read_store_image(const Database& file);

/// Puts the pages of SQLite's write-ahead log into the file's bytes, up to the last commit. What was not written whole
/// ends the log, as for SQLite itself.
void apply_log(std::string& file, std::string_view log);

}  // namespace xpuruntime
