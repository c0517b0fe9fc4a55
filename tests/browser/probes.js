// What the tests ask of a page. One expression: an object of functions that change nothing but the scroll position.
(() => {
  const MARK = ".mark, .key svg *";
  const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const words = (text) => text.replace(/\s+/g, " ").trim();

  // Colours, as [red, green, blue, alpha] with the first three in 0..255. A canvas reads every notation of CSS.
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (css) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = "rgba(0, 0, 0, 0)";
    pen.fillStyle = css;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((value, i) => a * value + (1 - a) * below[i]).concat(1);
  const faded = (css, opacity) => { const [r, g, b, a] = colour(css); return [r, g, b, a * opacity]; };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const opacity = (element) => {
    let all = 1;
    for (let e = element; e; e = e.parentElement) all *= parseFloat(getComputedStyle(e).opacity);
    return all;
  };

  // The colour of the window where nothing is painted: light or dark, as the page's color-scheme has it.
  const canvas = () => {
    const probe = document.documentElement.appendChild(document.createElement("div"));
    probe.style.backgroundColor = "Canvas";
    const found = colour(getComputedStyle(probe).backgroundColor);
    probe.remove();
    return found;
  };

  // What an element paints at a point of the window: a shape its fill, a box its background, all else nothing.
  const painted = (element, x, y) => {
    const style = getComputedStyle(element);
    if (element instanceof SVGGeometryElement) {
      const inside = element.isPointInFill(new DOMPoint(x, y).matrixTransform(element.getScreenCTM().inverse()));
      return inside && style.fill !== "none" ? faded(style.fill, style.fillOpacity * opacity(element)) : [0, 0, 0, 0];
    }
    const box = element instanceof HTMLElement || element instanceof SVGSVGElement;
    return box ? faded(style.backgroundColor, opacity(element)) : [0, 0, 0, 0];
  };

  // What is under an element's centre: marks are no ground of each other, and of texts those alone that are a part of a bar.
  // Scrolls to it.
  const ground = (element) => {
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const box = element.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const stack = document.elementsFromPoint(x, y);
    const isGround = (e) => !e.closest(`svg :is(${MARK})`) || (element instanceof SVGTextElement && e.closest(".piece"));
    const below = stack.slice(stack.indexOf(element) + 1).filter((e) => e !== element && isGround(e));
    return below.reverse().reduce((under, e) => over(painted(e, x, y), under), canvas());
  };

  // The best contrast of what an element paints itself, with its ground. A line has no fill, a text is read by its fill.
  const contrast = (element, withStroke) => {
    const style = getComputedStyle(element), under = ground(element), seen = opacity(element), paints = [];
    if (style.fill !== "none" && !(element instanceof SVGLineElement)) paints.push(faded(style.fill, style.fillOpacity * seen));
    if (withStroke && style.stroke !== "none" && parseFloat(style.strokeWidth) > 0) paints.push(faded(style.stroke, style.strokeOpacity * seen));
    return Math.max(1, ...paints.map((paint) => ratio(over(paint, under), under)));
  };
  const called = (element) => {
    const named = element.closest("a, [id], figure, section, article");
    return `<${element.tagName} class="${element.getAttribute("class") ?? ""}"> of ${named?.getAttribute("href") ?? named?.id ?? named?.tagName}: ${words(element.textContent).slice(0, 40)}`;
  };
  const below = (elements, limit, withStroke) => {
    const all = elements.filter(shown).map((e) => [e, contrast(e, withStroke)]);
    const poor = all.filter(([e, found]) => found < (typeof limit === "function" ? limit(e) : limit));
    return { checked: all.length, poor: poor.map(([e, found]) => `${found.toFixed(2)}: ${called(e)}`) };
  };
  const shapes = (mark) => (mark instanceof SVGGeometryElement || mark instanceof SVGUseElement || mark instanceof SVGTextElement
    ? [mark] : [...mark.querySelectorAll(":is(path, circle, ellipse, rect, line, polyline, polygon, use)")]);
  const large = (text) => {
    const style = getComputedStyle(text), pixels = parseFloat(style.fontSize) * scale(text);
    return pixels >= 24 || (pixels >= 18.66 && style.fontWeight >= 700);
  };

  // Pixels of the screen to one unit of the element.
  const scale = (element) => {
    const owner = element instanceof SVGGraphicsElement ? element : element.closest("foreignObject");
    const m = owner?.getScreenCTM();
    return m ? Math.sqrt(Math.abs(m.a * m.d - m.b * m.c)) : 1;
  };

  return {
    openDetails: () => document.querySelectorAll("details").forEach((d) => { d.open = true; }),

    // Leaves two studies, with nothing folded: what takes long to look at is alike in all others.
    openTwoStudies() {
      document.querySelectorAll("article:nth-of-type(n+3)").forEach((article) => article.remove());
      this.openDetails();
    },

    smallTexts: (limit) => {
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
      while (walker.nextNode()) {
        const text = words(walker.currentNode.data), element = walker.currentNode.parentElement;
        if (!text || !shown(element)) continue;
        const pixels = parseFloat(getComputedStyle(element).fontSize) * scale(element);
        if (pixels < limit - 0.01) found.push(`${pixels.toFixed(1)} px: ${text.slice(0, 40)}`);
      }
      return found;
    },

    poorMarks: (limit) => below([...new Set([...document.querySelectorAll(`svg :is(${MARK})`)].flatMap(shapes))], limit, true),

    poorTexts: () => below([...document.querySelectorAll("svg text")].filter((t) => words(t.textContent)), (t) => (large(t) ? 3 : 4.5), false),

    // The luminance of the page's ground, 0 for black and 1 for white.
    brightness: () => {
      const [body, root] = [document.body, document.documentElement].map((e) => colour(getComputedStyle(e).backgroundColor));
      return luminance(over(body, over(root, canvas())));
    },

    // What sticks out of the window to the right, outside boxes that scroll by themselves.
    wide: () => [...document.body.querySelectorAll("*")].filter((e) => shown(e) && e.getBoundingClientRect().right > innerWidth + 1
      && !e.parentElement.closest("svg") && ![...ancestors(e)].some((a) => getComputedStyle(a).overflowX !== "visible")).map(called).slice(0, 5),

    // Each box that can scroll, scrolled to its end: whether names of rows stay, whether they hide the rest, and whether
    // a row's accuracy can be seen together with its name.
    scrolled: () => [...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth).map((box) => {
      const edges = box.getBoundingClientRect(), rows = [...box.querySelectorAll("tr")].filter((row) => row.cells[0].tagName === "TH" && row.cells[0].colSpan === 1);
      const name = (row) => row.cells[0].getBoundingClientRect();
      box.scrollLeft = box.scrollWidth;
      const stays = rows.every((row) => Math.abs(name(row).left - edges.left) < 2), hides = rows.some((row) => name(row).width > 0.7 * edges.width);
      const place = [...rows[0].cells].findIndex((head) => head.innerText.trim() === "accuracy"), cell = () => rows[1].cells[place].getBoundingClientRect();
      if (place > 0) box.scrollLeft += cell().right - edges.right;
      return { name: box.getAttribute("aria-label"), stays, hides, accuracy: place > 0 ? name(rows[1]).right <= cell().left + 1 : null };
    }),

    // The words of tables that go on in another line. A name may be broken after a hyphen or an underscore.
    broken: () => [...document.querySelectorAll("th, td")].filter(shown).flatMap((cell) => {
      const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
      while (walker.nextNode()) {
        for (const word of walker.currentNode.data.matchAll(/[^\s_-]+/g)) {
          const range = document.createRange();
          range.setStart(walker.currentNode, word.index);
          range.setEnd(walker.currentNode, word.index + word[0].length);
          if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1) found.push(word[0]);
        }
      }
      return found;
    }),

    // The lines in which a word stands before one that it follows. Letters from right to left are one word.
    reordered: () => [...document.querySelectorAll("h1, h2, h3, h4, p, li, caption, th, td, dt, dd, figcaption, summary, svg text")]
      .filter((e) => shown(e) && getComputedStyle(e).direction === "ltr" && /[\u0590-\u05ff\u202e]|U\+202E/.test(e.textContent)).filter((e) => {
        const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), places = [];
        while (walker.nextNode()) {
          if (walker.currentNode.parentElement.tagName === "title") continue;
          for (const word of walker.currentNode.data.matchAll(/[\u0590-\u05ff]+|[A-Za-z0-9.]+/g)) {
            const range = document.createRange();
            range.setStart(walker.currentNode, word.index);
            range.setEnd(walker.currentNode, word.index + word[0].length);
            places.push(range.getClientRects()[0]);
          }
        }
        return places.slice(1).some((one, i) => Math.abs(one.top - places[i].top) < 4 && one.left < places[i].left);
      }).map(called),

    // The texts that a reader sees, without those that tell the state of a control.
    texts: () => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6, p, li, caption, th, td, dt, dd, figcaption, summary, svg text")]
      .filter((e) => shown(e) && !e.closest("[aria-live], [role=status], [role=tooltip], noscript")).map((e) => words(e.textContent)).filter(Boolean),

    // Each table: the words of its heads and of its rows' cells. Pictures in cells are left out.
    tables: () => [...document.querySelectorAll("table")].map((table) => ({
      name: table.caption?.innerText ?? table.id,
      heads: [...(table.tHead?.querySelectorAll("th, td") ?? [])].map((e) => e.innerText),
      rows: [...table.tBodies].flatMap((body) => [...body.rows]).map((row) => [...row.cells].filter((c) => !c.querySelector("svg")).map((c) => c.innerText)),
    })),

    // A dot of a run that nothing covers at its centre.
    dot: () => [...document.querySelectorAll("svg a")].filter(shown).find((dot) => {
      dot.scrollIntoView({ block: "center", behavior: "instant" });
      const box = dot.getBoundingClientRect();
      return dot.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
    }),
    shown,
  };

  function* ancestors(element) {
    for (let e = element.parentElement; e && e !== document.body; e = e.parentElement) yield e;
  }
})()
