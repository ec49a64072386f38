// Words and numbers for people, and the only way that this page makes elements: texts are set as text, never as HTML.

function make(name, settings, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(settings || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on"))
      element.addEventListener(key.slice(2), value);
    else
      element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

const at = (id) => document.getElementById(id);

function show(id, ...children) {
  at(id).replaceChildren(...children.flat());
  at(id).hidden = false;
}

/// Three digits that mean something: 1.18, 26.5, 753, 1970
function digits(value) {
  if (value >= 100) return String(Math.round(value));
  return value.toFixed(value >= 10 ? 1 : 2);
}

function time_text(us) {
  if (us === null || us === undefined) return "";
  if (us < 0.1) return (us * 1000).toPrecision(2) + " ns";
  if (us < 999.5) return digits(us) + " µs";
  return us < 999500 ? digits(us / 1e3) + " ms" : digits(us / 1e6) + " s";
}

function bytes_text(bytes) {
  if (bytes === null || bytes === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return (Number.isInteger(value) ? value : digits(value)) + " " + units[unit];
}

const error_text = (error) => (error === null ? "" : ", error " + error.toPrecision(2));

const times_text = (factor) => digits(factor) + "×";

function date_text(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 16).replace("T", " ") + " UTC";
}

const count_text = (count, one, many) => count + " " + (count === 1 ? one : many || one + "s");

/// "matmul" and "(f32[2,2], f32[2,2]) @cpu:0"
function split_problem(text) {
  const end = text.search(/[(:]/);
  return end < 0 ? [text, ""] : [text.slice(0, end), text.slice(end)];
}

const tag = (kind, text) => make("span", {class: "tag " + kind}, text || kind);
