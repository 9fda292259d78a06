# Every target that runs Python first makes .venv, if it is missing, half made, older than the
# files that say what goes into it, made by another Python, or made for another directory.

PYTHON ?= python3
READY := .venv/ready
MADE_BY := $(shell $(PYTHON) -c 'import sys; print(sys.base_prefix, *sys.version_info[:2])' 2>/dev/null) $(CURDIR)

# compat: a plain entry in the path, which also works from the folder above this one.
PIP_FLAGS := --quiet --disable-pip-version-check --config-settings editable_mode=compat

# PyTorch lives in an environment of its own, .venv-oracle, made when `make oracle` first needs it.
TORCH ?= torch==2.13.0
ORACLE := .venv-oracle/ready

.PHONY: help demo test slow lint fuzz mutants bench oracle lesson lessons check pictures clean
help:
	@echo "make demo    run the demonstration"
	@echo "make lesson N=07   run lesson 07; \`.venv/bin/python -m minigrad lessons\` lists them all"
	@echo "make check N=07    look at your answers in lessons/exercises to lesson 07"
	@echo "make lessons   run all lessons, and time them"
	@echo "make test    run the tests; ARGS=\"-k tape -x\" is handed to pytest, ARGS=\"-n 0\" makes it one process"
	@echo "make slow    run what is too long for \`make test\`: a million ops, whole trainings"
	@echo "make fuzz N=10   ten minutes of random programs, faults and signals; SEED=1 for others"
	@echo "make mutants N=300 SEED=1   change the code at random and see whether the tests notice; hours"
	@echo "make lint    check the code with ruff"
	@echo "make bench   measure ops, checkpoints, memory, the import, and what mg.fit has said"
	@echo "make oracle  compare every op, layer and optimizer with $(TORCH); ARGS=\"-k conv\" for some"
	@echo "make pictures   draw all pictures of the README and the lessons again"
	@echo "make clean   remove .venv, .venv-oracle and everything else that was made here"
	@echo "PYTHON=...   after any of these: the Python to use (now $(PYTHON))"

demo: $(READY)
	@.venv/bin/python -m minigrad demo $(ARGS)

# Two processes; one that has nothing left takes tests from the other.
test: $(READY)
	@.venv/bin/python -m pytest -n 2 --dist worksteal $(ARGS)

slow: $(READY)
	@.venv/bin/python -m pytest -n 2 --dist worksteal -m slow $(ARGS)

lint: $(READY)
	@.venv/bin/python -m ruff check .

fuzz: $(READY)
	@.venv/bin/python -m tests.fuzz.run --minutes $(or $(N),10) --seed $(or $(SEED),0)

mutants: $(READY)
	@.venv/bin/python -m tests.mutants.run --number $(or $(N),300) --seed $(or $(SEED),1)

# PyTorch's figures stand beside ours if `make oracle` has installed it.
WITH_TORCH = $(if $(wildcard $(ORACLE)),.venv-oracle,.venv)
bench: $(READY)
	@$(WITH_TORCH)/bin/python tests/bench/record_and_sweep.py
	@.venv/bin/python tests/bench/import_time.py
	@.venv/bin/python tests/bench/plans.py
	@.venv/bin/python tests/bench/fit_deep_networks.py

oracle: $(ORACLE)
	@.venv-oracle/bin/python -m tests.oracle.run $(ARGS)

lesson: $(READY)
	@.venv/bin/python -m minigrad lessons --run "$(N)"

lessons: $(READY)
	@.venv/bin/python -m minigrad lessons --run all

check: $(READY)
	@.venv/bin/python -m minigrad lessons --check "$(N)"

pictures: $(READY)
	@.venv/bin/python -m minigrad pictures --out lessons/pictures

clean:
	rm -rf .venv .venv-oracle out build dist *.egg-info .pytest_cache .hypothesis .ruff_cache
	find . -name .git -prune -o -type d -name __pycache__ -exec rm -rf {} +

# The file is written last, so an interrupted install leaves none and is begun afresh.
# An old Python is turned away here, because pip would look for packages to fit it for many minutes.
$(READY): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and \
		"minigrad needs Python 3.10 or newer; %s is %s" % (sys.executable, sys.version.split()[0]))'
	@echo "Making .venv with $(PYTHON): a minute, this once ..."
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install $(PIP_FLAGS) -e ".[dev]"
	@echo "$(MADE_BY)" > $@

$(ORACLE): setup.cfg pyproject.toml
	@echo "Making .venv-oracle with $(PYTHON) and $(TORCH): some minutes, this once ..."
	@rm -rf .venv-oracle
	@$(PYTHON) -m venv .venv-oracle
	@.venv-oracle/bin/python -m pip install $(PIP_FLAGS) -e . $(TORCH)
	@echo "$(MADE_BY) $(TORCH)" > $@

ifneq ($(shell cat $(ORACLE) 2>/dev/null),$(MADE_BY) $(TORCH))
.PHONY: $(ORACLE)
endif

ifneq ($(shell cat $(READY) 2>/dev/null),$(MADE_BY))
.PHONY: $(READY)
endif
