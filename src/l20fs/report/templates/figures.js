/* The button of a figure saves it as an SVG of its own, in the light colours of paper. */
const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "font-size", "font-weight"];

function standAlone(svg) {
  const copy = svg.cloneNode(true);
  const [ours, theirs] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  ours.forEach((element, i) => {
    const look = getComputedStyle(element);
    for (const name of LOOKS) theirs[i].setAttribute(name, look.getPropertyValue(name));
    theirs[i].removeAttribute("class");
  });
  for (const element of copy.querySelectorAll("[display=none], [hidden]")) element.remove();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", "sans-serif");
  return new XMLSerializer().serializeToString(copy);
}

for (const figure of document.querySelectorAll(".figure")) {
  figure.querySelector(".save").addEventListener("click", () => {
    document.documentElement.classList.add("light");
    const text = standAlone(figure.querySelector("svg"));
    document.documentElement.classList.remove("light");
    save(`${figure.dataset.file}.svg`, "image/svg+xml", text);
  });
}
