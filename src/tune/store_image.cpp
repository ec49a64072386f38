#include "tune/store_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tune/sqlite.h"
#include "tune/store_place.h"

namespace xpuruntime {
namespace {

// ---- the log, as https://www.sqlite.org/fileformat2.html describes it ----

constexpr std::size_t log_header_bytes = 32, frame_header_bytes = 24;

std::uint32_t big_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

/// Of all that was written so far; words are in the order of bytes of the machine that wrote them.
struct LogChecksum {
  bool big = false;
  std::uint32_t first = 0, second = 0;

  void add(std::string_view bytes) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first += word(bytes, at) + second;
      second += word(bytes, at + 4) + first;
    }
  }
  bool is(std::string_view bytes, std::size_t at) const {
    return big_endian(bytes, at) == first && big_endian(bytes, at + 4) == second;
  }

 private:
  std::uint32_t word(std::string_view bytes, std::size_t at) const {
    const std::uint32_t value = big_endian(bytes, at);
    return big ? value : __builtin_bswap32(value);
  }
};

// ---- reading ----

class LogFile {
 public:
  explicit LogFile(const Database& store) : store_(store), path_(store.path() + "-wal") {
    descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor_ < 0 && errno != ENOENT) refuse(std::strerror(errno));
  }
  ~LogFile() {
    if (descriptor_ >= 0) close(descriptor_);  // no lock of SQLite's is on it that this would drop
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Nothing if there is none.
  std::string bytes() const {
    if (descriptor_ < 0) return {};
    std::string read(checked_size(), '\0');
    for (std::size_t at = 0; at < read.size();) {
      const ssize_t count = pread(descriptor_, &read[at], read.size() - at, static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) refuse(std::strerror(errno));
      if (count == 0) read.resize(at);  // it was cut short meanwhile
      at += static_cast<std::size_t>(count);
    }
    return read;
  }

 private:
  /// Whoever can write the log chooses what the store says. Looked at each time: it may be newer than the opening.
  std::size_t checked_size() const {
    constexpr off_t most_bytes = off_t{1} << 29;
    struct stat found = {};
    if (fstat(descriptor_, &found) != 0) refuse(std::strerror(errno));
    if (!S_ISREG(found.st_mode)) refuse("it is no regular file");
    check_owner_and_mode(found, "the file", path_);
    if (found.st_size > most_bytes) refuse("it is larger than " + std::to_string(most_bytes) + " bytes");
    return static_cast<std::size_t>(found.st_size);
  }
  [[noreturn]] void refuse(const std::string& reason) const {
    store_.refuse(ErrorCode::io_error, "its log '" + path_ + "' cannot be read: " + reason +
                                           "; have the store's owner open it to write, which empties the log");
  }

  const Database& store_;
  std::string path_;
  int descriptor_ = -1;
};

std::string read_log(const Database& file) { return LogFile(file).bytes(); }

}  // namespace

void apply_log(std::string& file, std::string_view log) {
  constexpr std::uint32_t magic = 0x377f0682;
  if (log.size() < log_header_bytes || (big_endian(log, 0) & ~1u) != magic) return;
  const std::size_t page = big_endian(log, 8);
  if (page < 512 || page > 65536 || (page & (page - 1)) != 0) return;
  LogChecksum sum{(big_endian(log, 0) & 1) != 0};
  sum.add(log.substr(0, 24));
  if (!sum.is(log, 24)) return;
  std::vector<std::size_t> open;  // frames that were not committed yet
  for (std::size_t at = log_header_bytes; at + frame_header_bytes + page <= log.size();
       at += frame_header_bytes + page) {
    const std::string_view frame = log.substr(at, frame_header_bytes + page);
    if (frame.substr(8, 8) != log.substr(16, 8)) return;  // of an earlier log in the same file
    sum.add(frame.substr(0, 8));
    sum.add(frame.substr(frame_header_bytes));
    if (!sum.is(frame, 16) || big_endian(frame, 0) == 0) return;
    open.push_back(at);
    const std::size_t pages = big_endian(frame, 4);
    if (pages == 0) continue;
    file.resize(pages * page);
    for (const std::size_t from : open) {
      const std::size_t to = (big_endian(log, from) - std::size_t{1}) * page;
      if (to < file.size()) file.replace(to, page, log.substr(from + frame_header_bytes, page));
    }
    open.clear();
  }
}

// Its owner first writes the log, then moves it into the file, then empties it. A log that stayed as it was has all
// that was being moved. Where it was empty throughout, no more than one look at the file can have met a whole such
// round: then the two differ.
std::string read_store_image(const Database& file) {
  constexpr auto all = std::numeric_limits<std::int64_t>::max();
  const std::string log = read_log(file);
  std::string bytes = file.first_bytes(all);
  if (read_log(file) != log || file.first_bytes(all) != bytes || read_log(file) != log) file.refuse_busy();
  apply_log(bytes, log);
  return bytes;
}

}  // namespace xpuruntime
