/* The slider for k: everything on the page follows it. What does not depend on k is there already, if need be hidden. */
(async () => {
  const report = JSON.parse(document.getElementById("content").textContent);
  const byId = (id) => document.getElementById(id);
  const range = byId("k-range");
  if (!range || typeof DecompressionStream === "undefined") return; // the page stays as it was written
  Object.assign(report, await new Response(unpack(report.packed)).json());
  const { coef, confusion, failure_costs: failureCosts, frames, numbers, strips } = report;
  const [lowest, highest] = [Number(range.min), Number(range.max)];
  const table = byId("features");
  const rows = [...table.tBodies[0].rows];
  const headers = [...table.tHead.rows[0].cells];
  const firstOfPanel = 1 + Object.keys(report.columns).length;
  const predict = report.panel && startPrediction(report, await new Response(unpack(report.panel.rules)).arrayBuffer(), named);
  const search = report.search && startSearch(report, ...(await searched(report.search)), { element, fixed, named });
  let k = report.k;

  function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    return new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  }

  async function searched({ names, steps, near }) {
    const [text, numbers, bytes] = [names, steps, near].map((packed) => new Response(unpack(packed)));
    return [(await text.text()).split("\n"), await numbers.json(), new Uint8Array(await bytes.arrayBuffer())];
  }

  /* ------------------------------------------------------------------------------------------------ words and numbers */

  /* As Python writes it: of two equally near numbers the one with an even last digit, where toFixed takes the larger. */
  function fixed(value, digits) {
    const scaled = Math.abs(value) * 10 ** digits;
    const isTie = Number.isInteger(value * 2 ** (digits + 1)) && scaled % 2 === 0.5;
    return (isTie ? (Math.sign(value) * Math.floor(scaled)) / 10 ** digits : value).toFixed(digits);
  }

  /* The start of a name, what an ellipsis stands for, and the end. */
  function parted(name, limit) {
    const signs = [...name.split(/\s+/).filter(Boolean).join(" ")];
    if (signs.length <= limit) return [signs.join(""), "", ""];
    const last = signs.length - Math.floor((limit - 1) / 2);
    const first = limit - 1 - (signs.length - last);
    return [signs.slice(0, first), signs.slice(first, last), signs.slice(last)].map((part) => part.join(""));
  }

  function element(kind, ...parts) {
    const made = document.createElement(kind);
    made.append(...parts);
    return made;
  }

  /* A name that keeps to itself whatever it is written in, and tells the whole of it where it is cut: as in parts.html. */
  function named(text, limit) {
    const [start, left, end] = parted(text, 200);
    const whole = left ? `${start}…${end}` : start;
    const [first, middle, last] = parted(whole, Math.max(limit, report.apart));
    const made = element("bdi", first);
    if (middle) {
      const cut = element("span", element("span", middle));
      cut.className = "cut";
      made.append(cut, last);
    }
    if (middle || whole !== text) made.title = text;
    return made;
  }

  /* Texts, attributes and rows that Python wrote for every k, by the id of their element. */
  function swap() {
    for (const [id, parts] of Object.entries(frames)) {
      const element = byId(id);
      for (const [part, values] of Object.entries(element ? parts : {})) {
        if (part === "text") element.textContent = values[k];
        else if (part === "rows") element.replaceChildren(...values[k].map(tableRow));
        else if (part === "items") element.replaceChildren(...values[k].map(listItem));
        else element.setAttribute(part, values[k]);
      }
    }
  }

  /* A row of a table: a name, then texts, names and bars. */
  function tableRow([name, ...values]) {
    const row = element("tr", element("th", named(name, 28)));
    row.cells[0].scope = "row";
    for (const value of values) {
      const cell = row.insertCell();
      if (typeof value === "string") cell.className = "number";
      else if ("bar" in value) cell.className = "share";
      cell.append(...(typeof value === "string" ? [value] : "bar" in value ? bar(value.bar) : [named(value.name, 28)]));
    }
    return row;
  }

  /* An item of a list: texts and names in turn. */
  function listItem(parts) {
    return element("li", ...parts.map((part, i) => (i % 2 ? element("strong", named(part, 40)) : part)));
  }

  /* A share as a bar, with its interval as a line; nothing where it is not known. */
  function bar(share) {
    if (!share) return [];
    const [value, lower, upper] = share.map((part) => `${fixed(100 * part, 1)}%`);
    const whole = drawn("svg", { "aria-hidden": true });
    whole.append(
      drawn("rect", { width: value, height: 14 }),
      drawn("line", { x1: lower, x2: upper, y1: 7, y2: 7 }),
    );
    return [whole];
  }

  function drawn(kind, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  /* --------------------------------------------------------------------------------------------- the table of features */

  const weights = (size) => coef[size - 1].split(";").map((row) => row.split(" "));
  const couldReplace = (place) => report.substitutes[place].filter(([, , rank]) => rank === 0 || rank > k).slice(0, 3);
  const inBrackets = (correlation) => ` (${fixed(correlation, 2)})`;

  function nothing() {
    const element = document.createElement("span");
    element.className = "none";
    element.textContent = "none";
    return element;
  }

  function fillTable() {
    const panel = coef && k ? weights(k) : null;
    for (let place = 0; place < k; place++) {
      const cells = rows[place].cells;
      let column = firstOfPanel;
      if (report.substitutes.length) {
        const parts = couldReplace(place).flatMap(([name, correlation], i) => [
          i ? ", " : "",
          named(name, 28),
          inBrackets(correlation),
        ]);
        cells[column++].replaceChildren(...(parts.length ? parts : [nothing()]));
      }
      if (failureCosts) {
        const cost = failureCosts[k - 1][place];
        const cell = cells[column++];
        cell.className = "number rise";
        cell.dataset.sort = cost;
        cell.textContent = cost ? `+${fixed(100 * cost, 1)}\u00a0% loss` : "";
      }
      if (panel) {
        for (const weight of panel[place]) cells[column++].textContent = weight;
      }
    }
    for (const row of rows.slice(k)) {
      for (const cell of [...row.cells].slice(firstOfPanel)) cell.replaceChildren();
    }
    sortTable(table);
    showRows();
  }

  function showRows() {
    const wanted = byId("filter").value.trim().toLowerCase();
    let nShown = 0;
    rows.forEach((row, place) => {
      const texts = [report.features[place], row.textContent];
      const isShown = place < k && texts.some((text) => text.toLowerCase().includes(wanted));
      row.hidden = !isShown;
      nShown += isShown;
    });
    byId("n-shown").textContent = wanted ? `${nShown} of ${k} shown` : "";
    byId("nothing-found").hidden = !wanted || nShown > 0;
  }

  /* The same text as selection.tsv for the features of the slider. */
  function tsv(guard) {
    const header = ["feature", ...Object.keys(report.columns)];
    if (report.substitutes.length) header.push("could_replace");
    if (failureCosts) header.push("failure_cost");
    if (coef) header.push(...(report.task === "regression" ? report.targets : report.classes).map((name) => `coef_${name}`));
    const panel = coef && k ? weights(k) : null;
    const lines = [header];
    for (let place = 0; place < k; place++) {
      const line = [report.features[place], ...Object.values(report.columns).map((texts) => texts[place])];
      if (report.substitutes.length) {
        line.push(couldReplace(place).map(([name, correlation]) => inList(name + inBrackets(correlation))).join(", "));
      }
      if (failureCosts) line.push(failureCosts[k - 1][place]);
      if (panel) line.push(...panel[place]);
      lines.push(line);
    }
    const cell = (text, column) => quotedWhere(/["\t\r\n]/, guard(text, header[column]));
    return lines.map((line) => line.map(cell).join("\t") + "\n").join("");
  }

  /* As l20fs.report.delimited: quoted where a sign would separate, in the file or in a list of names. */
  const quotedWhere = (signs, text) => (signs.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const inList = (text) => quotedWhere(/[",\r\n]|^ /, text);

  const isNumber = (text) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
  const converted = new RegExp(report.guard.pattern, "i");

  /* As l20fs.report.spreadsheets: no formula, no date, and no number that was a name. */
  function guarded(text, column) {
    const isSafe = isNumber(text) && !report.guard.names.includes(column);
    return converted.test(text) && !isSafe ? `'${text}` : text;
  }

  function download(text, ending) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/tab-separated-values" }));
    link.download = `selection${k === report.k ? "" : `-${k}`}${ending}.tsv`;
    link.click(); // the little text stays in memory with the page: nobody says when a download has begun
  }

  /* -------------------------------------------------------------------------------------------------------- the pictures */

  /* Predicted against measured numbers, and what is left over against predicted ones. */
  function drawNumbers() {
    if (!numbers) return;
    const panel = k ? numbers.predicted[k - 1] : null;
    numbers.measured.forEach((measured, target) => {
      const predicted = panel ? panel[target] : [];
      drawDots(`predicted-${target}`, predicted.map((value, i) => [measured[i], value]));
      drawDots(`residuals-${target}`, predicted.map((value, i) => [value, measured[i] - value]));
    });
  }

  function drawDots(id, points) {
    const path = byId(id);
    if (!path) return;
    const [x0, x1, y0, y1, left, right, top, bottom] = path.dataset.place.split(" ").map(Number);
    const inside = (value, low, high) => fixed(Math.min(Math.max(value, low), high), 1);
    const dots = points.map(([x, y]) => `M${inside(x0 + x * x1, left, right)} ${inside(y0 + y * y1, top, bottom)}h0`);
    path.setAttribute("d", dots.join(""));
  }

  function fillConfusion() {
    const shown = byId("confusion");
    if (!shown) return;
    const counts = k ? confusion[k - 1] : null;
    [...shown.tBodies[0].rows].forEach((row, truth) => {
      const total = counts ? counts[truth].reduce((sum, count) => sum + count, 0) : 0;
      [...row.cells].slice(1).forEach((cell, guess) => {
        const count = counts ? counts[truth][guess] : 0;
        const level = count ? Math.ceil((5 * count) / total) : 0;
        cell.textContent = counts ? count : "";
        cell.className = `h${truth === guess && level ? -level : level}`;
      });
    });
  }

  function fillHeatmap() {
    for (const group of byId("heatmap")?.tBodies ?? []) {
      const rows = [...group.querySelectorAll("[data-place]")]; // without the heading
      for (const row of rows) row.hidden = row.dataset.place >= k;
      group.hidden = rows.every((row) => row.hidden);
    }
  }

  /* Values of one feature in single samples: numbers across are thousandths of the width. */
  const shape = (name, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const upright = (x, y1, y2, kind) => shape("line", { class: kind, x1: `${x / 10}%`, x2: `${x / 10}%`, y1, y2 });

  function drawStrip(place) {
    const { dots, medians, ticks } = strips.features[place];
    [...byId("strips").querySelectorAll("tbody tr")].forEach((row, line) => {
      let last = 0;
      const places = medians.length ? dots[line].map((step) => (last += step)) : dots[line];
      const marks = places.flatMap((x, i) =>
        x === null ? [] : [shape("circle", { cx: `${x / 10}%`, cy: strips.heights[i % strips.heights.length], r: 3 })],
      );
      const median = medians[line];
      if (median) marks.push(upright(median[0], 0, row.querySelector("svg").getAttribute("height"), "median"));
      row.querySelector(".points").replaceChildren(...marks);
      if (row.cells[2]) row.cells[2].textContent = median ? median[1] : "";
    });
    const axis = ([x, text]) => [upright(x, 1, 6, "axis"), shape("text", { x: `${x / 10}%`, y: 20, "text-anchor": "middle" }, text)];
    byId("strip-ticks").replaceChildren(...ticks.flatMap(axis));
    const title = document.createElement("strong");
    title.append(named(report.features[place], 60));
    const level = report.columns.level?.[place];
    byId("strip-title").replaceChildren(title, level ? `: ${level}` : "");
    byId("strip-feature").value = place;
    for (const row of document.querySelectorAll("#features tbody tr, #heatmap tr[data-place]")) {
      row.toggleAttribute("data-picked", Number(row.dataset.place) === place);
    }
  }

  /* A feature that is clicked in a table: the keyboard goes on in the list of the features above the picture. */
  function pick(place) {
    drawStrip(place);
    byId("strips").scrollIntoView();
    byId("strip-feature").focus({ preventScroll: true });
  }

  function offerStrips() {
    strips.features.forEach((_, place) => {
      const [start, left, end] = parted(report.features[place], 60);
      byId("strip-feature").add(new Option(`${place + 1}. ${start}${left ? "…" : ""}${end}`, place));
    });
    for (const row of rows.slice(0, strips.features.length)) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "pick";
      button.append(...row.cells[0].childNodes);
      button.addEventListener("click", () => pick(Number(row.dataset.place)));
      row.cells[0].append(button);
    }
    byId("heatmap")?.addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-place]");
      if (row && row.dataset.place < strips.features.length) pick(Number(row.dataset.place));
    });
    byId("strip-feature").addEventListener("change", (event) => drawStrip(Number(event.target.value)));
  }

  function limitStrips() {
    const list = byId("strip-feature");
    for (const option of list.options) option.hidden = option.disabled = option.value >= Math.max(k, 1);
    drawStrip(Number(list.value) < k ? Number(list.value) : 0);
  }

  /* ------------------------------------------------------------------------------------------------------------- the slider */

  function update(wanted) {
    k = Math.min(highest, Math.max(lowest, Math.round(wanted)));
    range.value = k;
    byId("k-number").value = k;
    byId("k-less").disabled = k <= lowest;
    byId("k-more").disabled = k >= highest;
    swap();
    byId("k-back").hidden = k === report.k;
    for (const element of document.querySelectorAll("[data-k]")) element.textContent = k;
    fillTable();
    fillHeatmap();
    if (strips) limitStrips();
    fillConfusion();
    drawNumbers();
    predict?.(k);
    search?.(k);
    const lines = [...document.querySelectorAll(".path-chart .path")].reverse(); // the first feature is drawn last
    lines.forEach((line, place) => line.classList.toggle("out", place >= k));
  }

  range.addEventListener("input", () => update(Number(range.value)));
  byId("k-number").addEventListener("change", (event) => update(Number(event.target.value) || k));
  byId("k-less").addEventListener("click", () => update(k - 1));
  byId("k-more").addEventListener("click", () => update(k + 1));
  byId("k-back").addEventListener("click", () => {
    update(report.k);
    range.focus();
  });
  byId("filter").addEventListener("input", showRows);
  byId("download").addEventListener("click", () => download(tsv((text) => text), ""));
  byId("download-safe").addEventListener("click", () => download(`\ufeff${tsv(guarded)}`, "-spreadsheet"));
  for (const chart of document.querySelectorAll(".score-chart")) {
    chart.addEventListener("click", (event) => {
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      const { first, step } = chart.querySelector(".marker").dataset;
      if (Number(step)) update(1 + (place.x - first) / step);
    });
  }

  for (const row of rows) {
    while (row.cells.length < headers.length) row.insertCell().className = headers[row.cells.length - 1].className;
  }
  if (strips) offerStrips();
  byId("no-slider").hidden = true;
  byId("controls").hidden = false;
  for (const element of document.querySelectorAll(".scripted")) element.hidden = false;
  update(k);
})();
