// Draws figures where they are to be seen, and again when they change.
"use strict";

window.pacelineCharts = (() => {
  const figures = new Map(); // by name: its views
  const stale = new Set(); // changed since they were drawn
  const visible = new Set();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const options = { displayModeBar: false, responsive: true, scrollZoom: false };

  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const name = target.dataset.chart;
      if (isIntersecting) visible.add(name);
      else visible.delete(name);
      draw(name);
    }
  }, { rootMargin: "200px" });

  function place(name) {
    return [...document.querySelectorAll("figure[data-chart]")].find((each) => each.dataset.chart === name);
  }

  function draw(name) {
    const figure = place(name);
    const views = figures.get(name);
    if (!figure || !views || !visible.has(name) || !window.Plotly) return;
    const plot = figure.querySelector(".plot");
    if (!stale.has(name) && plot.data) return; // an empty one has just come
    stale.delete(name);
    const pressed = figure.querySelector('[data-view][aria-pressed="true"]');
    const view = (pressed && views[pressed.dataset.view]) || Object.values(views)[0];
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--text").trim();
    const layout = {
      ...view.layout,
      font: { ...view.layout.font, color: text },
      hoverlabel: { bgcolor: style.getPropertyValue("--card").trim(), font: { color: text } },
    };
    window.Plotly.react(plot, view.data, layout, options);
  }

  function tell(name, views) {
    figures.set(name, views);
    stale.add(name);
  }

  function find() {
    for (const each of document.querySelectorAll("figure[data-chart]")) watcher.observe(each);
    for (const name of figures.keys()) draw(name);
  }

  function again() {
    for (const name of figures.keys()) stale.add(name);
    find();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-view]");
    if (!button) return;
    for (const each of button.parentElement.children) each.setAttribute("aria-pressed", String(each === button));
    const { chart } = button.closest("figure").dataset;
    stale.add(chart);
    draw(chart);
  });
  document.addEventListener("paceline:parts", find);
  dark.addEventListener("change", again);
  document.addEventListener("DOMContentLoaded", () => {
    for (const each of document.querySelectorAll("script[data-figure]")) {
      tell(each.dataset.figure, JSON.parse(each.textContent));
    }
    find();
  });
  return { tell };
})();
