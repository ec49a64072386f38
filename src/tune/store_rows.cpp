#include "tune/store_rows.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tune/checksum.h"

namespace xpuruntime {
namespace {

std::uint64_t checksum_of(const EnvironmentRow& row) {
  return Checksum().add(std::string_view(row.json)).add(row.entries).add(row.digest).value();
}

std::uint64_t checksum_of(const EnvironmentRow& row, std::string_view problem, std::int64_t measured_at,
                          std::string_view body) {
  return Checksum(row.seed).add(problem).add(measured_at).add(body).value();
}

void seed(EnvironmentRow& row) { row.seed = Checksum().add(std::string_view(row.json)).value(); }

std::int64_t as_integer(std::uint64_t word) { return static_cast<std::int64_t>(word); }

}  // namespace

StoreRows::StoreRows(const Database& database)
    : database_(database),
      select_(database, "SELECT measured_at, body, checksum FROM entry WHERE environment = ? AND problem = ?"),
      insert_(database,
              "INSERT INTO entry (environment, problem, measured_at, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5) "
              "ON CONFLICT (environment, problem) DO UPDATE SET measured_at = ?3, body = ?4, checksum = ?5"),
      remove_(database, "DELETE FROM entry WHERE environment = ? AND problem = ?") {
  read_environments();
}

void StoreRows::read_environments() {
  std::uint64_t digest = 0;
  Statement select(database_, "SELECT id, json, entries, digest, checksum FROM environment ORDER BY id");
  while (select.step()) {
    EnvironmentRow row = {select.integer(0), std::string(select.text(1)), select.integer(2), select.word(3)};
    if (checksum_of(row) != select.word(4)) database_.refuse_damaged("an environment is not what was written");
    digest += select.word(4);
    seed(row);
    environments_.push_back(std::move(row));
  }
  Statement totals(database_, "SELECT environments, digest FROM totals WHERE id = 1");
  if (!totals.step() || totals.integer(0) != static_cast<std::int64_t>(environments_.size()) ||
      totals.word(1) != digest) {
    database_.refuse_damaged("environments are missing, or the sums over them");
  }
}

EnvironmentRow& StoreRows::environment(std::string_view json) {
  const auto found = std::find_if(environments_.begin(), environments_.end(),
                                  [json](const EnvironmentRow& row) { return row.json == json; });
  if (found != environments_.end()) return *found;
  Statement insert(database_, "INSERT INTO environment (json, entries, digest, checksum) VALUES (?, 0, 0, 0)");
  insert.bind(json).step();
  EnvironmentRow& row = environments_.emplace_back();
  row.id = sqlite3_last_insert_rowid(database_.handle());
  row.json = json;
  row.changed = true;
  seed(row);
  return row;
}

ProblemEntry StoreRows::parse(std::string_view problem, std::string_view body) const {
  try {
    return entry_from_json(problem, body);
  } catch (const Error& error) {
    database_.refuse_damaged("the entry of '" + shown(problem) + "': " + error.what());
  }
}

ProblemEntry StoreRows::entry(const EnvironmentRow& environment, std::string_view problem) {
  select_.restart().bind(environment.id).bind(problem);
  if (!select_.step()) return {};
  if (checksum_of(environment, problem, select_.integer(0), select_.text(1)) != select_.word(2)) {
    database_.refuse_damaged("the entry of '" + shown(problem) + "' is not what was written");
  }
  ProblemEntry entry = parse(problem, select_.text(1));
  select_.restart();
  return entry;
}

std::optional<std::uint64_t> StoreRows::stored_checksum(const EnvironmentRow& environment, std::string_view problem) {
  std::optional<std::uint64_t> checksum;
  if (select_.restart().bind(environment.id).bind(problem).step()) checksum = select_.word(2);
  select_.restart();
  return checksum;
}

void StoreRows::write(EnvironmentRow& environment, std::string_view problem, const ProblemEntry& entry) {
  if (const auto old = stored_checksum(environment, problem)) {
    environment.digest -= *old;
    --environment.entries;
  }
  environment.changed = true;
  if (entry.empty()) {
    remove_.restart().bind(environment.id).bind(problem).step();
    return;
  }
  const std::string body = to_json_line(entry);
  const std::uint64_t checksum = checksum_of(environment, problem, entry.measured_at(), body);
  environment.digest += checksum;
  ++environment.entries;
  insert_.restart().bind(environment.id).bind(problem).bind(entry.measured_at()).bind(std::string_view(body));
  insert_.bind(as_integer(checksum)).step();
  insert_.restart();
}

void StoreRows::save() {
  Statement update(database_, "UPDATE environment SET entries = ?, digest = ?, checksum = ? WHERE id = ?");
  Statement remove(database_, "DELETE FROM environment WHERE id = ?");
  std::uint64_t digest = 0;
  std::int64_t count = 0;
  for (const EnvironmentRow& row : environments_) {
    const std::uint64_t checksum = checksum_of(row);
    if (row.entries == 0) {
      remove.restart().bind(row.id).step();
      continue;
    }
    if (row.changed) {
      update.restart().bind(row.entries).bind(as_integer(row.digest)).bind(as_integer(checksum)).bind(row.id).step();
    }
    digest += checksum;
    ++count;
  }
  Statement totals(database_, "UPDATE totals SET environments = ?, digest = ? WHERE id = 1");
  totals.bind(count).bind(as_integer(digest)).step();
}

void StoreRows::check_file() const {
  Statement check(database_, "PRAGMA integrity_check(1)");
  if (!check.step() || check.text(0) != "ok") database_.refuse_damaged(std::string(check.text(0)));
}

void StoreRows::visit(const Visit& visit) {
  struct Seen {
    EnvironmentRow* row = nullptr;
    std::int64_t entries = 0;
    std::uint64_t digest = 0;
  };
  std::unordered_map<std::int64_t, Seen> seen;
  for (EnvironmentRow& row : environments_) seen[row.id].row = &row;
  Statement select(database_, "SELECT environment, problem, measured_at, body, checksum FROM entry");
  while (select.step()) {
    const auto found = seen.find(select.integer(0));
    if (found == seen.end()) database_.refuse_damaged("an entry has no environment");
    Seen& of = found->second;
    const std::string_view problem = select.text(1), body = select.text(3);
    if (checksum_of(*of.row, problem, select.integer(2), body) != select.word(4)) {
      database_.refuse_damaged("the entry of '" + shown(problem) + "' is not what was written");
    }
    ++of.entries;
    of.digest += select.word(4);
    visit(*of.row, problem, select.integer(2), body);
  }
  for (const auto& [id, of] : seen) {
    if (of.entries != of.row->entries || of.digest != of.row->digest) {
      database_.refuse_damaged("entries are missing");
    }
  }
}

}  // namespace xpuruntime
