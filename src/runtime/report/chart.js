// Bars. They are drawn to scale up to a few times the shortest: a reference kernel that takes a thousand times as long
// would leave nothing of the others. What is longer is cut and drawn so, with its number next to it.

const most_of_shortest = 6;

function scale_of(values) {
  const positive = values.filter((value) => value !== null && value > 0);
  if (!positive.length) return 1;
  return Math.min(Math.max(...positive), Math.min(...positive) * most_of_shortest);
}

function track(value, scale, kind) {
  const bar = make("span", {class: "track", "aria-hidden": "true"});
  if (value === null || value === undefined || value <= 0) return bar;
  const inner = make("i", {class: kind + (value > scale * 1.001 ? " cut" : "")});
  inner.style.width = Math.min(100, (100 * value) / scale) + "%";
  bar.append(inner);
  return bar;
}

function rect(x, y, width, height, kind) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({x, y, width, height, class: kind})) element.setAttribute(name, value);
  return element;
}

/// The chosen kernel and its three fastest alternatives; says the same in words.
function mini_chart(row) {
  if (row.time_us === null) return null;
  const shown = [chosen_of(row), ...alternatives_of(row).slice(0, 3)];
  const scale = scale_of(shown.map((c) => c.time_us));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 150 " + (shown.length * 8 - 2));
  svg.setAttribute("class", "mini");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", shown.map((c) => c.kernel + " " + time_text(c.time_us)).join(", "));
  shown.forEach((c, i) => {
    const width = Math.max(2, (150 * Math.min(c.time_us, scale)) / scale);
    svg.append(rect(0, i * 8, width, 6, i === 0 ? "chosen" : "other"));
    if (c.time_us > scale * 1.001) [8, 14, 20].forEach((x) => svg.append(rect(width - x, i * 8, 2, 6, "gap")));
  });
  return svg;
}
