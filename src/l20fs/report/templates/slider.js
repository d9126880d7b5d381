/* The number of features: everything on the page that depends on it follows the slider. */
(() => {
  const [range, number, table] = [byId("k-range"), byId("k-number"), byId("features")];
  const [least, most] = [Number(range.min), Number(range.max)];
  const rows = [...table.tBodies[0].rows];
  const heatmap = byId("heatmap");
  const svg = byId("marker").ownerSVGElement;
  const { low, high, left, right } = data.axis; // of the curve: its numbers, and where they stand
  let k = Number(range.value);

  function scoreText() {
    if (k === data.k) return data.score.quoted;
    const value = data.score.of[k];
    if (value === undefined) return "no score";
    return `${data.score.name} ${data.score.isShare ? `${(100 * value).toFixed(0)}\u00a0%` : value.toPrecision(3)}`;
  }

  function fillConfusion() {
    const shares = data.confusion[k];
    if (!byId("confusion") || !shares) return;
    [...byId("confusion").tBodies[0].rows].forEach((row, truth) =>
      [...row.cells].slice(1).forEach((cell, predicted) => {
        const share = shares[truth][predicted];
        cell.textContent = `${(100 * share).toFixed(0)} %`;
        cell.className = `h${(truth === predicted ? -1 : 1) * Math.ceil(5 * share)}`;
      }),
    );
  }

  function arrangeHeatmap() {
    let n = 0;
    const top = Number(heatmap.dataset.top);
    for (const row of heatmap.querySelectorAll(".row")) {
      const isIn = Number(row.dataset.rank) <= k;
      if (isIn) {
        row.setAttribute("transform", `translate(0 ${top + 18 * n++})`);
        row.removeAttribute("display");
      } else row.setAttribute("display", "none");
    }
    byId("heat-scale").setAttribute("transform", `translate(164 ${top + 18 * n + 14})`);
    const height = top + 18 * n + 46;
    heatmap.setAttribute("height", height);
    heatmap.setAttribute("viewBox", `0 0 ${heatmap.getAttribute("width")} ${height}`);
  }

  function showRows() {
    const wanted = byId("filter").value.trim().toLowerCase();
    let nShown = 0;
    for (const row of rows) {
      row.hidden = Number(row.dataset.rank) > k || !row.textContent.toLowerCase().includes(wanted);
      nShown += !row.hidden;
    }
    byId("n-shown").textContent = wanted ? `${nShown} shown` : "";
    byId("nothing-found").hidden = !wanted || nShown > 0;
  }

  function moveMarker() {
    const x = left + ((k - low) / Math.max(high - low, 1)) * (right - left);
    const line = byId("marker").querySelector("line");
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    byId("marker").toggleAttribute("hidden", k === data.k);
  }

  function update(wanted) {
    k = Math.min(Math.max(Math.round(wanted) || least, least), most);
    range.value = number.value = k;
    const text = scoreText();
    byId("k-score").textContent = text;
    range.setAttribute("aria-valuetext", `${k} ${data.noun}${k === 1 ? "" : "s"}, ${text}`);
    byId("k-back").hidden = k === data.k || data.k > most;
    byId("k-less").disabled = k <= least;
    byId("k-more").disabled = k >= most;
    table.classList.toggle("other-k", k !== data.k);
    fillConfusion();
    arrangeHeatmap();
    showRows();
    moveMarker();
    for (const strip of document.querySelectorAll(".strip")) if (Number(strip.dataset.rank) > k) strip.hidden = true;
    if (window.predictWith) predictWith(k);
  }

  range.addEventListener("input", () => update(Number(range.value)));
  number.addEventListener("change", () => update(Number(number.value)));
  byId("k-less").addEventListener("click", () => update(k - 1));
  byId("k-more").addEventListener("click", () => update(k + 1));
  byId("k-back").addEventListener("click", () => {
    update(data.k);
    range.focus();
  });
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    update(low + ((x - left) / (right - left)) * (high - low));
  });
  byId("filter").addEventListener("input", showRows);
  byId("weights")?.addEventListener("change", (event) => table.classList.toggle("with-weights", event.target.checked));

  /* The rows that are shown, with all columns. */
  byId("download").addEventListener("click", () => {
    const quoted = (text) => (/["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const textOf = (cell) => cell.querySelector("bdi[title]")?.title ?? cell.textContent.trim();
    const lines = [table.tHead.rows[0], ...table.tBodies[0].rows].filter((row) => !row.hidden);
    const kept = (cell) => k === data.k || !cell.classList.contains("of-k");
    const text = lines.map((row) => [...row.cells].filter(kept).map((cell) => quoted(textOf(cell))).join("\t"));
    save(`features-${k}.tsv`, "text/tab-separated-values", `${text.join("\n")}\n`);
  });

  /* A click on a name shows the values of the feature beside the others, or hides them. */
  const strips = [...document.querySelectorAll(".strip")];
  rows.forEach((row, place) => {
    if (!strips.length) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "pick";
    button.append(...row.cells[0].childNodes);
    button.setAttribute("aria-pressed", !strips[place].hidden);
    button.addEventListener("click", () => {
      strips[place].hidden = !strips[place].hidden;
      button.setAttribute("aria-pressed", !strips[place].hidden);
      if (!strips[place].hidden) strips[place].scrollIntoView({ block: "nearest" });
    });
    row.cells[0].append(button);
  });

  byId("copy").addEventListener("click", async () => {
    const text = byId("methods-text").innerText;
    try {
      await navigator.clipboard.writeText(text);
      byId("copied").textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(byId("methods-text"));
      byId("copied").textContent = "Selected: copy it with the keyboard.";
    }
  });

  byId("controls").hidden = false;
  update(k);
})();
