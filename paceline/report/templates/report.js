"use strict";
(() => {
  const PRINTED = 680; // pixels: a sheet of A4 or letter between its margins
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const fine = matchMedia("(pointer: fine)").matches;
  const drawn = new Map(); // by box, the view that it shows
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset" };

  const narrow = () => matchMedia("(max-width: 40rem)").matches;

  function draw(box, view) {
    const views = figures[box.id];
    const name = view ?? drawn.get(box) ?? Object.keys(views)[0];
    const { data, layout } = structuredClone(views[name]);
    layout.dragmode = fine ? "zoom" : false;
    if (narrow()) {
      layout.font.size = 11;
      layout.margin = { ...layout.margin, l: 40, r: 8 };
      const names = layout.showlegend === false ? 0 : data.filter((t) => t.showlegend !== false).length;
      layout.height += names > 3 ? 20 * Math.ceil(names / 2) : 0; // names stand in two columns
    }
    Plotly.react(box, data, layout, config);
    box.style.minHeight = "";
    drawn.set(box, name);
  }

  const boxes = [...document.querySelectorAll(".chart")];
  const near = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (isIntersecting && !drawn.has(target)) draw(target);
    }
  }, { rootMargin: "600px" });
  boxes.forEach((box) => near.observe(box));

  for (const group of document.querySelectorAll(".views")) {
    group.addEventListener("click", ({ target }) => {
      const { view } = target.dataset;
      if (view === undefined) return;
      for (const each of group.children) each.setAttribute("aria-pressed", each === target);
      draw(group.closest("figure").querySelector(".chart"), view);
    });
  }

  for (const button of document.querySelectorAll(".save")) {
    button.addEventListener("click", async () => {
      const box = button.closest("figure").querySelector(".chart");
      draw(box);
      const ink = getComputedStyle(document.body);
      const { data, layout } = structuredClone(figures[box.id][drawn.get(box)]);
      layout.paper_bgcolor = ink.backgroundColor;
      layout.font.color = ink.color;
      const title = box.closest("figure").querySelector("figcaption :first-child").textContent;
      layout.title = { text: title.replaceAll("&", "&amp;").replaceAll("<", "&lt;") };
      layout.margin.t = 90;
      const size = { format: "png", width: 1280, height: 720, scale: 2, filename: title };
      await Plotly.downloadImage({ data, layout }, size);
    });
  }

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.closest(".listing").querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      } catch { // a browser that does not let files write: mark it for Ctrl-C
        getSelection().selectAllChildren(code);
      }
    });
  }

  // On paper everything is open and drawn, as wide as a sheet.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((each) => { each.open = true; });
    boxes.forEach((box) => {
      draw(box);
      Plotly.relayout(box, { width: PRINTED, autosize: false });
    });
  });
  addEventListener("afterprint", () => {
    opened.forEach((each) => { each.open = false; });
    boxes.forEach((box) => Plotly.relayout(box, { width: null, autosize: true }));
  });
  document.documentElement.dataset.ready = "yes";
})();
