// The table: one row a decision, sorted by any column, searched, filtered, opened.

const all_columns = [
  {key: "problem", name: "Problem", value: (row) => row.problem},
  {key: "kernel", name: "Kernel", value: (row) => row.kernel || ""},
  {key: "time", name: "Time", number: true, timed: true, value: (row) => row.time_us},
  {key: "chart", name: "Against others", timed: true},
  {key: "margin", name: "Next best", number: true, timed: true, value: (row) => row.margin},
  {key: "memory", name: "Workspace", number: true, value: (row) => row.workspace_bytes},
  {key: "why", name: "Why", value: (row) => row.because},
];

// Without a single time, three empty columns would say less than one sentence at the top.
const columns = all_columns.filter((column) => measured.length > 0 || !column.timed);

const kinds = [
  ["all", "all", () => true],
  ["measured", "measured", (row) => row.time_us !== null],
  ["unmeasured", "not measured", (row) => row.time_us === null],
  ["slower", "not the fastest", (row) => row.slower],
  ["changed", "changed", (row) => row.change !== null],
  ["refusals", "with refusals", (row) => row.refused.length > 0],
  ["notes", "with notes", (row) => row.notes.length > 0 || row.kernel === null],
];

// Dearest first; without times by name. So many rows are drawn: thousands would make every key stroke slow.
const state = {
  sort: measured.length ? "time" : "problem",
  down: measured.length > 0,
  most: 300
};

function heading_cell(column) {
  const sorted = state.sort === column.key ? (state.down ? "descending" : "ascending") : null;
  const settings = {
    scope: "col",
    role: "columnheader",
    class: "c-" + column.key + (column.number ? " number" : ""),
    "aria-sort": sorted
  };
  if (!column.value) return make("th", settings, column.name);
  const arrow = make("span", {class: "arrow", "aria-hidden": "true"}, state.down ? "↓" : "↑");
  const button = make(
      "button", {type: "button", "data-sort": column.key, onclick: () => sort_by(column)},
      column.number ? [arrow, column.name] : [column.name, arrow]);
  return make("th", settings, button);
}

function sort_by(column) {
  state.down = state.sort === column.key ? !state.down : Boolean(column.number);
  state.sort = column.key;
  show_table();
  document.querySelector("[data-sort=\"" + column.key + "\"]").focus();
}

/// What is not known comes last either way.
function compare_rows(a, b) {
  const {value} = columns.find((column) => column.key === state.sort);
  const [x, y] = [value(a), value(b)];
  if (x === null || y === null) return (x === null) - (y === null);
  const order = typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y;
  return state.down ? -order : order;
}

function margin_cell(row) {
  if (row.margin === null) return null;
  const words = row.margin >= 1 ? times_text(row.margin) + " slower" : times_text(1 / row.margin) + " faster";
  return [make("span", {class: row.slower ? "worse" : null}, words), make("div", {class: "small"}, row.next.kernel)];
}

function cells_of(row) {
  const [op, rest] = split_problem(row.problem);
  const detail_id = "detail-" + row.number;
  const opener = make(
      "button", {
        class: "opener",
        type: "button",
        "aria-expanded": String(row.opened),
        "aria-controls": detail_id,
        onclick: () => toggle(row)
      },
      make("span", {class: "code"}, make("b", {}, op), make("span", {class: "rest"}, rest)));
  const kernel =
      make("span", {class: "kernel" + (row.kernel === null ? " none" : "")}, row.kernel === null ? "none" : row.kernel);
  const tags = [row.change ? tag(row.change) : null, row.slower ? tag("slower", "not the fastest") : null];
  const contents = {
    kernel: [kernel, make("div", {}, tags)],
    time: row.time_us === null ? make("span", {class: "small"}, "not measured") : time_text(row.time_us),
    chart: mini_chart(row),
    margin: margin_cell(row),
    memory: row.workspace_bytes ? bytes_text(row.workspace_bytes) : null,
    why: make("span", {class: "why"}, row.because),
  };
  const cell = ({key, number}) => make(
      "td", {role: "cell", class: "c-" + key + (number ? " number" : "") + (contents[key] === null ? " empty" : "")},
      contents[key]);
  return [make("th", {role: "rowheader", scope: "row", class: "c-problem"}, opener), ...columns.slice(1).map(cell)];
}

/// Details are made when they are first seen: a lock may hold thousands of rows.
function elements_of(row) {
  const line = make("tr", {role: "row", class: "row" + (row.opened ? " open" : "")}, cells_of(row));
  if (!row.opened) return [line];
  const cell = make("td", {role: "cell", colspan: String(columns.length)}, detail_of(row));
  return [line, make("tr", {role: "row", class: "detail", id: "detail-" + row.number}, cell)];
}

function shown_rows() {
  const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const op = at("pick-op").value;
  const test = kinds.find(([key]) => key === at("pick-kind").value)[2];
  return rows_all
      .filter((row) => (op === "" || row.op === op) && test(row) && words.every((word) => row.words.includes(word)))
      .sort(compare_rows);
}

function show_table() {
  const rows = shown_rows();
  show("heading", columns.map(heading_cell));
  show("rows", rows.slice(0, state.most).flatMap(elements_of));
  at("more").hidden = rows.length <= state.most;
  at("more").textContent = "Show the other " + (rows.length - state.most);
  at("count").textContent = rows.length === rows_all.length ?
      count_text(rows.length, "decision") :
      rows.length + " of " + count_text(rows_all.length, "decision");
  at("table").hidden = rows.length === 0;
  at("nothing").hidden = rows.length !== 0;
  at("legend").hidden = !rows.some((row) => row.time_us !== null);
}

function toggle(row) {
  row.opened = !row.opened;
  show_table();
  const opener = document.querySelector("[aria-controls=\"detail-" + row.number + "\"]");
  if (opener) opener.focus({preventScroll: true});
}

function reset_filters() {
  at("search").value = "";
  at("pick-op").value = "";
  at("pick-kind").value = "all";
}

function reveal(row) {
  reset_filters();
  row.opened = false;
  if (shown_rows().indexOf(row) >= state.most) state.most = Infinity;
  toggle(row);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  document.activeElement.scrollIntoView({block: "center", behavior: still ? "auto" : "smooth"});
}

function pick_op(op) {
  reset_filters();
  at("pick-op").value = op;
  show_table();
  at("decisions").scrollIntoView();
  at("search").focus({preventScroll: true});
}

function open_all() {
  const open = at("open-all").getAttribute("aria-pressed") !== "true";
  at("open-all").setAttribute("aria-pressed", String(open));
  at("open-all").textContent = open ? "Close all" : "Open all";
  for (const row of shown_rows()) row.opened = open;
  show_table();
}

function start_table() {
  rows_all.forEach((row, i) => {
    row.number = i;
  });
  const names = [...new Set(rows_all.map((row) => row.op))].sort();
  show("pick-op", make("option", {value: ""}, "all"), names.map((name) => make("option", {value: name}, name)));
  show(
      "pick-kind",
      kinds.filter(([key, , test]) => key === "all" || rows_all.some(test))
          .map(([key, name]) => make("option", {value: key}, name)));
  for (const id of ["search", "pick-op", "pick-kind"]) at(id).addEventListener("input", show_table);
  at("more").addEventListener("click", () => {
    state.most = Infinity;
    show_table();
  });
  at("open-all").addEventListener("click", open_all);
  at("clear").addEventListener("click", () => {
    reset_filters();
    show_table();
    at("search").focus();
  });
  show_table();
}
