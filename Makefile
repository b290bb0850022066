# `make demo` and `make test` do all their set-up in .venv; a machine needs only make and Python 3.11 or later with venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint clean

demo: $(STAMP)
	@echo '$$ whynan run examples/digits.py'
	@$(BIN)/whynan run examples/digits.py; status=$$?; echo "exit status $$status (whynan is in $(BIN): source $(BIN)/activate)"; test $$status -eq 3

test: $(STAMP) lint
	$(BIN)/python -m pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

# torch first and by its exact version alone, so that pip takes the wheel for this machine (the CPU one where an index offers it)
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install -q -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[torch,dev]'
	touch $(STAMP)

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache
