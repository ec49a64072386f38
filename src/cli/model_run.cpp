#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "cli/model_commands.h"
#include "cli/model_timing.h"
#include "cli/table.h"
#include "core/elements.h"
#include "core/npy.h"

namespace xpuruntime::cli {
namespace {

struct OutputFile {
  std::string path = {};
  std::vector<std::size_t> outputs = {};  // those that it holds
};

/// A name may hold what no file's name should.
std::string file_name(const std::string& name) {
  std::string plain;
  for (const char c : name) {
    const bool fine = (static_cast<unsigned char>(c) & 0x80) == 0 &&
                      (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.');
    plain += fine ? c : '_';
  }
  return plain.empty() || plain[0] == '.' ? "_" + plain : plain;
}

/// Which files will be written; what can be none is refused before the model runs.
std::vector<OutputFile> plan_files(const ModelOutputs& asked, const Session& session) {
  std::vector<OutputFile> files;
  const std::size_t count = session.outputs().size();
  if (!asked.file.empty()) {
    const bool archive = asked.file.ends_with(".npz");
    if (!archive && !asked.file.ends_with(".npy")) {
      fail(ErrorCode::invalid_argument, "xrt", "--out '" + asked.file + "' must end in .npy, or .npz for all outputs");
    }
    if (!archive && count != 1) {
      fail(ErrorCode::invalid_argument, "xrt",
           "the model has " + std::to_string(count) +
               " outputs and a .npy file holds one; name a .npz file, or use --output-dir");
    }
    files.push_back({asked.file});
    for (std::size_t i = 0; i < count; ++i) files.back().outputs.push_back(i);
  }
  if (asked.folder.empty()) return files;
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = file_name(session.outputs()[i].name);
    while (!names.insert(name).second) name += "_";
    files.push_back({asked.folder + "/" + name + ".npy", {i}});
  }
  return files;
}

/// Makes the folder, if it is to be made, before the work.
void check_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (!std::filesystem::is_directory(folder, error)) {
    fail(ErrorCode::io_error, "xrt", "--output-dir '" + folder + "' is no folder and cannot be made one; name another");
  }
}

void write_files(const ModelOutputs& asked, const std::vector<OutputFile>& files, const Session& session,
                 const std::vector<Tensor>& results) {
  for (const OutputFile& file : files) {
    const JsonSource source{"xrt", "'" + file.path + "' ", "array"};
    std::vector<std::pair<std::string, Tensor>> arrays;
    for (const std::size_t i : file.outputs) arrays.emplace_back(session.outputs()[i].name, results[i]);
    const bool archive = file.path == asked.file && file.path.ends_with(".npz");
    write_file_atomically(file.path, archive ? npz_bytes(arrays) : npy_bytes(arrays.front().second), source);
  }
}

/// What a person wants to see of an output.
struct Summary {
  double min = INFINITY;
  double max = -INFINITY;
  double mean = 0;
  std::int64_t not_finite = 0;
};

Summary summary_of(const Tensor& tensor) {
  Summary found;
  const std::int64_t count = element_count(tensor.spec());
  const LoadElement load = loader_of(tensor.dtype());
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = load(tensor.as<const void>(), i);
    if (!std::isfinite(value)) {
      ++found.not_finite;
      continue;
    }
    found.min = std::min(found.min, value);
    found.max = std::max(found.max, value);
    found.mean += value;
  }
  found.mean /= static_cast<double>(std::max<std::int64_t>(count - found.not_finite, 1));
  return found;
}

struct ModelRun {
  OpenedModel opened;
  ModelTimes times = {};
  std::vector<Tensor> results = {};  // contiguous, on the CPU
  std::vector<OutputFile> files = {};
};

std::string as_text(const ModelRun& run, const ModelRequest& request, const Painter& paint) {
  const ModelTimes& times = run.times;
  std::string text = paint(Colour::bold, printable(request.path)) + " on " + to_string(run.opened.device) + "\n";
  text += "  first run " + duration_of_us(times.first_us) + ", then median " + duration_of_us(times.median_us()) +
          ", min " + duration_of_us(times.min_us()) + " of " + std::to_string(times.runs_us.size()) + "\n";
  text += "  " + engine_text(run.opened.session.record()) + "\n";
  Table table({"output", "is", "min", "mean", "max", "note"});
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    const Summary summary = summary_of(run.results[i]);
    const bool any = summary.min <= summary.max;
    table.add({run.opened.session.outputs()[i].name, to_string(run.results[i].spec()),
               any ? figure("%.6g", summary.min) : "-", any ? figure("%.6g", summary.mean) : "-",
               any ? figure("%.6g", summary.max) : "-",
               summary.not_finite == 0 ? "" : std::to_string(summary.not_finite) + " NaN or infinite"});
  }
  text += "\n" + table.to_text(paint);
  for (const OutputFile& file : run.files) text += "written: " + printable(file.path) + "\n";
  return text;
}

std::string as_json(const ModelRun& run, const ModelRequest& request) {
  const ModelTimes& times = run.times;
  Json json = {{"version", 1}, {"model", request.path}, {"device", to_string(run.opened.device)}};
  json["engine"] = engine_json(run.opened.session.record());
  json["time"] = {{"runs", times.runs_us.size()},
                  {"first_us", times.first_us},
                  {"median_us", times.median_us()},
                  {"min_us", times.min_us()}};
  json["inputs"] = Json::array();
  for (std::size_t i = 0; i < run.opened.inputs.size(); ++i) {
    json["inputs"].push_back(
        {{"name", run.opened.session.inputs()[i].name}, {"is", to_string(run.opened.inputs[i].spec())}});
  }
  json["outputs"] = Json::array();
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    const Summary summary = summary_of(run.results[i]);
    const bool any = summary.min <= summary.max;
    json["outputs"].push_back({{"name", run.opened.session.outputs()[i].name},
                               {"is", to_string(run.results[i].spec())},
                               {"min", any ? Json(summary.min) : Json()},
                               {"mean", any ? Json(summary.mean) : Json()},
                               {"max", any ? Json(summary.max) : Json()},
                               {"not_finite", summary.not_finite}});
  }
  json["files"] = Json::array();
  for (const OutputFile& file : run.files) json["files"].push_back(file.path);
  return dump_json(json, 2) + "\n";
}

}  // namespace

Answer run_model(Context& context, const ModelRequest& request, const ModelOutputs& outputs, int repeat) {
  ModelRun run{open_model(context, request)};
  run.files = plan_files(outputs, run.opened.session);
  const auto timed = [&] {
    return timed_run(context, run.opened.session, run.opened.inputs, run.opened.device, run.results);
  };
  run.times.first_us = timed();
  for (int i = 0; i < repeat; ++i) run.times.runs_us.push_back(timed());
  for (Tensor& result : run.results) result = context.runtime().devices().copy_to(result, Device{});
  check_folder(outputs.folder);
  write_files(outputs, run.files, run.opened.session, run.results);
  return {context.json ? as_json(run, request) : as_text(run, request, context.paint)};
}

}  // namespace xpuruntime::cli
