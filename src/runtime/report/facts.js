// What follows from the data: which alternative is next, how much the choice gains, what changed.

const data = JSON.parse(at("data").textContent);

function alternatives_of(row) {
  return row.candidates.filter((c) => c.verdict === "passed" && c.time_us !== null)
      .sort((a, b) => a.time_us - b.time_us);
}

const chosen_of = (row) => row.candidates.find((c) => c.verdict === "chosen");

/// The time of a kernel on a row's problem, its fastest plan's where several were measured.
function time_of(row, kernel) {
  const times = row.candidates.filter((c) => c.kernel === kernel && c.time_us !== null).map((c) => c.time_us);
  return times.length ? Math.min(...times) : null;
}

/// A difference within the noise of both is none.
function is_slower(row) {
  if (row.time_us === null || !row.next) return false;
  const noise = (chosen_of(row).noise_us || 0) + (row.next.noise_us || 0);
  return row.time_us - row.next.time_us > Math.max(noise, 0.02 * row.time_us);
}

function gain_of(row) {
  if (row.time_us === null || row.default === null || row.default === row.kernel) return null;
  const before = time_of(row, row.default);
  return before === null ? null : before / row.time_us;
}

function words_of(row) {
  const parts =
      [row.problem, row.op, row.kernel, row.plan, row.because, row.dtype, row.category, row.change, ...row.notes];
  for (const c of row.candidates) parts.push(c.kernel, c.verdict, c.reason);
  return parts.filter(Boolean).join("\n").toLowerCase();
}

function complete(row, changed) {
  row.next = alternatives_of(row)[0] || null;
  row.margin = row.time_us !== null && row.next ? row.next.time_us / row.time_us : null;
  row.slower = is_slower(row);
  row.gain = gain_of(row);
  row.refused = row.candidates.filter((c) => c.verdict === "refused" || c.verdict === "quarantined");
  row.change = changed.has(row.problem) ? changed.get(row.problem).kind : null;
  row.words = words_of(row);
  row.opened = false;
}

/// What changed, by problem: its kind, and the fields that differ.
function changes_by_problem() {
  const found = new Map();
  for (const {problem, field, before, after} of data.changes) {
    const kind = field !== "entry" ? "changed" : before === "" ? "new" : "gone";
    if (!found.has(problem)) found.set(problem, {problem, kind, fields: []});
    found.get(problem).fields.push({field, before, after});
  }
  const order = ["changed", "gone", "new"];
  return new Map([...found].sort(([, a], [, b]) => order.indexOf(a.kind) - order.indexOf(b.kind)));
}

const changed_problems = changes_by_problem();
for (const row of data.decisions) complete(row, changed_problems);

const rows_all = data.decisions;
const count_changes = (kind) => [...changed_problems.values()].filter((change) => change.kind === kind).length;
const measured = rows_all.filter((row) => row.time_us !== null);
const total = (rows) => rows.reduce((sum, row) => sum + (row.time_us || 0), 0);

function by_op() {
  const groups = new Map();
  for (const row of rows_all) {
    if (!groups.has(row.op)) groups.set(row.op, []);
    groups.get(row.op).push(row);
  }
  return [...groups]
      .map(([op, rows]) => ({op, rows, time: total(rows)}))
      .sort((a, b) => b.time - a.time || b.rows.length - a.rows.length);
}
