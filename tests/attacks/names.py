"""Names that no text can hold, panels that are not what they seem, and a number without sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from panel_samples import fitted

from attacks import attack
from l20fs.prediction.panel_file import content_hash

NO_PANEL = r"^error: '.*panel\.json': "


def arrays(folder: Path, **changes: Any) -> list[str]:
    """Write arrays with names."""
    given = {"X": np.eye(8), "y": np.array(["a", "b"] * 4), "feature_names": np.array([f"g{j}" for j in range(8)])}
    np.savez(folder / "table.npz", **given | changes)
    return ["select", str(folder / "table.npz"), "-o", str(folder / "out")]


@attack(r"^error: table\.npz: 'g\\udcff' cannot be the name of a feature")
def half_a_character_in_a_feature(folder: Path) -> list[str]:
    return arrays(folder, feature_names=np.array(["g\udcff", *"bcdefgh"]))


@attack(r"^error: table\.npz: 'a\\ud800'.* cannot be the name of a class")
def half_a_character_in_a_class(folder: Path) -> list[str]:
    return arrays(folder, y=np.array(["a\ud800", "b"] * 4))


@attack(r"^error: table\.npz: 'a\\x00b' cannot be the name of a feature")
def nul_in_a_feature(folder: Path) -> list[str]:
    return arrays(folder, feature_names=np.array(["a\0b", *"bcdefgh"]))


def changed_panel(folder: Path, **changes: Any) -> list[str]:
    """Write a panel.json with other values and the hash of these."""
    stored = {name: value for name, value in json.loads(fitted()[0].to_json()).items() if name != "sha256"} | changes
    (folder / "panel.json").write_text(json.dumps(stored | {"sha256": content_hash(stored)}))
    (folder / "new.csv").write_text("a,b\n1,2\n")
    return ["predict", str(folder / "panel.json"), str(folder / "new.csv")]


@attack(NO_PANEL)
def panel_with_half_a_character(folder: Path) -> list[str]:
    return changed_panel(folder, targets=["y\ud800"])


@attack(NO_PANEL)
def panel_of_other_types(folder: Path) -> list[str]:
    return changed_panel(folder, rules=[[]])


@attack(NO_PANEL)
def panel_with_a_huge_number(folder: Path) -> list[str]:
    return changed_panel(folder, k=10**400)


@attack(NO_PANEL)
def panel_that_is_too_deep(folder: Path) -> list[str]:
    arguments = changed_panel(folder)
    (folder / "panel.json").write_text('{"a":' * 100_000)
    return arguments


@attack(r"'--stability': 1000000000 is not in the range", code=2)
def halves_without_end(folder: Path) -> list[str]:
    return ["select", "demo", "--stability", str(10**9)]
