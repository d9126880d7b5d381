"""Configuration of the documentation site; ``make docs`` builds it into build/docs/html."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import inventories
import numpydoc.xref

import l20fs

project = "l20fs"
author = "l20fs developers"
project_copyright = author
version = release = l20fs.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "command_help",
    "page_titles",
    "reports",
]
exclude_patterns = ["_ext", "requirements.txt", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.zip"]
templates_path = ["_templates"]
highlight_language = "none"  # of indented blocks: formulas and commands
nitpicky = False
default_role = None

# Pages
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Objects
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc's sections have the types
autodoc_default_options = {"inherited-members": None}
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc.xref.DEFAULT_LINKS.clear()  # of words such as bool, which need inventories of Python and NumPy
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # but for these words:
numpydoc_xref_aliases = {
    "AnnData": "anndata.AnnData",
    "DataFrame": "pandas.DataFrame",
    "ndarray": "numpy.ndarray",
    "SolutionPath": "l20fs.SolutionPath",
    "Panel": "l20fs.Panel",
    "NearOptimalPanels": "l20fs.NearOptimalPanels",
    "Constraints": "l20fs.Constraints",
}
toc_object_entries_show_parents = "hide"

# Other projects. Without a network the few names that these pages use are found in inventories of our own.
intersphinx_mapping = inventories.mapping(Path(__file__).parents[1] / "build" / "docs" / "inventories")
intersphinx_timeout = 5

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "reports.in_order",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib", "reports"),
    "matplotlib_animations": False,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("l20fs",),
    "reference_url": {"l20fs": None},
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "copyfile_regex": r".*\.rst",
    "thumbnail_size": (480, 336),
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "l20fs"
html_static_path = ["_static"]
html_favicon = "_static/logo.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_sidebars = {"**": []}
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "l20fs", "alt_text": ""},
    "github_url": "https://github.com/l20fs/l20fs",
    "use_edit_page_button": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 3,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def skip_settings(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out attributes of classes that are neither methods nor properties: settings by which classes differ."""
    is_documented = callable(obj) or isinstance(obj, property | classmethod | staticmethod | functools.cached_property)
    return None if what != "class" or is_documented or inspect.isroutine(obj) else True


def keep_initials(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let no reference begin with an initial and a blank, which would be the first item of a list."""
    lines[:] = [re.sub(r"^(\s*\.\. \[\S+\] [A-Z]\.) ", "\\1\N{NO-BREAK SPACE}", line) for line in lines]


def setup(app: Any) -> None:
    """Register what is left out, and what is changed in docstrings after numpydoc."""
    app.connect("autodoc-skip-member", skip_settings)
    app.connect("autodoc-process-docstring", keep_initials, priority=900)
