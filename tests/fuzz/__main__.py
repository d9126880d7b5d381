"""Command line of the fuzzer: ``python -m fuzz --seconds 600``, with ``tests`` on the path."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

from attacks.runner import load_everything

from fuzz.case import Cases
from fuzz.corpus import Target, make_targets
from fuzz.forks import Found, kind_of, run_cases


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description="Read damaged files of every format.")
    parser.add_argument("--seed", type=int, help="the same seed gives the same cases; without one, it is drawn and printed")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so much time")
    parser.add_argument("--per-target", type=int, default=10**9, help="stop after so many cases of each target")
    parser.add_argument("--flips", type=int, default=0, help="only flip bytes, and stop after so many")
    parser.add_argument("--only", nargs="*", help="names of targets; all without any")
    parser.add_argument("--repeat", type=int, metavar="NUMBER", help="run this case of the target, and keep its files")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="folder for the files of the cases that fail")
    return parser.parse_args()


def main() -> int:
    options = parse()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    load_everything()
    corpus = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        targets = [each for each in make_targets(corpus) if not options.only or each.name in options.only]
        print(f"seed {seed}, {len(targets)} targets: {', '.join(each.name for each in targets)}", flush=True)
        if options.repeat is not None:
            return repeat(targets[0], options.repeat, corpus, seed, options)
        limits = {"n_cases": options.per_target * len(targets), "n_flips": options.flips, "seconds": options.seconds}
        start = time.monotonic()
        found = run_cases(targets, corpus, seed=seed, jobs=options.jobs, **limits)
        tell(found, time.monotonic() - start)
        for target, number, _ in found.faults:
            keep(next(each for each in targets if each.name == target), number, corpus, seed, options)
        return int(bool(found.faults))
    finally:
        shutil.rmtree(corpus)


def tell(found: Found, seconds: float) -> None:
    """Print the counts, and one case of each kind of fault."""
    print(
        f"{found.n_cases} cases in {seconds:.0f} s, {found.n_flips} bytes flipped, {found.n_read} read, "
        f"{len(found.faults)} faults"
    )
    kinds: dict[str, list[tuple[str, int, str]]] = {}
    for each in found.faults:
        kinds.setdefault(kind_of((each[0], 0, each[2])), []).append(each)
    for kind, cases in sorted(kinds.items(), key=lambda item: -len(item[1])):
        target, number, fault = cases[0]
        print(f"\n{len(cases)} x {kind}\n--only {target!r} --repeat {number}\n{fault.strip()[-1500:]}")


def keep(target: Target, number: int, corpus: Path, seed: int, options: argparse.Namespace) -> Path:
    """Write the damaged files of a case where they stay."""
    folder = options.keep / f"{target.name} {seed} {number}"
    cases = Cases(target, corpus / target.name, folder, seed, only_flips=bool(options.flips))
    file, content, _ = cases.damaged(number)
    (folder / file).write_bytes(content)
    return folder


def repeat(target: Target, number: int, corpus: Path, seed: int, options: argparse.Namespace) -> int:
    """Run one case in this process, so that a debugger can follow it."""
    print(keep(target, number, corpus, seed, options), flush=True)
    cases = Cases(target, corpus / target.name, corpus / "work", seed, only_flips=bool(options.flips))
    fault = cases.run(number).fault
    print(fault or "no fault")
    return int(bool(fault))


if __name__ == "__main__":
    sys.exit(main())
