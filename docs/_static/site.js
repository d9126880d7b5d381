// Names for readers of screens, where the theme and the gallery leave them out.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary")) {
    if (summary.textContent.trim()) continue;
    const link = summary.closest("li")?.querySelector("a");
    summary.setAttribute("aria-label", `Pages of ${link ? link.textContent.trim() : "this section"}`);
  }
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a.internal")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
  for (const list of document.querySelectorAll("div.citation-list[role=list]")) list.removeAttribute("role");
  for (const item of document.querySelectorAll("div.citation[role]")) item.removeAttribute("role");
});
