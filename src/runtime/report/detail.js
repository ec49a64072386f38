// What is under a row that was opened: the facts of the decision, and every kernel that was looked at.

const order_of_verdicts = {
  chosen: 0,
  passed: 1,
  quarantined: 2,
  refused: 3
};

function fact(name, value, wide) {
  return value === null || value === "" ?
      null :
      make("div", {class: wide ? "wide" : null}, make("dt", {}, name), make("dd", {}, value));
}

function facts_of(row) {
  const sources = {
    lock: "the lock " + data.lock,
    store: "the store",
    here: "decided here and now" + (row.level ? ", level " + row.level : "")
  };
  const precision = row.precision && row.precision[row.direction] + ": " + row.precision.because;
  const environment = data.environments.find((e) => e.id === row.environment);
  return make(
      "dl", {class: "facts"}, fact("Why", row.because, true), row.notes.map((note) => fact("Note", note, true)),
      fact("Says who", sources[row.source]), fact("Precision", precision),
      fact("Plan", row.plan && make("code", {}, row.plan)),
      fact(
          "Without measuring",
          row.default && row.default + (row.gain ? ", " + times_text(row.gain) + " the time" : "")),
      fact("Machine", environment && environment.device),
      fact("Hash of the outputs", row.outputs && make("code", {title: row.outputs}, row.outputs.slice(0, 23) + "…")));
}

function candidate_row(candidate, row, time_scale, memory_scale) {
  const kind = candidate.verdict === "chosen" ? "chosen" : "other";
  const factor = candidate.time_us !== null && row.time_us ? times_text(candidate.time_us / row.time_us) : "";
  const noise =
      candidate.noise_us === null ? null : make("span", {class: "small"}, " ± " + time_text(candidate.noise_us));
  const measured_when = candidate.runs === null ?
      null :
      candidate.runs + " runs, " + date_text(candidate.measured_at) + error_text(candidate.error);
  return make(
      "tr", {},
      make(
          "th", {scope: "row"}, candidate.kernel,
          candidate.plan ? make("div", {class: "code muted"}, candidate.plan) : null),
      make("td", {class: "bars"}, track(candidate.time_us, time_scale, kind)),
      make("td", {class: "number", title: measured_when}, time_text(candidate.time_us), noise),
      make("td", {class: "number"}, factor),
      make("td", {class: "bars"}, track(candidate.workspace_bytes, memory_scale, kind)),
      make("td", {class: "number"}, bytes_text(candidate.workspace_bytes)),
      make("td", {class: "reason"}, tag(candidate.verdict), candidate.verdict === "chosen" ? "" : candidate.reason));
}

function detail_of(row) {
  const sorted = [...row.candidates].sort(
      (a, b) => order_of_verdicts[a.verdict] - order_of_verdicts[b.verdict] ||
          (a.time_us ?? Infinity) - (b.time_us ?? Infinity) || 0);
  const time_scale = scale_of(sorted.map((c) => c.time_us));
  const memory_scale = Math.max(...sorted.map((c) => c.workspace_bytes || 0), 1);
  const heads = [["Kernel"], ["Time", "2"], ["To chosen"], ["Workspace", "2"], ["Verdict"]];
  const table = make(
      "table", {class: "candidates"}, make("caption", {class: "away"}, "Kernels for " + row.problem),
      make(
          "thead", {},
          make(
              "tr", {},
              heads.map(
                  ([name, span]) =>
                      make("th", {scope: "col", colspan: span, class: name === "To chosen" ? "number" : null}, name)))),
      make("tbody", {}, sorted.map((candidate) => candidate_row(candidate, row, time_scale, memory_scale))));
  return [facts_of(row), table];
}
