#include "graph/session/model_cache.h"

#include <filesystem>
#include <system_error>

#include "cache/disk_cache.h"
#include "core/json_text.h"
#include "core/printable.h"
#include "core/sha256.h"
#include "core/xxh64.h"
#include "graph/session/constants.h"
#include "graph/session/engine_choice.h"
#include "graph/session/file_content.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/model_cache.h"
#include "xpuruntime/tune/environment.h"

namespace xpuruntime {
namespace {

/// What of the policy changes what is compiled.
std::string what_is_compiled(ExecutionPolicy policy) {
  const ExecutionPolicy usual;
  policy.allow_fallback.reset();
  policy.cache_dir = usual.cache_dir;
  policy.compile_timeout_ms = usual.compile_timeout_ms;
  policy.execution_timeout_ms = usual.execution_timeout_ms;
  policy.engine = usual.engine;
  return policy.to_json();
}

DiskCache cache_in(const std::string& cache_dir) {
  constexpr std::uint64_t most = std::uint64_t{4} << 30;
  return {model_cache_folder(cache_dir), most};
}

/// What files have, so that it need not be computed at each start.
DiskCache contents_in(const std::string& cache_dir) {
  constexpr std::uint64_t most = std::uint64_t{1} << 20;
  const std::string folder = model_cache_folder(cache_dir);
  return {folder.empty() ? folder : folder + "/files", most};
}

std::string key_of(const Engine& engine, const EngineRequest& request, const DeviceManager& devices) {
  const Device device{request.target, 0};
  const Json key = {{"content", content_of_model(*request.model, contents_in(request.execution.cache_dir))},
                    {"engine", engine.name()},
                    {"version", engine.version()},
                    {"library", XRT_VERSION},
                    {"target", to_string(request.target)},
                    {"device", devices.has(device) ? environment_of(devices.profile(device)).to_json() : ""},
                    {"threads", request.threads},
                    {"policy", what_is_compiled(request.execution)}};
  return Sha256().add(dump_json(key)).finish();
}

}  // namespace

std::string content_of_model(const Model& model, const DiskCache& kept) {
  Sha256 sum;
  sum.add(structure_of_model(model));
  // What came from files is told by those; a checksum is enough for what the program has made of it.
  const bool has_file = !model.path.empty();
  for_each_constant(model.graph, [&](const std::string& name, const Tensor& tensor) {
    const std::span bytes(tensor.as<const std::byte>(), tensor.span());
    sum.add(name).add(to_string(tensor.spec()));
    if (has_file) {
      sum.add(std::to_string(xxh64(bytes)) + ",");
    } else {
      sum.add(bytes);
    }
  });
  if (has_file) sum.add(content_of_file(model.path, kept));
  for (const std::string& path : model.data_files) sum.add(content_of_file(path, kept));
  return sum.finish();
}

std::string model_cache_folder(const std::string& cache_dir) {
  return cache_dir.empty() ? DiskCache::default_folder("XPURUNTIME_MODEL_CACHE", "models") : cache_dir;
}

std::string flaw_of_cache_folder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return {};
  const bool is_other = std::filesystem::exists(folder, error);
  if (!is_other) std::filesystem::create_directories(folder, error);
  std::error_code unread;
  if (std::filesystem::is_directory(folder, unread)) return {};
  return "'" + printable(folder) + "' " + (is_other ? "is no folder" : "cannot be made: " + error.message()) +
         "; name another folder, or set cache_compiled to false";
}

std::vector<CachedModel> cached_models(const std::string& cache_dir) {
  std::vector<CachedModel> models;
  for (const DiskCache::Entry& entry : cache_in(cache_dir).entries()) {
    models.push_back({entry.key, entry.bytes, entry.used});
  }
  return models;
}

std::size_t clear_cached_models(const std::string& cache_dir) {
  contents_in(cache_dir).clear();
  return cache_in(cache_dir).clear();
}

namespace {

std::unique_ptr<CompiledModel> compiled_by(const Engine& engine, const EngineRequest& request) {
  const bool reads_files = engine.name() != "native";
  if (reads_files) check_unchanged(*request.model);
  std::unique_ptr<CompiledModel> compiled = engine.compile(request);
  if (reads_files) check_unchanged(*request.model);  // nor while it did
  if (compiled == nullptr) {
    fail(ErrorCode::device_error, "Session",
         "engine " + engine.name() + " compiled the model to nothing; its compile must return a model or throw");
  }
  return compiled;
}

}  // namespace

std::unique_ptr<CompiledModel> compile_with_cache(const Engine& engine, EngineRequest request,
                                                  const DeviceManager& devices) {
  if (!request.execution.cache_compiled || !engine.caches()) return compiled_by(engine, request);
  const DiskCache cache = cache_in(request.execution.cache_dir);
  const std::string key = key_of(engine, request, devices);
  if (auto kept = cache.get(key); kept && !kept->empty()) {
    request.cached = std::make_shared<const std::string>(std::move(*kept));
    try {
      return compiled_by(engine, request);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::timeout) throw;
      cache.remove(key);  // the engine does not take it any more
      request.cached.reset();
    }
  }
  std::unique_ptr<CompiledModel> compiled = compiled_by(engine, request);
  if (const std::string bytes = compiled->to_cache(); !bytes.empty()) cache.put(key, bytes);
  return compiled;
}

}  // namespace xpuruntime
