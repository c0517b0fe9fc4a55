"use strict";
// The page reads without this: it opens what a link leads to, and what is folded for print.
(() => {
  const unfold = (part) => { for (let box = part; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true; };
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link) unfold(document.getElementById(decodeURIComponent(link.getAttribute("href").slice(1))));
  });
  unfold(document.getElementById(decodeURIComponent(location.hash.slice(1))));
  const folded = (chosen) => document.querySelectorAll(`details${chosen}`);
  addEventListener("beforeprint", () => folded(":not([open])").forEach((box) => { box.open = true; box.dataset.folded = ""; }));
  addEventListener("afterprint", () => folded("[data-folded]").forEach((box) => { box.open = false; }));
})();
