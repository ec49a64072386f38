#pragma once

#include <memory>

#include "tune/sqlite.h"

namespace xpuruntime {

inline constexpr std::int64_t store_version = 3;

/// A blank file becomes a store, an older one is brought up to date, any other is refused. Safe from many processes.
void prepare_to_write(const Database& database);

/// Of a blank file, or a store of an older version, a copy in memory, brought up to date; else null. The file stays as
/// it is.
std::unique_ptr<Database> prepare_to_read(const Database& database);

/// Refuses a store whose tables are not as this version made them.
void check_schema(const Database& database);

}  // namespace xpuruntime
