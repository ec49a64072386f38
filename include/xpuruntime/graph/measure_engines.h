#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xpuruntime/graph/session.h"

namespace xpuruntime {

/// How fast one engine runs a model.
struct EngineTime {
  std::string engine = {};
  std::string version = {};
  std::string reason = {};  // why it was not measured, or is out; empty: it is in the race
  /// Of its results from those of the first engine, infinite where dtypes or shapes differ; nothing where they were not
  /// compared. Floats: by the largest magnitude; others: the share that differs.
  std::optional<double> difference = {};
  double first_us = 0;  // of the first run, without loading and compiling
  double median_us = 0;
  double min_us = 0;
  std::int64_t runs = 0;
};

/// Engines side by side, in the order in which they are tried without measuring.
struct EngineTimes {
  std::vector<EngineTime> engines = {};
  std::string chosen = {};      // the fastest; empty: none takes the model
  std::string because = {};     // "12.3 us; native 20.1 us"
  std::string not_stored = {};  // why the choice could not be put into the store; empty: it was, or there is none
};

/// Runs a model by every engine that takes it, in turns, until the time is over. One whose results change from run to
/// run, or differ from the first engine's by more than 1 % (10 % where floats under 32 bits or codes are computed
/// with), is out, unless the model draws random numbers. With SessionOptions::store the choice is kept there, for
/// sessions with engine "auto" of the same model and shapes; of what it was compared by.
EngineTimes measure_engines(const Model& model, Dispatcher& dispatcher, const DeviceManager& devices,
                            const SessionOptions& options, std::span<const Tensor> inputs, double budget_s);

}  // namespace xpuruntime
