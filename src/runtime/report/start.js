// Light or dark, keys, and the order in which the page is filled.

function remembered(value) {
  try {
    if (value === undefined) return localStorage.getItem("xpuruntime-theme") || "auto";
    localStorage.setItem("xpuruntime-theme", value);
  } catch {
    // A browser may refuse to remember anything for a file.
  }
  return value || "auto";
}

function set_theme(theme) {
  if (theme === "auto")
    document.documentElement.removeAttribute("data-theme");
  else
    document.documentElement.dataset.theme = theme;
  at("theme").textContent = "Theme: " + theme;
}

function start_theme() {
  const after = {auto: "light", light: "dark", dark: "auto"};
  let theme = remembered() in after ? remembered() : "auto";
  set_theme(theme);
  at("theme").hidden = false;
  at("theme").addEventListener("click", () => {
    theme = after[theme];
    remembered(theme);
    set_theme(theme);
  });
}

/// "/" goes to the search field, as on many pages; Escape empties it.
function start_keys() {
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    at("search").focus();
  });
}

start_theme();
start_keys();
show_head();
show_look();
show_models();
show_changes();
show_ops();
start_table();
show_foot();
at("main").hidden = false;
for (const id of ["ops", "decisions", "machines"]) at(id).hidden = rows_all.length === 0;
