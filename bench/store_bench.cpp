// What a store costs: opening one of 100,000 entries and freezing the part for this machine, at most 100 ms; finding a
// problem in the frozen part; putting a record.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "timing.h"
#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime::bench {
namespace {

namespace fs = std::filesystem;

constexpr int entries = 100'000;
constexpr int kernels = 5;
constexpr double bound_ms = 100;

/// A folder that goes with it.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("xrt_store_bench_" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

std::string problem(int n) {
  return "matmul(bf16[" + std::to_string(1 + n) + ",4096], bf16[4096,4096]) @cpu:0 workspace_limit=67108864";
}

/// Five kernels timed on one problem, and the choice among them.
TuneRecord record_of(int n) {
  TuneRecord record;
  for (int k = 0; k < kernels; ++k) {
    record.measurements.push_back({problem(n), "kernel_" + std::to_string(k), "tile=64x64x16 split=1",
                                   100.25 + n * 0.37 + k * 1.13, 0.19 + k * 0.01, 64, 1 << 20, 1.3e-7,
                                   1'790'000'000 + n});
  }
  record.choices.push_back({problem(n), "kernel_0", "tile=64x64x16 split=1", "kernel_3",
                            "kernel_0 takes 100.25 us, kernel_3 103.64 us", false, 1'790'000'000 + n});
  return record;
}

/// `entries` measurements, dealt out to so many environments of this device, of which one is here.
StoreContents contents(const Environment& here, int environments) {
  StoreContents all;
  for (int e = 0; e < environments; ++e) {
    StoreRow& row = all.emplace_back();
    row.environment = here;
    if (e != 0) row.environment.versions["xpuruntime"] = "0.0." + std::to_string(e);
    for (int n = 0; n < entries / kernels / environments; ++n) {
      const TuneRecord record = record_of(n);
      row.record.measurements.insert(row.record.measurements.end(), record.measurements.begin(),
                                     record.measurements.end());
      row.record.choices.push_back(record.choices.front());
    }
  }
  return all;
}

double ms_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Figures {
  double megabytes = 0;
  double open_ms = 0;
  double worst_ms = 0;
  double find_us = 0;
  double put_us = 0;
};

Figures measure(const std::string& path, const Environment& here, int environments) {
  open_store(path)->merge(contents(here, environments));
  Figures figures;
  figures.megabytes = static_cast<double>(fs::file_size(path)) / 1e6;
  std::vector<double> opening;
  std::shared_ptr<const StoreSnapshot> frozen;
  for (int i = 0; i < 11; ++i) {
    opening.push_back(ms_of([&] { frozen = open_store(path, StoreMode::read_only)->freeze(here); }));
  }
  figures.open_ms = median(opening);
  figures.worst_ms = *std::max_element(opening.begin(), opening.end());
  const int problems = static_cast<int>(frozen->size());
  figures.find_us = ns_per_call(
                        [&](std::uint64_t calls) {
                          for (std::uint64_t i = 0; i < calls; ++i) {
                            keep(frozen->find(problem(static_cast<int>(i * 7919 % static_cast<unsigned>(problems)))));
                          }
                        },
                        11) /
                    1e3;
  const auto store = open_store(path);
  std::vector<double> putting;
  for (int i = 0; i < 51; ++i) putting.push_back(1e3 * ms_of([&] { store->put(here, record_of(i * 31)); }));
  figures.put_us = median(putting);
  return figures;
}

int run() {
  const Folder folder;
  const Environment here = environment_of(probe_cpu());
  Table table({"store", "MB", "open and freeze ms", "worst of 11", "bound", "find us", "put us"});
  bool within = true;
  for (const int environments : {1, 10}) {
    const std::string name = std::to_string(environments) + (environments == 1 ? " environment" : " environments");
    const Figures figures = measure((folder.path / name).string(), here, environments);
    within = within && figures.open_ms <= bound_ms;
    table.add({"100000 measurements, 20000 choices, " + name, number(figures.megabytes), number(figures.open_ms),
               number(figures.worst_ms), number(bound_ms, 0), number(figures.find_us), number(figures.put_us, 0)});
  }
  table.print();
  std::printf("opening is %s\n", within ? "within its bound" : "BEYOND ITS BOUND");
  return within ? 0 : 1;
}

}  // namespace
}  // namespace xpuruntime::bench

int main() { return xpuruntime::bench::guarded("store_bench", xpuruntime::bench::run); }
