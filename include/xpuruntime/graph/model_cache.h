#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xpuruntime {

/// What an engine made of a model, kept on disk.
struct CachedModel {
  std::string key = {};
  std::uint64_t bytes = 0;
  std::int64_t used_at = 0;  // seconds since 1970
};

/// A folder that ExecutionPolicy::cache_dir names, or where it is empty the usual one: XPURUNTIME_MODEL_CACHE, or
/// xpuruntime/models in the user's cache folder; empty where nothing says where.
std::string model_cache_folder(const std::string& cache_dir = {});
/// Why nothing can be kept in a folder, which is made if it is not there; empty: it can.
std::string flaw_of_cache_folder(const std::string& folder);
/// What was used last first.
std::vector<CachedModel> cached_models(const std::string& cache_dir = {});
/// Removes all of them; how many went.
std::size_t clear_cached_models(const std::string& cache_dir = {});

}  // namespace xpuruntime
