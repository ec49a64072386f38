#pragma once

#include <cstddef>

#include "xpuruntime/tune/tuner.h"

namespace xpuruntime::cli {

/// Shows on stderr how far tuning is: a bar on a terminal, a plain line for each finished problem elsewhere.
class ProgressShow {
 public:
  explicit ProgressShow(std::size_t problems);
  ~ProgressShow();
  ProgressShow(const ProgressShow&) = delete;
  ProgressShow& operator=(const ProgressShow&) = delete;

  void moved(const TuneProgress& progress);
  void finished(const TuneResult& result);

 private:
  void clear();

  const std::size_t problems_;
  const bool terminal_;
  std::size_t done_ = 0;
  double shown_at_s_ = -1;
  bool drawn_ = false;
};

}  // namespace xpuruntime::cli
