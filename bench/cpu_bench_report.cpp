#include "cpu_bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "cpu_bench_data.h"
#include "timing.h"

namespace xpuruntime::bench {
namespace {

constexpr double counts_as_better = 1.05;

/// The share of the machine's peak that a call reached: of arithmetic or of memory, whichever is nearer its limit.
struct Fraction {
  double value = 0;
  bool arithmetic = false;
};

Fraction fraction_of(const Row& row, const MachinePeak& peak) {
  const double seconds = row.ours_us * 1e-6;
  const double flops = flops_of(row.problem) / seconds / peak.flops;
  const double touched = bytes_of(row.problem);
  const double bytes = touched / seconds / peak.bytes_for(touched);
  return flops > bytes ? Fraction{flops, true} : Fraction{bytes, false};
}

std::string time_text(const std::optional<double>& us) { return us ? number(*us) : ""; }

std::vector<std::string> cells(const Row& row, const MachinePeak& peak) {
  const std::string problem(row.source.text);
  if (!row.timed()) {
    const std::string kernel = row.chosen.empty() ? "no kernel" : row.chosen;
    return {problem, kernel, "", "", time_text(row.torch_us), time_text(row.ort_us), "", "", row.note};
  }
  const OwnTime* better = row.better_own();
  const Fraction fraction = fraction_of(row, peak);
  return {problem,
          row.chosen,
          number(row.ours_us),
          better != nullptr ? better->kernel + " " + number(better->us) : "",
          time_text(row.torch_us),
          time_text(row.ort_us),
          row.ratio() ? number(*row.ratio(), 2) : "",
          number(fraction.value, 2) + (fraction.arithmetic ? " F" : " B"),
          row.note};
}

void print_table(const std::vector<Row>& rows, const MachinePeak& peak) {
  Table table({"problem", "kernel", "ours us", "better own us", "torch us", "ort us", "ratio", "of peak", "note"});
  for (const Row& row : rows) table.add(cells(row, peak));
  table.print();
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

std::string family_of(const Row& row) {
  const OpInfo& info = op_info(row.problem.op);
  return std::string(info.category == OpCategory::matrix ? info.name : to_string(info.category));
}

std::string means_by(const std::vector<Row>& rows, const std::function<std::string(const Row&)>& key) {
  std::map<std::string, std::vector<double>> ratios;
  for (const Row& row : rows) {
    if (row.ratio()) ratios[key(row)].push_back(*row.ratio());
  }
  std::string text;
  for (const auto& [name, values] : ratios) {
    text += (text.empty() ? "" : ", ") + name + " " + number(geometric_mean(values), 2) + " (" +
            std::to_string(values.size()) + ")";
  }
  return text;
}

void print_below(const std::vector<Row>& rows, double from, double to) {
  std::vector<const Row*> below;
  for (const Row& row : rows) {
    if (row.ratio() && *row.ratio() >= from && *row.ratio() < to) below.push_back(&row);
  }
  std::sort(below.begin(), below.end(), [](const Row* a, const Row* b) { return *a->ratio() < *b->ratio(); });
  std::printf("ratio from %.1f to below %.1f: %zu\n", from, to, below.size());
  for (const Row* row : below) {
    std::printf("  %.2f  %s  %s\n", *row->ratio(), std::string(row->source.text).c_str(), row->chosen.c_str());
  }
}

void print_summary(const std::vector<Row>& rows) {
  std::vector<double> ratios;
  std::size_t timed = 0, kernels = 0, well_chosen = 0, wrong = 0;
  for (const Row& row : rows) {
    kernels += row.chosen.empty() ? 0 : 1;
    wrong += row.wrong ? 1 : 0;
    if (row.ratio()) ratios.push_back(*row.ratio());
    if (!row.timed()) continue;
    ++timed;
    well_chosen += row.better_own() == nullptr ? 1 : 0;
  }
  std::printf("\n%zu problems: %zu with a kernel, %zu timed, %zu against a peer, %zu with a wrong result\n",
              rows.size(), kernels, timed, ratios.size(), wrong);
  if (timed > 0) {
    std::printf("chosen kernel within 5 %% of our best: %zu of %zu (%.0f %%)\n", well_chosen, timed,
                100.0 * static_cast<double>(well_chosen) / static_cast<double>(timed));
  }
  if (ratios.empty()) return;
  print_below(rows, 0.7, 1.0);
  print_below(rows, 0.0, 0.7);
  std::printf("by op: %s\n", means_by(rows, family_of).c_str());
  std::printf("by origin: %s\n", means_by(rows, [](const Row& row) { return std::string(row.source.group); }).c_str());
  std::printf("geometric mean of the ratios (better peer / ours): %.3f over %zu problems, least %.2f\n",
              geometric_mean(ratios), ratios.size(), *std::min_element(ratios.begin(), ratios.end()));
}

nlohmann::ordered_json json_of(const Row& row, const MachinePeak& peak) {
  nlohmann::ordered_json json = {{"problem", row.source.text}, {"origin", row.source.group}, {"kernel", row.chosen}};
  const auto put = [&](const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
  };
  if (row.timed()) {
    const Fraction fraction = fraction_of(row, peak);
    json["ours_us"] = row.ours_us;
    json["fraction_of_peak"] = fraction.value;
    json["peak"] = fraction.arithmetic ? "flops" : "bytes";
  }
  for (const OwnTime& own : row.own) json["own"][own.kernel] = own.us;
  put("torch_us", row.torch_us);
  put("ort_us", row.ort_us);
  put("ratio", row.ratio());
  if (!row.torch_why.empty()) json["torch_why"] = row.torch_why;
  if (!row.ort_why.empty()) json["ort_why"] = row.ort_why;
  if (!row.note.empty()) json["note"] = row.note;
  return json;
}

}  // namespace

std::optional<double> Row::better_peer_us() const {
  if (torch_us && ort_us) return std::min(*torch_us, *ort_us);
  return torch_us ? torch_us : ort_us;
}

std::optional<double> Row::ratio() const {
  const auto peer = better_peer_us();
  return peer && timed() ? std::optional(*peer / ours_us) : std::nullopt;
}

const OwnTime* Row::better_own() const {
  const OwnTime* best = nullptr;
  for (const OwnTime& each : own) {
    if (best == nullptr || each.us < best->us) best = &each;
  }
  return best != nullptr && best->us * counts_as_better < ours_us ? best : nullptr;
}

void print_report(const std::vector<Row>& rows, const Conditions& conditions) {
  std::printf("\n");
  print_table(rows, conditions.peak);
  print_summary(rows);
  std::printf("%d threads; peak %.0f GFLOP/s in f32 (F); a triad moves (B)", conditions.threads,
              conditions.peak.flops * 1e-9);
  for (const auto& each : conditions.peak.bandwidths) {
    std::printf(" %.1f GB/s over %.2f MiB%s", each.bytes * 1e-9, each.data_bytes / (1 << 20),
                &each == &conditions.peak.bandwidths.back() ? "\n" : ",");
  }
  std::printf("PyTorch %s\nONNX Runtime %s\n", conditions.torch.c_str(), conditions.ort.c_str());
}

bool write_json(const std::string& path, const std::vector<Row>& rows, const Conditions& conditions) {
  nlohmann::ordered_json json = {{"threads", conditions.threads},
                                 {"peak_flops", conditions.peak.flops},
                                 {"torch", conditions.torch},
                                 {"ort", conditions.ort}};
  for (const auto& each : conditions.peak.bandwidths) json["peak_bytes"].push_back({each.data_bytes, each.bytes});
  for (const Row& row : rows) json["rows"].push_back(json_of(row, conditions.peak));
  std::ofstream file(path);
  file << json.dump(1) << "\n";
  return file.good();
}

}  // namespace xpuruntime::bench
