#include "graph/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/printable.h"
#include "graph/onnx/file_identity.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::onnx {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_external(const std::string& why) { fail(ErrorCode::corrupt_data, reader, why); }

std::size_t parse_size(std::string_view key, std::string_view text) {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size()) {
    refuse_external("external data has the " + std::string(key) + " '" + shown(text) +
                    "', which is no number of bytes; export the model again");
  }
  return size;
}

[[noreturn]] void refuse_location(const std::string& location, const std::string& why) {
  refuse_external("external data at '" + shown(location) + "' " + why +
                  "; put the file into the model's folder and name it by a relative path");
}

void check_location(const std::string& location) {
  const fs::path path(location);
  if (location.empty()) refuse_location(location, "has no location");
  if (location.find('\0') != location.npos) refuse_location(location, "has a NUL in its location");
  if (path.is_absolute()) refuse_location(location, "has an absolute path");
  if (std::find(path.begin(), path.end(), "..") != path.end()) refuse_location(location, "has '..' in its path");
}

fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path out = fs::canonical(path, error);
  if (!error) return out;
  fail(ErrorCode::io_error, reader,
       "external data '" + shown(path.string()) + "' cannot be read: " + error.message() +
           "; copy the file into the model's folder");
}

/// The file behind all links, which may not lead out of the folder.
std::string path_inside(const std::string& folder, const std::string& location) {
  check_location(location);
  const fs::path root = resolved(folder);
  const fs::path path = resolved(fs::path(folder) / location);
  const auto parted = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (parted.first != root.end()) refuse_location(location, "is a link that leads out of the model's folder");
  return path.string();
}

}  // namespace

void ExternalPlace::set(std::string_view key, std::string_view value) {
  if (key == "location") location = value;
  if (key == "offset") offset = parse_size(key, value);
  if (key == "length") length = parse_size(key, value);
}

ExternalData::File& ExternalData::file_of(const std::string& location) {
  std::shared_ptr<File>& named = by_location_[location];
  if (named != nullptr) return *named;
  if (folder_.empty()) {
    fail(ErrorCode::invalid_argument, reader,
         "the model has external data at '" + shown(location) + "'; pass the folder that has it");
  }
  const std::string path = path_inside(folder_, location);
  std::shared_ptr<File>& file = by_path_[path];
  if (file == nullptr) {
    files_.try_emplace(path, identity_of(path).text);
    SharedBytes data = map_file(path);
    data.lasts = true;  // as a whole: constants may share their bytes
    file = std::make_shared<File>(File{std::move(data)});
  }
  named = file;
  return *file;
}

SharedBytes ExternalData::find(const ExternalPlace& place, std::size_t size) {
  const SharedBytes& data = file_of(place.location).data;
  if (place.length.value_or(size) != size) {
    refuse_external("external data at '" + shown(place.location) + "' has " + std::to_string(*place.length) +
                    " bytes where its dims need " + std::to_string(size) + "; export the model again");
  }
  if (place.offset > data.bytes.size() || size > data.bytes.size() - place.offset) {
    refuse_external("external data at '" + shown(place.location) + "' needs " + std::to_string(size) +
                    " bytes from byte " + std::to_string(place.offset) + " on, and the file has " +
                    std::to_string(data.bytes.size()) + "; copy the whole file, or export the model again");
  }
  return {data.bytes.subspan(place.offset, size), data.owner};
}

void ExternalData::count_work(const ExternalPlace& place, std::size_t size) {
  constexpr std::size_t most_rounds = 4;  // tied weights are honest
  File& file = file_of(place.location);
  file.work += size;
  if (file.work / most_rounds <= file.data.bytes.size()) return;
  refuse_external("external data at '" + shown(place.location) +
                  "' is used many times over by constants that must be copied or checked; export the model again, "
                  "with each constant stored once and aligned");
}

void ExternalData::note(const std::string& location) {
  if (folder_.empty()) return;
  const std::string path = path_inside(folder_, location);
  files_.try_emplace(path, identity_of(path).text);
}

}  // namespace xpuruntime::onnx
