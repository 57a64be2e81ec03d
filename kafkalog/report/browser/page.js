"use strict";
// A link may lead into a table that is folded, and to a place that plots have moved.
function reveal() {
  const place = document.getElementById(location.hash.slice(1));
  const folded = place?.closest("details");
  if (folded) folded.open = true;
  place?.scrollIntoView();
}
addEventListener("hashchange", reveal);

// Draws the figures that the page carries as JSON, and says when they are there.
(async () => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  // A finger that drags is to scroll the page.
  const hasMouse = window.matchMedia("(pointer: fine)").matches;
  const config = { responsive: true, displayModeBar: false, scrollZoom: false };
  const names = Object.keys(figures);
  // Text and lines of plots have the colours of the page, in light and in dark.
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const [ink, line] = ["--ink", "--line"].map((name) => style.getPropertyValue(name));
    const found = { "font.color": ink };
    for (const axis of ["xaxis", "yaxis"]) {
      for (const part of ["gridcolor", "zerolinecolor", "linecolor"]) {
        found[`${axis}.${part}`] = line;
      }
    }
    return found;
  };
  const redraw = (changes) => names.forEach((name) => Plotly.relayout(name, changes));
  for (const name of names) {
    const { data, layout } = figures[name];
    layout.dragmode = hasMouse ? "zoom" : false;
    await Plotly.newPlot(name, data, layout, config);
    await Plotly.relayout(name, colours());
  }
  reveal();
  document.documentElement.dataset.drawnMs = String(Math.round(performance.now()));
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", () => redraw(colours()));
  // Paper has another width than the window, and is white.
  addEventListener("beforeprint", () => redraw({ width: 680, ...colours() }));
  addEventListener("afterprint", () => redraw({ width: null, autosize: true, ...colours() }));
})();

// Lets a click on a head sort a table, and a field filter a long one.
for (const table of document.querySelectorAll(".table table")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const value = (row, column) => {
    const cell = row.cells[column];
    const data = cell.querySelector("data");
    const text = data ? data.value : cell.textContent;
    const number = Number(text.replaceAll(",", ""));
    return text.trim() === "" || Number.isNaN(number) ? text : number;
  };
  const compared = (one, other) =>
    typeof one === "number" && typeof other === "number"
      ? one - other
      : String(one).localeCompare(String(other), "en", { numeric: true });
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (rows.length < 2) return;
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      // The most first, as tables are from the beginning.
      const isDown = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      rows.sort((one, other) =>
        compared(value(one, column), value(other, column)) * (isDown ? -1 : 1));
      body.append(...rows);
    });
  });
  if (rows.length > 10) {
    const filter = document.createElement("input");
    filter.type = "search";
    filter.className = "filter";
    filter.placeholder = `filter ${rows.length} rows`;
    filter.setAttribute("aria-label", filter.placeholder);
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.parentElement.before(filter);
  }
}
