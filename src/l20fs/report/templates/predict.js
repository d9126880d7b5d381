/* The field that predicts pasted samples with the numbers of the panel. Nothing leaves the page, no text becomes markup. */
if (data.panel) {
  const { features, outputs, isRegression, transform, minimum, maximum, rules } = data.panel;
  const MOST_ROWS = 200;
  const SOFT_FACTOR = 0.25; // of the soft part of the probabilities
  const MARGIN = 0.1; // a value is out of range if it is beyond by more than this share of the range
  const SEPARATORS = "Separate values by tabs, semicolons or commas.";
  let k = data.k;

  /* ------------------------------------------------------------------------------------------------------- prediction */

  function valuesOf(sample, { weights, intercept }) {
    return intercept.map((start, value) =>
      start === null ? -Infinity : sample.reduce((total, x, place) => total + x * weights[place][value], start),
    );
  }

  function softmax(scores) {
    const largest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => power / total);
  }

  const perClass = (values) => (values.length === 1 ? [-0.5 * values[0], 0.5 * values[0]] : values);

  function probabilitiesOf(values, { slope, doubt, offset }) {
    const scores = perClass(values).map((value, c) => (value === -Infinity ? value : slope * value + (offset[c] ?? 0)));
    const soft = softmax(scores.map((score) => SOFT_FACTOR * score));
    return softmax(scores).map((sharp, c) => (1 - doubt) * sharp + doubt * soft[c]);
  }

  const decide = (values) => (values.length === 1 ? Number(values[0] > 0) : values.indexOf(Math.max(...values)));

  /* --------------------------------------------------------------------------------------------------- what is pasted */

  const isNumber = (text) => /^[+\-\u2212]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
  const isValue = (text) => isNumber(text.replace(",", ".")) || /^(na|nan|n\/a|null|-|\?)?$/i.test(text);
  const isOneOf = (cell, names) => names.some((name) => name.trim() === cell);

  /* Rows of cells; a cell in quotes may hold separators. */
  function split(text) {
    const lines = text.replace(/^\ufeff/, "").split(/\r\n?|\n/).filter((line) => line.trim());
    const bare = lines[0].replace(/"[^"]*"/g, "");
    const separator = isOneOf(lines[0].trim(), features) ? null : (["\t", ";", ","].find((sign) => bare.includes(sign)) ?? /\s+/);
    return lines.map((line) => {
      if (separator === null) return [line.trim()];
      if (separator instanceof RegExp) return line.trim().split(separator);
      const cells = line.match(new RegExp(`("(?:[^"]|"")*"|[^${separator}]*)(${separator}|$)`, "g")).slice(0, -1);
      const trimmed = cells.map((cell) => (cell.endsWith(separator) ? cell.slice(0, -1) : cell).trim());
      const whole = line.endsWith(separator) ? [...trimmed, ""] : trimmed;
      return whole.map((cell) => (/^".*"$/.test(cell) ? cell.slice(1, -1).replaceAll('""', '"') : cell));
    });
  }

  /* Samples with a name and the cells of the k features in order, or a problem. */
  function read(text, needed) {
    const [first, ...others] = split(text);
    const hasNames = first.some((cell, i) => isOneOf(cell, features) || (!isValue(cell) && (i > 0 || first.length === 1)));
    if (!hasNames) {
      return [first, ...others].map((cells, i) => {
        const name = cells.length === needed.length + 1 ? cells[0] : String(i + 1);
        const values = cells.slice(-needed.length);
        const isRight = cells.length === needed.length || cells.length === needed.length + 1;
        return isRight ? { name, values } : { name, problem: `${cells.length} values for ${needed.length} features. ${SEPARATORS}` };
      });
    }
    const columns = needed.map((name) => first.indexOf(name.trim()));
    const missing = needed.filter((_, place) => columns[place] < 0);
    if (missing.length) {
      const more = missing.length > 5 ? ` and ${missing.length - 5} more` : "";
      throw new Error(`Columns are missing: ${missing.slice(0, 5).join(", ")}${more}. l20fs predict finds substitutes; or move the slider.`);
    }
    const shift = others.length && others[0].length === first.length + 1 ? 1 : 0; // the names of the samples have no header
    const hasSamples = shift || !isOneOf(first[0], features);
    return others.map((row, i) => ({
      name: hasSamples ? row[0] : String(i + 1),
      values: columns.map((column) => row[column + shift] ?? ""),
    }));
  }

  /* The numbers of a sample, what is wrong with them, and which are outside the training range. */
  function measure(values, needed) {
    const [problems, outside] = [[], []];
    const numbers = values.map((cell, place) => {
      const number = isNumber(cell) ? Number(cell.replace("\u2212", "-")) : NaN;
      if (Number.isNaN(number)) problems.push(`${needed[place]} ${cell ? `is no number: ${cell.slice(0, 20)}` : "has no value"}`);
      else if (transform === "log1p" && number < 0) problems.push(`${needed[place]} is negative, and the panel takes log(1 + x)`);
      const x = transform === "log1p" ? Math.log1p(number) : number;
      const margin = MARGIN * (maximum[place] - minimum[place]);
      if (x < minimum[place] - margin || x > maximum[place] + margin) outside.push(needed[place]);
      return x;
    });
    return { numbers, problems, outside };
  }

  /* ---------------------------------------------------------------------------------------------------- what is shown */

  const list = (texts) => texts.slice(0, 5).join(", ") + (texts.length > 5 ? ` and ${texts.length - 5} more` : "");

  function addCell(row, text, kind = "", value = undefined) {
    const cell = row.insertCell();
    cell.className = kind;
    cell.textContent = text;
    if (value !== undefined) cell.dataset.value = value;
    return cell;
  }

  function showSample(body, sample, needed, rule) {
    const row = body.insertRow();
    const header = document.createElement("th");
    header.scope = "row";
    header.textContent = sample.name.slice(0, 60);
    row.append(header);
    const { numbers, problems, outside } = sample.problem ? { problems: [sample.problem] } : measure(sample.values, needed);
    const values = problems.length ? [] : valuesOf(numbers, rule);
    if (values.some((value) => Number.isNaN(value) || value === Infinity)) problems.push("the values are too large");
    if (problems.length) {
      addCell(row, "not predicted").colSpan = outputs.length + Number(!isRegression);
      addCell(row, list(problems), "beware");
      return false;
    }
    if (isRegression) for (const value of values) addCell(row, String(Number(value.toPrecision(4))), "number", value);
    else {
      addCell(row, outputs[decide(values)], "decided");
      for (const share of probabilitiesOf(values, rule)) addCell(row, `${(100 * share).toFixed(1)}\u00a0%`, "number", share);
    }
    addCell(row, outside.length ? `Outside the training range: ${list(outside)}` : "", "beware");
    return true;
  }

  function show() {
    const [text, table, status] = [byId("samples").value, byId("predictions"), byId("prediction-status")];
    const rule = rules[k];
    table.tBodies[0].replaceChildren();
    table.hidden = true;
    status.textContent = "";
    if (!text.trim()) return;
    if (!rule) {
      status.textContent = `This page has no weights for ${k} features. Use l20fs predict with panel.json.`;
      return;
    }
    try {
      const needed = features.slice(0, rule.weights.length);
      const samples = read(text, needed);
      const nDone = samples.slice(0, MOST_ROWS).filter((sample) => showSample(table.tBodies[0], sample, needed, rule)).length;
      const more = samples.length > MOST_ROWS ? ` The first ${MOST_ROWS} rows are shown; l20fs predict takes any number.` : "";
      status.textContent = `${nDone} of ${samples.length} sample${samples.length === 1 ? "" : "s"} predicted with ${needed.length} features.${more}`;
      table.hidden = !samples.length;
    } catch (error) {
      status.textContent = error.message;
    }
  }

  byId("samples").addEventListener("input", show);
  byId("sample-names").addEventListener("click", () => {
    const quoted = (name) => (/["\t\n;,]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
    const header = `${features.slice(0, rules[k]?.weights.length ?? k).map(quoted).join("\t")}\n`;
    const field = byId("samples");
    if (!field.value.startsWith(header)) field.value = header + field.value;
    field.focus();
    show();
  });
  byId("sample-clear").addEventListener("click", () => {
    byId("samples").value = "";
    byId("samples").focus();
    show();
  });
  window.predictWith = (size) => {
    k = size;
    show();
  };
}
