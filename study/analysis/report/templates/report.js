"use strict";
// The page reads without this: it opens what a link leads to, sorts and filters.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, attributes = {}, text = "") => {
    const element = Object.assign(document.createElement(name), { textContent: text });
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  // The address holds filters and sorting. A part of the page is none of these.
  const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const set = (name, value) => { if (value) state.set(name, value); else state.delete(name); };
  const remember = () => { if (`${state}` || location.hash.includes("=")) history.replaceState(null, "", `#${state}`.replaceAll("%2F", "/")); };
  addEventListener("hashchange", () => { if (location.hash.includes("=")) location.reload(); else remember(); });
  const unfold = (part) => { for (let box = part; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true; };

  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link) unfold(document.getElementById(decodeURIComponent(link.getAttribute("href").slice(1))));
  });

  // Tables: sort by a column, filter the rows.
  const value = (line, place) => {
    const text = line.cells[place].dataset.value ?? line.cells[place].textContent.trim();
    const number = Number.parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? text : number;
  };
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table), name = `${table.id}-sort`;
    const sort = (place, order) => {
      const up = order === "ascending";
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      heads[place].setAttribute("aria-sort", order);
      const lines = [...table.tBodies[0].rows];
      lines.sort((one, other) => {
        const [a, b] = [value(one, place), value(other, place)];
        const found = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
        return up ? found : -found;
      });
      table.tBodies[0].append(...lines);
      set(name, `${place} ${order}`);
    };
    heads.forEach((head, place) => {
      const button = make("button", { type: "button" }, head.textContent.trim());
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        sort(place, head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending");
        remember();
      });
    });
    const [place, order] = (state.get(name) ?? "").split(" ");
    if (heads[place] && /^(a|de)scending$/.test(order)) { sort(Number(place), order); unfold(table); }
  }
  for (const box of all("input[data-filter]")) {
    const table = document.getElementById(box.getAttribute("aria-controls"));
    const apply = () => {
      const wanted = box.value.toLowerCase();
      for (const line of table.tBodies[0].rows) line.hidden = !line.textContent.toLowerCase().includes(wanted);
      set(box.name, box.value);
    };
    box.closest("label").hidden = false;
    box.value = state.get(box.name) ?? "";
    if (box.value) { apply(); unfold(box); }
    box.addEventListener("input", () => { apply(); remember(); });
  }

  // Print shows what is folded.
  addEventListener("beforeprint", () => all("details:not([open])").forEach((box) => { box.open = true; box.dataset.folded = ""; }));
  addEventListener("afterprint", () => all("details[data-folded]").forEach((box) => { box.open = false; }));
})();
