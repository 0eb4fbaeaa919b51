# Needs python3 (3.11 to 3.14), make, git and a package index; everything else goes into $(VENV).

# Set these on the command line: make bench EFFORT=12x1
PYTHON ?= python3
VENV = .venv
LOCK = constraints.txt
EFFORT = 1x1
FRESH =
MACHINE =
JOBS = 2
SELECT = not replay and not nightly
GPU_EFFORT = 3x1
GPU_SECONDS = 280
GPU_SELECT =
REPOSITORY =
TAG =
INSTALL =
NIGHT_EFFORT = default
MINUTES = 10

BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed
MEASURES = $(VENV)/.measures
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help setup bench gpu nightly test campaigns replay test-releases releases lint dist extras lock notebook docs docs-serve images clean

help:
	@echo 'make setup          install everything, at locked versions, into $(VENV)'
	@echo 'make bench          measure the workloads in benchmarks/, print a table of one screen'
	@echo '                      EFFORT=1x1    processes x passes; 6x1 has intervals, and takes six times as long'
	@echo '                      FRESH=1       measure again what a run that was stopped has left'
	@echo '                      MACHINE=name  file the results under this name instead of the host name'
	@echo 'make gpu            compare with CuPy on this machine'"'"'s GPU and verify the method, in under 10 minutes; installs nothing'
	@echo '                      GPU_SECONDS=280  of measuring; a second run resumes      GPU_EFFORT=3x1'
	@echo '                      GPU_SELECT=regex only workloads whose name matches       MACHINE=h200'
	@echo 'make test           run the tests, JOBS=2 files at a time'
	@echo '                      SELECT=nightly   those that only run at night, by an expression of pytest -m'
	@echo 'make campaigns      the nightly tests; damage files, interrupt and kill commands at random; seeds are printed'
	@echo '                      MINUTES=10    of each kind of kills'
	@echo 'make replay         go through the documentation, install the wheel, and let asv build an environment, as a user would'
	@echo 'make test-releases  run all tests on every supported JAX release (needs Python 3.11, 3.12 and 3.13)'
	@echo 'make releases       try what changes from one JAX release to the next, write docs/jax-by-release.md, print what differs'
	@echo '                      SECONDS_TOO=1  measure how long compiling takes, too: many minutes, 3 GB'
	@echo 'make nightly        measure on every supported JAX release, compare with the last good night, write a summary'
	@echo '                      MACHINE=name     NIGHT_EFFORT=8x1     INSTALL=jax[cuda13] into every environment'
	@echo 'make lint           ruff and mypy'
	@echo 'make dist           build the source distribution and the wheel into dist/, and check them'
	@echo '                      REPOSITORY=address  makes links of the README absolute      TAG=v1.2.3 has to fit'
	@echo 'make extras         resolve every extra on every supported Python'
	@echo 'make lock           write constraints*.txt anew with the newest versions'
	@echo 'make notebook       execute docs/analysis.ipynb anew, on docs/example-results/'
	@echo 'make docs           build the documentation into site/; a wrong link or a warning is an error'
	@echo 'make docs-serve     the same in a browser, built anew at every change'
	@echo 'make images         make every picture of the docs anew (needs Chromium, chromedriver and npm)'
	@echo 'make clean          remove environments and caches; results/ stays'
	@echo
	@echo 'PYTHON=python3.12 picks the interpreter (now: $(PYTHON)).'
	@echo 'VENV=.venvs/jax-0.11 LOCK=constraints-jax-0.11.txt PYTHON=python3.12 works on JAX 0.11.'

# --- environment ----------------------------------------------------------------------------------

define CHECK_PYTHON
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 14):
    sys.exit(
        "make setup: this is Python %d.%d, but the locked versions are for Python 3.11 to 3.14.\n"
        "Name another interpreter, for example: make setup PYTHON=python3.12" % sys.version_info[:2]
    )
endef
export CHECK_PYTHON

setup: $(INSTALLED)

define FIND_INTERPRETER
	@command -v "$(PYTHON)" >/dev/null || { \
	    echo 'make setup: $(PYTHON) not found. Install Python 3.11 to 3.14, or name one:' \
	         'make setup PYTHON=/path/to/python3.12' >&2; exit 1; }
	@"$(PYTHON)" -c "$$CHECK_PYTHON"
endef

# uv takes a quarter of pip's time. Bytecode as pip makes it: without, each process that may not write any compiles JAX's
# modules anew.
LOCKED_UV = sed -n '/^uv==/,/[^\]$$/p' $(LOCK) >$(VENV)/uv.txt && $(PIP) install --require-hashes -r $(VENV)/uv.txt
INTO_VENV = pip install --quiet --compile-bytecode --python $(BIN)/python

# What measuring needs, and the report: a quarter of everything, by the uv on PATH or else the locked one.
$(MEASURES): $(LOCK) pyproject.toml
	$(FIND_INTERPRETER)
	@echo 'Installing JAX, asv and jax-harness into $(VENV).'
	@uv=$$(command -v uv) && $$uv --version >/dev/null 2>&1 && "$(PYTHON)" -m venv --clear --without-pip $(VENV) || \
	    { uv=$(BIN)/uv; "$(PYTHON)" -m venv --clear $(VENV) && $(LOCKED_UV); } && \
	    $$uv $(INTO_VENV) --constraint $(LOCK) -e '.[figures]' || $(PIP) install -e '.[figures]'
	@touch $@

# From scratch each time: what left the lock file leaves the environment as well. Where uv cannot do it, pip can.
$(INSTALLED): $(LOCK) pyproject.toml
	$(FIND_INTERPRETER)
	"$(PYTHON)" -m venv --clear $(VENV)
	$(LOCKED_UV)
	$(BIN)/uv $(INTO_VENV) --require-hashes -r $(LOCK) || $(PIP) install --require-hashes -r $(LOCK)
	$(PIP) install --no-deps --no-build-isolation -e .
	@wrong=$$($(BIN)/python -m pip check) || { \
	    echo "$$wrong"; echo 'make setup: $(LOCK) does not fit pyproject.toml: run make lock.'; exit 1; } >&2
	@touch $@ $(MEASURES)
	@$(BIN)/python -c 'import platform, importlib.metadata as m; \
	    print("$(VENV): Python", platform.python_version(), "with JAX", m.version("jax"))'

# --- measuring ------------------------------------------------------------------------------------

# One sweep of all workloads, in processes that they share; asv finds its records, and files them as its own.
# asv exits with 2 if a benchmark failed: the others were measured and are shown, and make still fails.
bench: $(MEASURES)
	@git rev-parse --quiet --verify HEAD >/dev/null || { \
	    echo 'make bench: results are filed under a commit, and there is none yet.' >&2; exit 1; }
	@git diff --quiet HEAD -- harness benchmarks || \
	    echo 'Note: harness/ or benchmarks/ have uncommitted changes; the results are filed under HEAD all the same.'
	@said=$$($(BIN)/python -c 'from harness.asv import project; print(project.know_machine("$(MACHINE)"))') || exit 1; \
	[ -z "$$said" ] || echo "$$said"
	@status=0; \
	$(BIN)/harness run --effort $(EFFORT) $(if $(filter-out 0,$(FRESH)),--fresh) \
	    $(if $(MACHINE),--machine "$(MACHINE)") >/dev/null || status=$$?; \
	case $$status in 0|3) ;; *) exit $$status ;; esac; status=0; \
	mkdir -p .asv; \
	HARNESS_EFFORT=$(EFFORT) $(BIN)/asv run -E existing --show-stderr \
	    --set-commit-hash "$$(git rev-parse HEAD)" $(if $(MACHINE),--machine "$(MACHINE)") \
	    >.asv/bench.log 2>&1 || status=$$?; \
	case $$status in \
	    0|2) $(if $(MACHINE),HARNESS_MACHINE="$(MACHINE)") $(BIN)/harness show --brief || exit $$?; \
	        echo 'In one file, with figures: $(BIN)/harness report. What asv printed: .asv/bench.log' ;; \
	    *) tail -n 20 .asv/bench.log >&2 ;; \
	esac; \
	[ $$status -ne 2 ] || echo 'make bench: some benchmarks failed; .asv/bench.log says which and why.' >&2; \
	exit $$status

# Uses the machine's own Python, JAX and CuPy: it may have no network, and JAX for its GPU is there already.
# Both parts keep what they found as they go; the second runs whatever became of the first. `harness run`
# ends with 130 when its time is over, which is no failure here.
gpu:
	@command -v "$(PYTHON)" >/dev/null || { echo 'make gpu: $(PYTHON) not found; name a Python: PYTHON=...' >&2; exit 1; }
	@"$(PYTHON)" -m tools.gpu.ready
	@status=0; \
	timeout --signal=INT --preserve-status $(GPU_SECONDS) "$(PYTHON)" -m harness run $(GPU_SELECT) --target gpu \
	    --with-baselines --effort $(GPU_EFFORT) $(if $(MACHINE),--machine "$(MACHINE)") || status=$$?; \
	[ $$status -ne 130 ] || { status=0; echo 'make gpu: the time is over; another make gpu goes on from here.'; }; \
	"$(PYTHON)" -m tools.gpu $(MACHINE) || status=$$?; \
	exit $$status

# --- checking -------------------------------------------------------------------------------------

test: setup
	$(BIN)/python -m pytest tests -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "$(SELECT)"

# Each goes on where one before has found something; any of that fails the whole.
campaigns: setup
	@status=0; \
	echo '==> the tests marked "nightly"'; \
	$(MAKE) --no-print-directory test SELECT=nightly || status=1; \
	for campaign in "damaged --count 5000" "damaged --flips 5000" "interrupts --count 100" "at_once --count 16" \
	    "wrong_inputs" "disk_faults --rounds 56" "clocks --rounds 33" "memory --rounds 8" \
	    "kills --minutes $(MINUTES)" "nightly_kills --rounds $(MINUTES)" \
	    "releases --python $(CURDIR)/$(BIN)/python" "cache_causes" "fleet_kills --minutes $(MINUTES)"; do \
	    echo "==> python -m tools.$$campaign"; \
	    $(BIN)/python -m tools.$$campaign || status=1; \
	done; exit $$status

# Each process begins with a stretch of the tests: one alone makes the environment of the wheel.
replay: setup
	$(BIN)/python -m pytest tests -n $(JOBS) --dist worksteal -m "replay and not nightly"

# A pyenv shim is on PATH for every installed version, but only starts the active ones: so each candidate
# is tried, and then pyenv's own copies are.
define FIND_PYTHON
find_python() {
    for candidate in "$$(command -v "python$$1")" \
                     "$$(pyenv root 2>/dev/null)/versions/$$1".*/bin/"python$$1"; do
        "$$candidate" -c "import sys, ensurepip
if sys.version_info[:2] != tuple(map(int, '$$1'.split('.'))): sys.exit(1)
print(sys.executable)" 2>/dev/null && return
    done
    return 1
}
endef
export FIND_PYTHON

# name of the environment : Python : lock file
RELEASES = py3.11-jax-0.10:3.11:constraints.txt \
           py3.12-jax-0.11:3.12:constraints-jax-0.11.txt \
           py3.13-jax-latest:3.13:constraints.txt

# Tests that build an environment look for pythonX.Y on PATH: the interpreter's own directory goes first.
test-releases:
	@eval "$$FIND_PYTHON"; failed=; \
	for release in $(RELEASES); do \
	    name=$${release%%:*}; lock=$${release##*:}; version=$${release#*:}; version=$${version%:*}; \
	    echo "==> $$name"; \
	    if python=$$(find_python $$version); then \
	        PATH="$$(dirname "$$python"):$$PATH" $(MAKE) --no-print-directory test \
	            VENV=.venvs/$$name LOCK=$$lock PYTHON="$$python" SELECT="not replay" || failed="$$failed $$name"; \
	    else \
	        echo "No usable Python $$version: neither python$$version on PATH nor a pyenv version." \
	             "Install one, for example with: pyenv install $$version" >&2; \
	        failed="$$failed $$name"; \
	    fi; \
	done; \
	if [ -n "$$failed" ]; then echo "make test-releases: failed or not run:$$failed" >&2; exit 1; fi; \
	echo 'make test-releases: all passed'

# What changes from one release to the next, tried in an environment for each: docs/jax-by-release.md.
releases:
	@eval "$$FIND_PYTHON"; pythons=; \
	for release in $(RELEASES); do \
	    name=$${release%%:*}; lock=$${release##*:}; version=$${release#*:}; version=$${version%:*}; \
	    python=$$(find_python $$version) || { echo "make releases: no Python $$version" >&2; exit 1; }; \
	    $(MAKE) --no-print-directory setup VENV=.venvs/$$name LOCK=$$lock PYTHON="$$python" >&2 || exit 5; \
	    pythons="$$pythons --python $(CURDIR)/.venvs/$$name/bin/python"; \
	done; \
	.venvs/$$name/bin/python -m tools.releases $$pythons --write $(if $(SECONDS_TOO),--seconds)

# `harness nightly` on an environment for each release. Where a Python is missing, the others are measured.
nightly:
	@eval "$$FIND_PYTHON"; pythons=; harness=; \
	for release in $(RELEASES); do \
	    name=$${release%%:*}; lock=$${release##*:}; version=$${release#*:}; version=$${version%:*}; \
	    python=$$(find_python $$version) || { echo "make nightly: no Python $$version, so no $$name" >&2; continue; }; \
	    $(MAKE) --no-print-directory setup VENV=.venvs/$$name LOCK=$$lock PYTHON="$$python" >&2 || exit 5; \
	    [ -z "$(INSTALL)" ] || .venvs/$$name/bin/uv pip install --quiet --python .venvs/$$name/bin/python "$(INSTALL)" || exit 5; \
	    pythons="$$pythons --python .venvs/$$name/bin/python"; harness=.venvs/$$name/bin/harness; \
	done; \
	[ -n "$$harness" ] || { echo 'make nightly: no supported Python; install 3.11, 3.12 or 3.13.' >&2; exit 5; }; \
	$$harness nightly $$pythons --effort $(NIGHT_EFFORT) $(if $(MACHINE),--machine "$(MACHINE)")

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy harness

# --- releasing ------------------------------------------------------------------------------------

dist: setup
	$(BIN)/python -m tools.building dist --repository "$(REPOSITORY)" --tag "$(TAG)"

extras:
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	"$(PYTHON)" -m venv "$$tmp/venv"; \
	"$$tmp/venv/bin/python" -m pip --quiet --disable-pip-version-check install uv; \
	"$$tmp/venv/bin/python" -m tools.extras

# --- housekeeping ---------------------------------------------------------------------------------

COMPILE = uv pip compile --quiet --universal --upgrade --generate-hashes --no-emit-index-url --no-header \
          --no-annotate --extra dev pyproject.toml

# One file serves all systems and Pythons. JAX 0.10.2 is the last for Python 3.11, so that file holds the
# oldest and the newest supported JAX; 0.11 has a file of its own.
lock:
	@set -e; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	"$(PYTHON)" -m venv "$$tmp/venv"; \
	"$$tmp/venv/bin/python" -m pip --quiet --disable-pip-version-check install uv; \
	PATH="$$tmp/venv/bin:$$PATH"; \
	printf 'jax==0.11.2\njaxlib==0.11.2\n' >"$$tmp/jax-0.11.txt"; \
	$(COMPILE) --python-version 3.11 --output-file "$$tmp/lock" >/dev/null; \
	$(COMPILE) --python-version 3.12 --constraint "$$tmp/jax-0.11.txt" --output-file "$$tmp/lock-jax-0.11" >/dev/null; \
	{ echo '# Python 3.11 to 3.14, JAX 0.10.2 (Python 3.11) or the newest. Written by: make lock'; \
	  cat "$$tmp/lock"; } >constraints.txt; \
	{ echo '# Python 3.12 and 3.13, JAX 0.11.2. Written by: make lock'; \
	  cat "$$tmp/lock-jax-0.11"; } >constraints-jax-0.11.txt

notebook: setup
	$(BIN)/python -m tools.notebook docs/analysis.ipynb

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

images: setup
	$(BIN)/python -m tools.images

clean:
	rm -rf $(VENV) .venvs .asv build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find harness benchmarks docs tests tools -name __pycache__ -prune -exec rm -rf {} +
