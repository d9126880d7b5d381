/* The field that predicts: samples as text, and the rule of the slider's k. Nothing leaves the page, no text becomes markup. */
function startPrediction(report, rules, named) {
  const { sizes, n_values: nValues, slope, doubt, offset, minimum, maximum, transform } = report.panel;
  const byId = (id) => document.getElementById(id);
  const isRegression = report.task === "regression";
  const outputs = isRegression ? report.targets : report.classes;
  const MOST_ROWS = 200;
  const SOFT_FACTOR = 0.25; // what scores are multiplied by for the soft part, as in l20fs.prediction.calibration
  const MARGIN = 0.1; // a value is out of range if it is beyond by more than this share of the range, as in l20fs predict
  let k = 0;

  /* --------------------------------------------------------------------------------------------------------- prediction */

  /* The weights of a size, row after row, then its intercepts; the sizes follow each other. */
  const ruleOf = new Map();
  sizes.reduce((start, size) => {
    ruleOf.set(size, new Float64Array(rules, 8 * start, (size + 1) * nValues));
    return start + (size + 1) * nValues;
  }, 0);

  function valuesOf(sample) {
    const rule = ruleOf.get(k);
    const values = Array.from({ length: nValues }, (_, value) => {
      const sum = sample.reduce((total, x, place) => total + x * rule[place * nValues + value], 0);
      return sum + rule[k * nValues + value];
    });
    return nValues > 1 && nValues < outputs.length ? [...values, 0] : values; // those of classes are less that of the last
  }

  /* A class that is never predicted has an infinite intercept; any other value is finite, or too large. */
  const overflows = (values) =>
    values.slice(0, nValues).some((value, i) => !Number.isFinite(value) && Number.isFinite(ruleOf.get(k)[k * nValues + i]));

  function probabilitiesOf(values) {
    const perClass = nValues === 1 ? [-0.5 * values[0], 0.5 * values[0]] : values;
    const scores = perClass.map((value, c) => slope[k - 1] * value + offset[k - 1][c]);
    const soft = softmax(scores.map((score) => SOFT_FACTOR * score));
    return softmax(scores).map((sharp, c) => (1 - doubt[k - 1]) * sharp + doubt[k - 1] * soft[c]);
  }

  function softmax(scores) {
    const largest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => power / total);
  }

  const decide = (values) => (nValues === 1 ? Number(values[0] > 0) : values.indexOf(Math.max(...values)));

  /* ------------------------------------------------------------------------------------------------------- what is pasted */

  const isNumber = (text) => /^[+\-\u2212]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
  const hasDecimalComma = (text) => /^[+\-\u2212]?\d+,\d+(e[+-]?\d+)?$/i.test(text);
  const isValue = (text) => isNumber(text) || hasDecimalComma(text) || /^(na|nan|n\/a|null|-|\?)?$/i.test(text);
  const isOneOf = (cell, names) => names.some((name) => name.trim() === cell);

  function separatorOf(line) {
    if (isOneOf(line.trim(), report.features)) return null;
    const bare = line.replace(/"[^"]*"/g, "");
    return ["\t", ";", ","].find((sign) => bare.includes(sign)) ?? " ";
  }

  /* Rows of cells. A cell in quotes may hold separators and ends of lines; a quote that is not closed is a sign like others. */
  function split(text, separator) {
    const inQuotes = new RegExp(`"((?:[^"]|"")*)" *(?=${separator ?? "\\n"}|\\n|$)`, "y");
    const rows = [[]];
    let cell = "";
    const endCell = () => {
      if (separator !== " " || cell) rows.at(-1).push(cell.trim());
      cell = "";
    };
    for (let i = 0; i < text.length; i++) {
      inQuotes.lastIndex = i;
      const match = text[i] === '"' && !cell.trim() ? inQuotes.exec(text) : null;
      if (match) {
        cell = match[1].replaceAll('""', '"');
        i += match[0].length - 1;
      } else if (text[i] === separator) endCell();
      else if (text[i] === "\n") {
        endCell();
        rows.push([]);
      } else cell += text[i];
    }
    endCell();
    return rows.filter((row) => row.some((entry) => entry));
  }

  /* Return { problem } or { samples: [{ name, cells } or { name, problem }] } with the cells of the k features in order. */
  function read(text) {
    const lines = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
    const rows = split(lines, separatorOf(lines.trim().split("\n")[0]));
    const needed = report.features.slice(0, k);
    const [first] = rows;
    const hasText = first.some((cell, i) => !isValue(cell) && (i > 0 || first.length === 1 || isOneOf(cell, report.features)));
    if (!hasText && !(rows.length > 1 && needed.every((name) => first.includes(name.trim())))) return readBare(rows);
    return readNamed(first, rows.slice(1), needed);
  }

  function readBare(rows) {
    const samples = rows.map((cells, i) => {
      const hasName = cells.length === k + 1 && !isValue(cells[0]);
      const name = hasName ? cells[0] : String(i + 1);
      if (cells.length === k + hasName) return { name, cells: cells.slice(Number(hasName)) };
      return { name, problem: `${cells.length} values for ${k} feature${k === 1 ? "" : "s"}. ${SEPARATORS}` };
    });
    return { samples };
  }
  const SEPARATORS = "Separate them by tabs, semicolons or commas; with decimal commas neither by commas nor by nothing.";

  function readNamed(header, rows, needed) {
    const found = needed.map((name) => header.flatMap((cell, i) => (cell === name.trim() ? [i] : [])));
    const missing = needed.filter((_, place) => !found[place].length);
    if (missing.length === k) {
      const isTurned = rows.filter((row) => isOneOf(row[0], needed)).length > 0;
      return { problem: isTurned ? TURNED : [`The first row has none of the ${k} names: `, ...listed(missing), "."] };
    }
    if (missing.length) return { problem: ["Columns are missing: ", ...listed(missing), `. ${SUBSTITUTES}`] };
    const twice = needed.filter((_, place) => found[place].length > 1);
    if (twice.length) return { problem: ["There is more than one column ", ...listed(twice), "."] };
    if (!rows.length) return { problem: "There are names, but no row of values yet." };
    const shift = rows[0].length === header.length + 1 ? 1 : 0; // the names of the samples have no header
    const isName = shift || (!isOneOf(header[0], report.features) && rows.some((row) => !isValue(row[0])));
    const samples = rows.map((row, i) => {
      const name = (isName && row[0]) || String(i + 1);
      if (row.length > header.length + shift) return { name, problem: `${row.length} cells below ${header.length} names. ${SEPARATORS}` };
      return { name, cells: found.map(([column]) => row[column + shift] ?? "") };
    });
    return { samples };
  }
  const SUBSTITUTES = "This page cannot do without them. The command l20fs predict finds substitutes, or move the slider.";
  const TURNED = "The features are in rows. Turn the table: one row per sample, one column per feature.";

  /* Numbers of a sample after the transformation, or the reason why there are none; and notes about them. */
  function measure({ cells, problem }) {
    const [bad, notes] = [[], []];
    const numbers = (cells ?? []).map((cell, place) => {
      const number = isNumber(cell) ? Number(cell.replace("\u2212", "-")) : NaN;
      const name = report.features[place];
      if (!Number.isFinite(number)) {
        const value = cell.length > 20 ? `${cell.slice(0, 20)}…` : cell;
        if (hasDecimalComma(cell)) bad.push([name, ` has a decimal comma: write ${cell.replace(",", ".")} for ${cell}`]);
        else bad.push([name, cell ? ` is no number: ${value}` : " has no value"]);
      } else if (transform === "log1p" && number < 0) {
        bad.push([name, ` is ${cell}, but the panel takes log(1 + x) of values from 0`]);
      }
      const x = transform === "log1p" ? Math.log1p(number) : number;
      const [low, high] = [minimum[place], maximum[place]];
      const margin = Math.max(MARGIN * (high - low), 1e-9 * Math.max(Math.abs(low), Math.abs(high)));
      if (x < low - margin || x > high + margin) {
        const [from, to] = transform === "log1p" ? [Math.expm1(low), Math.expm1(high)] : [low, high];
        notes.push([name, ` = ${short(number)}, in training ${short(from)} to ${short(to)}`]);
      }
      return x;
    });
    return { numbers, notes, bad: problem ? [["", problem]] : bad };
  }

  /* --------------------------------------------------------------------------------------------------------- what is shown */

  const short = (number) => String(Number(number.toPrecision(4)));
  const listed = (names) => [
    ...names.slice(0, 5).flatMap((name, i) => [i ? ", " : "", named(name, 28)]),
    names.length > 5 ? ` and ${names.length - 5} more` : "",
  ];
  const told = (notes) => [
    ...notes.slice(0, 5).flatMap(([name, text], i) => [i ? "; " : "", ...(name ? [named(name, 28)] : []), text]),
    notes.length > 5 ? `; and ${notes.length - 5} more` : "",
  ];

  function addCell(row, parts, kind, value) {
    const cell = row.insertCell();
    cell.className = kind;
    cell.append(...parts);
    if (value !== undefined) cell.dataset.value = value;
  }

  function showSample(body, sample) {
    const row = body.insertRow();
    const header = document.createElement("th");
    header.scope = "row";
    header.append(named(sample.name, 28));
    row.append(header);
    const { numbers, notes, bad } = measure(sample);
    const refuse = (reasons) => {
      row.insertCell().colSpan = outputs.length + Number(!isRegression);
      row.cells[1].textContent = "not predicted";
      addCell(row, told(reasons), "beware");
      return false;
    };
    if (bad.length) return refuse(bad);
    const values = valuesOf(numbers);
    const shares = isRegression ? [] : probabilitiesOf(values);
    if (overflows(values) || shares.some(Number.isNaN)) {
      return refuse([["", "The values are too large to predict with"]]);
    }
    if (isRegression) for (const value of values) addCell(row, [short(value)], "number", value);
    else {
      addCell(row, [named(outputs[decide(values)], 28)], "decided");
      for (const share of shares) addCell(row, [`${(100 * share).toFixed(1)}\u00a0%`], "number", share);
    }
    addCell(row, notes.length ? ["Outside what the panel was trained on: ", ...told(notes)] : [], "beware");
    return true;
  }

  function show() {
    const text = byId("samples").value;
    const table = byId("predictions");
    const status = byId("prediction-status");
    table.tBodies[0].replaceChildren();
    table.hidden = true;
    if (!text.trim() || !k) status.textContent = "";
    else if (!ruleOf.has(k)) {
      status.textContent = `This page has no weights for ${k} features. Use l20fs predict with panel.json.`;
    } else {
      const { samples, problem } = read(text);
      if (problem) status.replaceChildren(...[problem].flat());
      else {
        const nDone = samples.slice(0, MOST_ROWS).filter((sample) => showSample(table.tBodies[0], sample)).length;
        const more = samples.length > MOST_ROWS ? ` The first ${MOST_ROWS} rows are shown; l20fs predict takes any number.` : "";
        status.textContent = `${nDone} of ${samples.length} sample${samples.length === 1 ? "" : "s"} predicted with ${k} feature${k === 1 ? "" : "s"}.${more}`;
        table.hidden = false;
      }
    }
  }

  byId("samples").addEventListener("input", show);
  byId("sample-names").addEventListener("click", () => {
    const field = byId("samples");
    const quoted = (name) => (/["\t\n;,]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
    const header = `${report.features.slice(0, k).map(quoted).join("\t")}\n`;
    if (!field.value.startsWith(header)) field.value = header + field.value;
    field.focus();
    show();
  });
  byId("sample-clear").addEventListener("click", () => {
    byId("samples").value = "";
    byId("samples").focus();
    show();
  });

  return (size) => {
    k = size;
    show();
  };
}
