#pragma once

#include "runtime/report_rows.h"

namespace xpuruntime {

/// Fills in the candidates of a row from its decision and from what the store knows of its problem, and marks the one
/// that the row's kernel and plan name.
void add_candidates(ReportRow& row, const StoreSnapshot::Entry& known);

}  // namespace xpuruntime
