"use strict";
// The page reads without this: it shows a run on hover and focus, marks it everywhere, sorts, filters and hides.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, attributes = {}, text = "") => {
    const element = Object.assign(document.createElement(name), { textContent: text });
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const row = (run) => document.getElementById(`run-${run}`);
  for (const line of all('tr[id^="run-"]')) line.dataset.run = line.id.slice(4);

  // The address holds the run that is chosen, filters, sorting, and what is hidden. A part of the page is none of these.
  const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const set = (name, value) => { if (value) state.set(name, value); else state.delete(name); };
  const remember = () => { if (`${state}` || location.hash.includes("=")) history.replaceState(null, "", `#${state}`.replaceAll("%2F", "/")); };
  addEventListener("hashchange", () => { if (location.hash.includes("=")) location.reload(); else remember(); });
  const unfold = (part) => { for (let box = part; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true; };

  // A run on hover and focus.
  const tip = make("div", { id: "tip", role: "tooltip", hidden: "" });
  document.body.append(tip);
  const told = (run) => {
    const found = row(run);
    if (!found) return run;
    const names = all("thead th", found.closest("table")).map((cell) => cell.textContent.trim());
    return [...found.cells].slice(0, 5).map((cell, place) => `${names[place]}: ${cell.textContent.trim()}`).join("\n");
  };
  const show = (mark) => {
    tip.textContent = told(mark.dataset.run);
    tip.hidden = false;
    mark.setAttribute("aria-describedby", "tip");
    const box = mark.getBoundingClientRect();
    const left = Math.min(box.left + 12, document.documentElement.clientWidth - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(4, left) + scrollX}px`;
    tip.style.top = `${box.bottom + 8 + scrollY}px`;
  };
  const hide = () => { tip.hidden = true; };

  // A run that is chosen is marked in every chart and table, and its record is one click away.
  const pin = make("div", { id: "pin", role: "status", hidden: "" });
  document.body.append(pin);
  const choose = (run) => {
    all(".pinned").forEach((mark) => mark.classList.remove("pinned"));
    pin.hidden = !run;
    if (run) {
      all("[data-run]").filter((mark) => mark.dataset.run === run).forEach((mark) => mark.classList.add("pinned"));
      const link = row(run)?.querySelector("a");
      const close = make("button", { type: "button" }, "Close");
      close.addEventListener("click", () => choose(null));
      const there = make("a", { href: `#run-${run}` }, "its row");
      pin.replaceChildren(`${run.split("/").pop()}: `, there, ", ", link ? make("a", { href: link.href }, "its record") : "no record", close);
    }
    set("run", run);
    remember();
  };
  for (const chart of all("svg.chart")) {
    const marks = all("[data-run]", chart);
    marks.forEach((mark, place) => {
      const name = mark.dataset.run.split("/").pop(), seconds = row(mark.dataset.run)?.cells[1].textContent;
      const label = seconds ? `${name}, ${seconds} s` : name;
      for (const [key, value] of Object.entries({ tabindex: place ? -1 : 0, role: "img", "aria-label": label })) mark.setAttribute(key, value);
    });
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const next = marks[marks.indexOf(event.target) + (step ?? 0)];
      if (step && next) { next.focus(); event.preventDefault(); }
      if (event.key === "Enter" && event.target.dataset?.run) choose(event.target.dataset.run);
    });
  }
  const run = (event) => event.target.closest?.("svg [data-run]");
  for (const name of ["mouseover", "focusin"]) addEventListener(name, (event) => { const mark = run(event); if (mark) show(mark); });
  for (const name of ["mouseout", "focusout"]) addEventListener(name, (event) => { if (run(event)) hide(); });
  addEventListener("keydown", (event) => { if (event.key === "Escape") { hide(); choose(null); } });
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link) unfold(document.getElementById(decodeURIComponent(link.hash.slice(1))));
    const mark = event.target.closest?.("[data-run]");
    if (mark && !event.target.closest("a, button")) choose(mark.dataset.run);
  });

  // A legend hides and shows a kind of mark in its chart.
  for (const key of all(".key[data-series]")) {
    const button = make("button", { type: "button", "data-series": key.dataset.series, "aria-pressed": "true" });
    button.append(...key.childNodes);
    key.replaceWith(button);
    const figure = button.closest("figure"), part = figure.closest("article");
    const name = `${part.id}/${all("figure", part).indexOf(figure)}/${button.dataset.series}`;
    const turn = (shown) => {
      button.setAttribute("aria-pressed", String(shown));
      all(`.chart [data-kind="${button.dataset.series}"]`, figure).forEach((mark) => mark.classList.toggle("gone", !shown));
      set(name, shown ? "" : "hidden");
    };
    if (state.get(name)) turn(false);
    button.addEventListener("click", () => { turn(button.getAttribute("aria-pressed") !== "true"); remember(); });
  }

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
  if (state.get("run")) choose(state.get("run"));

  // Print shows what is folded.
  addEventListener("beforeprint", () => all("details:not([open])").forEach((box) => { box.open = true; box.dataset.folded = ""; }));
  addEventListener("afterprint", () => all("details[data-folded]").forEach((box) => { box.open = false; }));
})();
