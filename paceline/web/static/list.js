// Filter, sort and ticks of lists.
"use strict";

const filter = document.getElementById("filter");
const button = document.getElementById("compare");
const order = new Map(); // of each table body: by what, and which way

function fits(row, words) {
  if (words.length === 0) return true;
  const text = row.textContent.toLowerCase();
  return words.every((word) => text.includes(word));
}

function value(row, key) {
  for (const cell of row.cells) {
    if (key in cell.dataset) return known(cell.dataset[key]);
  }
  return "";
}

function known(text) {
  const number = Number(text);
  return text !== "" && Number.isFinite(number) ? number : text;
}

function compare(a, b) {
  if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1; // what is not known comes last
  return typeof a === typeof b && typeof a === "number" ? a - b : String(a).localeCompare(String(b));
}

function arrange() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const body of document.querySelectorAll("tbody[data-rows]")) {
    const { key, down } = order.get(body) || { key: "started", down: true };
    const rows = [...body.rows];
    const sorted = rows
      .map((row) => [value(row, key), value(row, "name"), row])
      .sort((a, b) => {
        const known = a[0] !== "" && b[0] !== "";
        return (known && down ? -1 : 1) * compare(a[0], b[0]) || compare(b[1], a[1]);
      })
      .map((each) => each[2]);
    if (sorted.some((row, n) => row !== rows[n])) keepFocus(() => body.append(...sorted));
    for (const row of sorted) {
      const hidden = !fits(row, words);
      if (row.hidden !== hidden) row.hidden = hidden;
      if (!hidden) shown += 1;
    }
    const section = body.closest("section");
    if (section && section.id === "sweeps") section.hidden = rows.length === 0;
  }
  document.getElementById("none").hidden = shown > 0 || words.length === 0;
}

function keepFocus(change) {
  const active = document.activeElement;
  change();
  if (active && active !== document.activeElement && active.isConnected) active.focus();
}

function ticked() {
  const count = document.querySelectorAll("input[name=with]:checked").length;
  button.disabled = count < 2;
  button.textContent = count < 2 ? "Tick two to compare" : `Compare ${count}`;
}

document.addEventListener("click", (event) => {
  const head = event.target.closest("[data-sort]");
  if (!head) return;
  const table = head.closest("table");
  const body = table.tBodies[0];
  const key = head.dataset.sort;
  const now = order.get(body) || { key: "started", down: true };
  const down = now.key === key ? !now.down : head.closest("th").classList.contains("n");
  order.set(body, { key, down });
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  head.closest("th").setAttribute("aria-sort", down ? "descending" : "ascending");
  arrange();
});
document.addEventListener("change", (event) => event.target.name === "with" && ticked());
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.nodeName) && event.target.type !== "checkbox";
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    filter.focus();
  } else if (event.key === "Escape" && event.target === filter) {
    filter.value = "";
    arrange();
  } else if (event.key === "Enter" && event.target === filter) {
    event.preventDefault(); // filters as one types; the form is for comparing
  }
});
filter.addEventListener("input", arrange);
document.addEventListener("paceline:parts", () => {
  arrange();
  ticked();
});
window.addEventListener("pageshow", () => {
  arrange();
  ticked();
});
