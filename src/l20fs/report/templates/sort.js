"use strict";

/* Tables with class "sortable": a button in each header sorts the rows, once more the other way round. */
const sortTable = (() => {
  const collator = new Intl.Collator("en", { numeric: true });
  const textOf = (row, column) => {
    const cell = row.cells[column];
    return cell?.dataset.sort ?? cell?.textContent ?? "";
  };

  /* Sorts by the column that says it is sorted. Rows that are equal, or without a value, keep their first order. */
  function sortTable(table) {
    const headers = [...table.tHead.rows[0].cells];
    const column = headers.findIndex((header) => header.hasAttribute("aria-sort"));
    if (column < 0) return;
    const sign = headers[column].getAttribute("aria-sort") === "descending" ? -1 : 1;
    const entries = [...table.tBodies[0].rows].map((row) => ({ row, text: textOf(row, column) }));
    const isNumber = entries.every(({ text }) => text === "" || Number.isFinite(Number(text)));
    const compare = (a, b) => {
      if (a.text === "" || b.text === "") return (a.text === "") - (b.text === "");
      return sign * (isNumber ? Number(a.text) - Number(b.text) : collator.compare(a.text, b.text));
    };
    entries.sort((a, b) => compare(a, b) || a.row.dataset.place - b.row.dataset.place);
    table.tBodies[0].append(...entries.map(({ row }) => row));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tBodies[0].rows].forEach((row, place) => (row.dataset.place = place));
    const headers = [...table.tHead.rows[0].cells];
    for (const header of headers) {
      header.querySelector("button").addEventListener("click", () => {
        const order = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        headers.forEach((other) => other.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", order);
        sortTable(table);
      });
    }
  }
  return sortTable;
})();
