"""``l20fs report``: the page, made again from stored results."""

from __future__ import annotations

from pathlib import Path

import click

from l20fs.cli.output import note, open_in_browser, show
from l20fs.storage.regular_files import MOST_BYTES, LargeFileError, NotAFileError, read_regular


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
def report(folder: Path, open_page: bool) -> None:
    """Write the report page of FOLDER again, from its report.json, without computing anything.

    \b
    Example:
      l20fs report results --open
    """
    from l20fs.report.content import Content
    from l20fs.report.formats import text_writer
    from l20fs.report.page import render
    from l20fs.report.records import ReportError
    from l20fs.storage.result_folder import ResultFolder, describe_change

    stored, page = folder / "report.json", folder / "report.html"
    change = describe_change(folder, stored.name)
    if not stored.is_file():
        raise click.UsageError(f"{folder} has no report.json. Make one with `l20fs select DATA -o {folder}`.")
    if change is not None:
        note(f"warning: {change} The page shows it as it is.")
    try:
        text = render(Content.from_json(read_regular(stored, MOST_BYTES).decode()))
    except (UnicodeDecodeError, NotAFileError, LargeFileError) as error:
        raise ReportError(f"{stored}: this is not a report file of `l20fs select`. Run it again with --force.") from error
    except (ArithmeticError, RecursionError) as error:
        raise ReportError(f"{stored}: no page can show it ({error}). Run `l20fs select` again with --force.") from error
    except ReportError as error:
        raise ReportError(f"{stored}: {error} Run `l20fs select` again with --force.") from error
    ResultFolder(folder, "select").write_again(page.name, text_writer(text))
    show(str(page))
    if open_page:
        open_in_browser(page)
