/* The field that finds any feature: its rank, when it enters, and the selected feature that is most like it. */
function startSearch(report, names, steps, near, { element, fixed, named }) {
  const { n_ranked: nRanked, entry, n_followed: nFollowed } = report.search;
  const byId = (id) => document.getElementById(id);
  const lowered = names.map((name) => name.toLowerCase());
  const MOST_SHOWN = 10;
  const NOBODY = 255;
  let last = 0;
  const ranks = names.map((_, place) => (last += steps[place] ?? 1));
  let k = 0;

  /* Places of the names that hold a text: equal ones first, then those that begin with it, all of them by rank. */
  function find(wanted) {
    const found = lowered.flatMap((name, place) => (name.includes(wanted) ? [place] : []));
    const order = (place) => (lowered[place] === wanted ? 0 : lowered[place].startsWith(wanted) ? 1 : 2);
    return found.sort((a, b) => order(a) - order(b) || a - b);
  }

  /* Texts and names in turn. */
  function describe(place) {
    const rank = ranks[place];
    if (!rank) return ["", names[place], " has no rank: it does not vary, or was left out."];
    const isIn = rank <= k;
    const first = [`: ${report.columns.members ? "its group has " : ""}rank ${rank} of ${nRanked}, ${isIn ? "" : "not "}among the best ${k}.`];
    if (entry) {
      const alpha = entry[place];
      if (alpha != null) first.push(`It enters at λ = ${alpha}.`);
      else if (!isIn) first.push(`It does not enter the model, which was followed up to ${nFollowed} features.`);
    }
    if (!near.length || !report.k || rank <= report.k) return ["", names[place], first.join(" ")];
    const those = `the ${report.k} that the run selected`;
    if (near[place] === NOBODY) return ["", names[place], `${first.join(" ")} None of ${those} is like it.`];
    const correlation = fixed((near[names.length + place] - 100) / 100, 2);
    first.push(`Of ${those}, most like it is `);
    return ["", names[place], first.join(" "), report.features[near[place]], ` (correlation ${correlation}).`];
  }

  function show() {
    const wanted = byId("where-name").value.trim().split(/\s+/).join(" ").toLowerCase();
    const found = wanted ? find(wanted) : [];
    const more = found.length > MOST_SHOWN ? ` The first ${MOST_SHOWN} are shown.` : "";
    byId("where-status").textContent = wanted ? `${found.length} of ${names.length} features found.${more}` : "";
    byId("where-found").replaceChildren(
      ...found.slice(0, MOST_SHOWN).map((place) =>
        element("li", ...describe(place).map((part, i) => (i % 2 ? element("strong", named(part, 40)) : part))),
      ),
    );
  }

  byId("where-name").addEventListener("input", show);
  return (size) => {
    k = size;
    show();
  };
}
