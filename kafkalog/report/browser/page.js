"use strict";
// Draws the figures that the page carries as JSON, and says when they are there.
(async () => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  // A finger that drags is to scroll the page.
  const hasMouse = window.matchMedia("(pointer: fine)").matches;
  const config = { responsive: true, displayModeBar: false, scrollZoom: false };
  const names = Object.keys(figures);
  for (const name of names) {
    const { data, layout } = figures[name];
    layout.dragmode = hasMouse ? "zoom" : false;
    await Plotly.newPlot(name, data, layout, config);
  }
  document.documentElement.dataset.drawnMs = String(Math.round(performance.now()));
  // Paper has another width than the window.
  const paper = { width: 680 };
  addEventListener("beforeprint", () => names.forEach((name) => Plotly.relayout(name, paper)));
  addEventListener("afterprint", () =>
    names.forEach((name) => Plotly.relayout(name, { width: null, autosize: true })));
})();
