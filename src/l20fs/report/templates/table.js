"use strict";
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
for (const element of document.querySelectorAll(".scripted")) element.hidden = false;

/* A button in each header of a table sorts its rows, once more the other way round; empty cells stay last. */
const collator = new Intl.Collator("en", { numeric: true });

function sortBy(table, column, sign) {
  const textOf = (row) => row.cells[column].textContent.trim();
  const numberOf = (text) => Number(text.replace(/\s*%$/, "").replace("\u2212", "-"));
  const rows = [...table.tBodies[0].rows];
  const areNumbers = rows.every((row) => textOf(row) === "" || Number.isFinite(numberOf(textOf(row))));
  const compare = (a, b) => {
    const [first, second] = [textOf(a), textOf(b)];
    if (!first || !second) return Number(!first) - Number(!second);
    return sign * (areNumbers ? numberOf(first) - numberOf(second) : collator.compare(first, second));
  };
  table.tBodies[0].append(...rows.sort(compare));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) =>
    header.querySelector("button").addEventListener("click", () => {
      const order = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", order);
      sortBy(table, column, order === "ascending" ? 1 : -1);
    }),
  );
}

/* A file that the reader keeps. */
function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
}
