# The two commands of the README, and what is around them. Needs Python 3.11 or later and network to PyPI.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

PROMPT ?= The capital of France is
TOKENS ?= 20
RATE ?= 0.0001
WEIGHTS ?=
export PROMPT TOKENS RATE WEIGHTS

.PHONY: help gpt2 gpt2-train gpt2-weights gpt2-verify gpt2-small test lint clean

help:
	@echo 'make gpt2 PROMPT="The capital of France is" TOKENS=20   generate text'
	@echo 'make gpt2-train PROMPT="The capital of France is"       one training step, every gradient'
	@echo 'make gpt2-weights                                       download the 124M weights (548 MB)'
	@echo 'make gpt2-verify [WEIGHTS=DIR]                          compare with reference.py, byte for byte'
	@echo 'make gpt2-small                                         train the small model anew (10 minutes)'
	@echo 'make test                                               run every test'
	@echo 'make lint                                               style and types'

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "osprey needs Python 3.11 or later; say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.installed

gpt2: $(VENV)/.installed
	@$(BIN)/osprey run examples/gpt2/gpt2.osp --prompt "$$PROMPT" --tokens "$$TOKENS" $${WEIGHTS:+--weights "$$WEIGHTS"}

gpt2-train: $(VENV)/.installed
	@$(BIN)/osprey run examples/gpt2/train.osp --prompt "$$PROMPT" --rate "$$RATE" $${WEIGHTS:+--weights "$$WEIGHTS"}

gpt2-weights: $(VENV)/.installed
	@$(BIN)/python -m osprey_py.tensors.download examples/gpt2/weights

gpt2-verify: $(VENV)/.installed
	@PYTHON=$(BIN)/python OSPREY=$(BIN)/osprey sh bench/verify.sh

# The model in examples/gpt2/small, byte for byte. What was trained is kept and gone on from.
gpt2-small: $(VENV)/.installed
	$(BIN)/osprey train examples/gpt2/small.osp --checkpoint build/gpt2-small --resume
	$(BIN)/osprey run examples/gpt2/export.osp --checkpoint build/gpt2-small --to examples/gpt2/small

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
