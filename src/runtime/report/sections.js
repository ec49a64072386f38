// The sections around the table: the answer in a sentence and in figures, what to look at, what changed, ops, machines.

function title_text() {
  if (data.title) return data.title;
  if (data.lock) return data.lock;
  if (data.models && data.models.length) return data.models.map((model) => model.model).join(", ");
  if (rows_all.some((row) => row.source === "store")) return data.store;
  return "Decisions on this machine";
}

/// "6 changed, 2 new, 1 gone"
function changes_text() {
  const parts = ["changed", "new", "gone"].map((kind) => [count_changes(kind), kind]).filter(([count]) => count > 0);
  return parts.length ? parts.map((part) => part.join(" ")).join(", ") : "nothing changed";
}

function lead_parts() {
  if (!rows_all.length) return ["There is no decision in it."];
  const parts =
      [make("b", {}, count_text(rows_all.length, "decision")), " for " + count_text(by_op().length, "op") + ". "];
  const compared = measured.filter((row) => row.next);
  const slower = compared.filter((row) => row.slower).length;
  if (compared.length) {
    const fastest = compared.filter((row) => row.time_us <= row.next.time_us).length;
    const equal = compared.length - slower - fastest;
    parts.push(
        "The chosen kernel is the fastest measured in ", make("b", {}, fastest + " of " + compared.length),
        equal ? ", and as good as the fastest, within 2 % or the noise, in " + equal + " more. " : ". ");
  } else {
    parts.push(
        "No alternative was measured: ", make("code", {}, "xrt tune"), " measures them, and times are then shown here. ");
  }
  if (data.against !== null) parts.push("Since " + data.against + " ", make("b", {}, changes_text()), ".");
  return parts;
}

function tile(name, figure, small) {
  return make(
      "div", {}, make("dt", {}, name), make("dd", {class: "figure"}, figure), make("dd", {class: "small"}, small));
}

/// What the tuned choices take against what would have run without measuring.
function gain_tile() {
  const raced = measured.filter((row) => row.default !== null && time_of(row, row.default) !== null);
  if (!raced.length) return null;
  const before = raced.reduce((sum, row) => sum + time_of(row, row.default), 0);
  const better = raced.filter((row) => row.gain !== null && row.gain > 1.02).length;
  return tile(
      "Against the defaults", times_text(before / total(raced)),
      "as fast; " + better + " of " + raced.length + " are faster");
}

function worth_tile() {
  const by_verdict = {same: 0, revalidate: 0, refuse: 0};
  const verdicts = new Map(data.environments.map((e) => [e.id, e.verdict]));
  for (const row of rows_all) by_verdict[verdicts.get(row.environment)] += 1;
  const small = by_verdict.same === rows_all.length ?
      "all made on a machine like this" :
      by_verdict.revalidate + " to revalidate, " + by_verdict.refuse + " of other devices";
  return tile("Good on this machine", by_verdict.same + " of " + rows_all.length, small);
}

function show_head() {
  document.title = title_text() + " · kernel report";
  at("title").textContent = title_text();
  show("lead", lead_parts());
  const memory = rows_all.reduce((most, row) => Math.max(most, row.workspace_bytes), 0);
  const tiles = [
    measured.length ? tile(
                          "Time of the choices", time_text(total(measured)),
                          "one run of each; " + measured.length + " of " + rows_all.length + " measured") :
                      null,
    gain_tile(),
    tile("Most workspace", bytes_text(memory), "by one decision"),
    data.against !== null ? tile(
                                "Changed", String(count_changes("changed")),
                                count_changes("new") + " new, " + count_changes("gone") + " gone") :
                            null,
    worth_tile(),
  ];
  show("tiles", tiles.filter(Boolean));
}

function look_item(row, ...text) {
  const [op, rest] = split_problem(row.problem);
  const link =
      make("button", {class: "link code", type: "button", onclick: () => reveal(row)}, make("b", {}, op), rest);
  return make("li", {}, link, " ", text);
}

function show_look() {
  const items = [];
  for (const row of rows_all) {
    if (row.kernel === null)
      items.push(look_item(row, "has no kernel: " + row.because));
    else if (row.slower) {
      const factor = times_text(row.time_us / row.next.time_us);
      items.push(look_item(
          row,
          row.kernel + " takes " + time_text(row.time_us) + ", " + factor + " what " + row.next.kernel + " takes (" +
              time_text(row.next.time_us) + ")"));
    }
    for (const c of row.candidates) {
      if (c.verdict === "quarantined") items.push(look_item(row, c.kernel + " is in quarantine: " + c.reason));
    }
    for (const note of row.notes) items.push(look_item(row, note));
  }
  if (!items.length) return;
  const first = items.slice(0, 6);
  const rest = items.slice(6);
  if (rest.length) {
    const more = make(
        "button", {type: "button", onclick: () => more.parentNode.replaceWith(...rest)},
        "Show " + rest.length + " more");
    first.push(make("li", {}, more));
  }
  show("look-list", first);
  at("look").hidden = false;
}

function change_times(change) {
  const row = rows_all.find((r) => r.problem === change.problem);
  const kernel = change.fields.find(({field}) => field === "kernel");
  if (!row || !kernel) return null;
  const [before, after] = [time_of(row, kernel.before), time_of(row, kernel.after)];
  if (before === null || after === null) return null;
  const words = after > before ? times_text(after / before) + " slower" : times_text(before / after) + " faster";
  return [
    time_text(before) + " → " + time_text(after), make("div", {class: after > before ? "worse" : "better"}, words)
  ];
}

/// One side of a change: the kernel, and under it what else differs.
function change_side(change, side) {
  return change.fields.map((difference) => {
    const {field} = difference;
    const text = difference[side];
    if (field === "kernel" || field === "entry") return make("div", {class: "name"}, text === "" ? "–" : text);
    if (field === "plan") return make("div", {class: "code muted"}, text === "" ? "no plan" : text);
    if (field === "workspace_bytes") return make("div", {class: "small"}, bytes_text(Number(text)));
    const shown = field === "outputs" ? text.replace("sha256:", "").slice(0, 16) : text || "none";
    return make("div", {class: "small", title: text}, field + " " + shown);
  });
}

function change_row(change) {
  const [op, rest] = split_problem(change.problem);
  return make(
      "tr", {}, make("td", {}, tag(change.kind)), make("th", {scope: "row", class: "code"}, make("b", {}, op), rest),
      make("td", {}, change_side(change, "before")), make("td", {class: "after"}, change_side(change, "after")),
      make("td", {class: "number"}, change_times(change)));
}

function show_changes() {
  if (data.against === null) return;
  at("changes").hidden = false;
  const now = data.lock || "what would be decided here and now";
  at("changes-about").textContent = data.changes.length ?
      "From " + data.against + " to " + now + "." :
      "Nothing differs between " + data.against + " and " + now + ".";
  at("changes-table").hidden = !data.changes.length;
  show("changes-rows", [...changed_problems.values()].map(change_row));
}

function op_item(group, most) {
  const kernels = new Map();
  for (const row of group.rows) kernels.set(row.kernel, (kernels.get(row.kernel) || 0) + 1);
  const list = [...kernels]
                   .map(([name, count]) => (name === null ? "no kernel" : name) + (count > 1 ? " × " + count : ""))
                   .join(", ");
  const name = make(
      "button",
      {class: "link name", type: "button", title: "Show these decisions alone", onclick: () => pick_op(group.op)},
      group.op);
  const bar = most ?
      [track(group.time, most, "chosen"), make("span", {class: "figure"}, group.time ? time_text(group.time) : "")] :
      [];
  return make(
      "li", {}, name, bar, make("span", {class: "kernels"}, count_text(group.rows.length, "problem") + ": " + list));
}

function show_ops() {
  const ops = by_op();
  const most = Math.max(...ops.map((group) => group.time), 0);
  at("ops-about").textContent =
      most ? "Time of the chosen kernels, one run of each problem. Ops are ordered by their time." : "";
  at("ops-list").classList.toggle("short", most === 0);
  show("ops-list", ops.map((group) => op_item(group, most)));
}

/// A table whose columns are [name, class of its cells, the cell of an item].
function plain_table(columns, items) {
  const cells = (item) => columns.map(([, kind, cell]) => make("td", {class: kind}, cell(item)));
  return make(
      "div", {class: "scroll"},
      make(
          "table", {class: "plain"},
          make(
              "thead", {},
              make("tr", {}, columns.map(([name, kind]) => make("th", {scope: "col", class: kind === "number" ? kind : null}, name)))),
          make("tbody", {}, items.map((item) => make("tr", {}, cells(item))))));
}

const engine_columns = [
  ["Engine", "name", (e) => e.engine + (e.runs_model ? " (runs the model)" : "")],
  ["Version", null, (e) => e.version],
  ["First run", "number", (e) => time_text(e.first_us)],
  ["Median", "number", (e) => time_text(e.median_us)],
  ["Least", "number", (e) => time_text(e.min_us)],
  ["Note", null, (e) => e.reason || count_text(e.runs, "run")],
];

function node_columns(sum) {
  return [
    ["Node", "name", (n) => n.node],
    ["Operator", null, (n) => n.operator],
    ["Problem", "code", (n) => n.problem || ""],
    ["Kernel", "name", (n) => n.kernel || (n.kind === "fused" ? "part of " + n.fused_into : n.kind)],
    ["Time", "number", (n) => time_text(n.time_us) + (n.count > 1 ? " for " + n.count : "")],
    ["Share", "number", (n) => (n.time_us === null || !sum ? "" : ((100 * n.time_us) / sum).toFixed(1) + " %")],
    ["Why", "small", (n) => n.because || ""],
  ];
}

function model_parts(model) {
  const sum = model.nodes.reduce((all, node) => all + (node.time_us || 0), 0);
  const parts = [
    make("h3", {}, model.model),
    make("p", {class: "about"}, make("b", {}, model.engine), " " + model.version + " on " + model.target + ": " + model.because),
    plain_table(engine_columns, model.engines),
  ];
  if (!model.nodes.length) return parts;
  const memory = "memory between inputs and outputs " + bytes_text(model.memory_bytes);
  const about = "Its nodes by native: " + time_text(sum) + " in all calls; " + memory + ".";
  return [...parts, make("p", {class: "about"}, about), plain_table(node_columns(sum), model.nodes)];
}

function show_models() {
  if (!data.models || !data.models.length) return;  // a report of an older version has none
  at("models").hidden = false;
  show("models-list", data.models.flatMap(model_parts));
}

function machine_card(environment) {
  const words = {same: "as this machine", revalidate: "to be revalidated here", refuse: "not this machine"};
  const used = rows_all.filter((row) => row.environment === environment.id).length;
  const pairs = [...Object.entries(environment.traits), ...Object.entries(environment.versions)];
  const sized = ([name, text]) =>
      (name.endsWith("_bytes") ? [name.slice(0, -6), bytes_text(Number(text))] : [name, text]);
  return make(
      "article", {class: "machine"}, make("h3", {}, environment.device),
      make(
          "p", {}, tag(environment.verdict, words[environment.verdict]), " ",
          make("span", {class: "small"}, environment.reason || count_text(used, "decision"))),
      make(
          "dl", {},
          pairs.map(sized).flatMap(([name, text]) => [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, text)]),
          make("dt", {}, "environment"), make("dd", {class: "code"}, environment.id)));
}

function show_foot() {
  const sources =
      [["lock", data.lock], ["against", data.against], ["times from", data.store]].filter(([, name]) => name !== null);
  at("foot").textContent = [
    "Made " + date_text(data.made_at) + " by xpuruntime " + data.xpuruntime, ...sources.map((pair) => pair.join(" "))
  ].join(" · ");
  show("machine-list", data.environments.map(machine_card));
}
