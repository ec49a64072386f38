#pragma once

#include <vector>

namespace xpuruntime::bench {

/// What this machine gives on `threads` threads: the measure of the benchmarks' fractions.
struct MachinePeak {
  double flops = 0;  // a second: f32 multiply-adds on registers, each counted as two
  /// a[i] = b[i] + s * c[i] over so much data: what lies in a cache moves faster.
  struct Bandwidth {
    double data_bytes = 0;  // of the three arrays of all threads
    double bytes = 0;       // a second
  };
  std::vector<Bandwidth> bandwidths = {};  // by growing data

  /// Bytes a second for a call that touches so many bytes.
  double bytes_for(double data_bytes) const;
};

MachinePeak measure_peak(int threads);

}  // namespace xpuruntime::bench
