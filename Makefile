# A checkout needs Python >= 3.11 and make. The first target that runs sets up the rest in .venv.
PYTHON ?= python3
PYTHON312 ?= python3.12
PYTHON313 ?= python3.13
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := .venv-demo
DEMO_READY := $(DEMO)/.ready
PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready
ADAPTERS := .venv-adapters
ADAPTERS_READY := $(ADAPTERS)/.ready
BROWSER := .venv-browser
BROWSER_READY := $(BROWSER)/.ready
AI_SDK := .venv-ai-sdk
AI_SDK_READY := $(AI_SDK)/.ready
WIRE := .venv-wire
WIRE_READY := $(WIRE)/.ready
SCHEMATHESIS := .venv-schemathesis
SCHEMATHESIS_READY := $(SCHEMATHESIS)/.ready
DOCS := .venv-docs
DOCS_READY := $(DOCS)/.ready
BUILD := .venv-build
BUILD_READY := $(BUILD)/.ready
TOOLS := .venv-release
TOOLS_READY := $(TOOLS)/.ready
DATA ?= ../shared/data
MINUTES ?= 10
SECONDS ?= 60
BASE ?= HEAD
URL ?= service.db
PORT ?= 8000

# Tests start hundreds of processes. Without bytecode on the disk, each would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo service test test-candidate test-server test-core test-benchmarks test-data test-adapters test-browser test-wire test-ai-sdk test-clients test-schemathesis test-kosong test-partitioned test-distributed test-encrypted test-copy plans test-pgbouncer mutants mutants-generated torture crowd latencies soak \
  fuzz lint types types-complete imports docs dist sbom matrix candidate release audit lock bench bench-full bench-peers bench-adapters bench-profile instructions bench-server bench-against bench-import clean

help:  ## Show the targets
	@awk -F ':.*##' '/^[a-z-]+:.*##/ { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## Set up .venv with the pinned versions

# The upstream packages that tests compare us with are installed without their dependencies: the tests load only their
# schema modules, which need only Pydantic.
$(READY): pyproject.toml constraints.txt tests/upstream.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps --requirement tests/upstream.txt
	touch $(READY)

# The demo has a small environment of its own, since it needs no linter, no test tools and no provider's SDK. The server is
# for the last command that it names.
$(DEMO_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[cli,server]'
	touch $(DEMO_READY)

demo: $(DEMO_READY)  ## Run `chatledger demo` on SQLite, and on PostgreSQL if there is one
	@rm -f demo.db demo.db-wal demo.db-shm
	$(DEMO)/bin/chatledger demo --url demo.db
	@$(DEMO)/bin/python -m tests.postgres --if-found sh -c \
	  '$(DEMO)/bin/chatledger demo --migrate --json > /dev/null && echo "the same steps ran on PostgreSQL"'

service: $(DEMO_READY)  ## Run the example chat service on the database URL (a path or postgresql://…) and port PORT
	CHATLEDGER_URL=$(URL) $(DEMO)/bin/uvicorn examples.service.app:app --port $(PORT) --timeout-graceful-shutdown 5

test: $(READY)  ## Run the suite on both databases, on two cores, without what test-… targets run
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not old_program'

test-candidate: $(READY)  ## Let the candidate's own program write databases, and upgrade and read them; needs its commit in the clone
	$(BIN)/python -m pytest -m old_program tests/migrations tests/transfer

test-server: $(READY)  ## Run the tests of the HTTP server and of the example service
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/server tests/examples

PART ?= quick
test-core: $(READY)  ## Delete each annex and its tests from a copy, collect all tests of core there, and run the quick ones (PART=whole: all; ANNEXES: only these)
	$(BIN)/python -m tests.without_annexes --part $(PART) $(ANNEXES)

test-benchmarks: $(READY)  ## Run each benchmark once, with few rounds and few rows
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/test_benchmarks.py

test-data: $(READY)  ## Import, read back and export the real transcripts in the folder DATA
	CHATLEDGER_TEST_DATA=$(DATA) $(BIN)/python -m pytest tests/data

# The adapters have an environment of their own, since `make test` needs no framework.
$(ADAPTERS_READY): pyproject.toml constraints.txt tests/adapters/requirements.txt
	$(PYTHON) -m venv $(ADAPTERS)
	grep -v '^opentelemetry-' constraints.txt > $(ADAPTERS)/shared.txt
	$(ADAPTERS)/bin/python -m pip install --quiet --constraint $(ADAPTERS)/shared.txt --editable '.[dev]' \
	  --requirement tests/adapters/requirements.txt
	touch $(ADAPTERS_READY)

test-adapters: $(ADAPTERS_READY)  ## Run the adapters against the real frameworks, at the versions of tests/adapters
	$(ADAPTERS)/bin/python -m pytest -n 2 --dist worksteal tests/adapters

# Playwright drives the Chromium of the machine, so it needs no download of its own.
$(BROWSER_READY): pyproject.toml constraints.txt tests/browser/requirements.txt
	$(PYTHON) -m venv $(BROWSER)
	$(BROWSER)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' \
	  --requirement tests/browser/requirements.txt
	touch $(BROWSER_READY)

test-browser: $(BROWSER_READY)  ## Use the page in a real Chromium, which is installed with apt if there is none
	$(BROWSER)/bin/python -m tests.browser.chromium
	$(BROWSER)/bin/python -m pytest tests/browser

# The real package, for Node. Its release is pinned; a file of locks would name a registry.
$(AI_SDK_READY): $(READY) tests/ai_sdk/package.json
	$(BIN)/python -m tests.ai_sdk.node
	mkdir -p $(AI_SDK)
	cp tests/ai_sdk/package.json $(AI_SDK)/
	npm install --prefix $(AI_SDK) --no-package-lock --no-audit --no-fund --loglevel error
	touch $(AI_SDK_READY)

test-ai-sdk: $(AI_SDK_READY)  ## Let the real AI SDK check the UI messages that we write; Node is installed with apt if there is none
	CHATLEDGER_AI_SDK=$(abspath $(AI_SDK)) $(BIN)/python -m pytest tests/ai_sdk

test-clients: $(READY)  ## Run the programs of examples/clients in curl, Node and Go, which are installed with apt if they are missing
	$(BIN)/python -m tests.clients.programs
	$(BIN)/python -m pytest tests/clients

# The page with the real useChat is built where its packages are.
$(WIRE_READY): $(READY) tests/wire/package.json tests/wire/page.jsx
	$(BIN)/python -m tests.ai_sdk.node
	mkdir -p $(WIRE)
	cp tests/wire/package.json tests/wire/page.jsx $(WIRE)/
	npm install --prefix $(WIRE) --no-package-lock --no-audit --no-fund --loglevel error
	cd $(WIRE) && node_modules/.bin/esbuild page.jsx --bundle --format=esm --jsx=transform --outfile=page.js --log-level=warning
	touch $(WIRE_READY)

test-wire: $(BROWSER_READY) $(WIRE_READY)  ## Let the real useChat in a real Chromium follow answers while their server is killed; FEW=1 kills it three times a test
	$(BROWSER)/bin/python -m tests.browser.chromium
	CHATLEDGER_WIRE=$(abspath $(WIRE)) CHATLEDGER_WIRE_FEW=$(FEW) $(BROWSER)/bin/python -m pytest tests/wire

# Schemathesis has an environment of its own, since it needs much that nothing else here needs.
$(SCHEMATHESIS_READY): pyproject.toml constraints.txt tests/schemathesis/requirements.txt
	$(PYTHON) -m venv $(SCHEMATHESIS)
	$(SCHEMATHESIS)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' \
	  --requirement tests/schemathesis/requirements.txt
	touch $(SCHEMATHESIS_READY)

test-schemathesis: MINUTES = 5
test-schemathesis: $(SCHEMATHESIS_READY)  ## Send requests made of its OpenAPI description to the server for MINUTES (5), and check its answers; SEED=… makes those of an earlier run
	$(SCHEMATHESIS)/bin/python -m tests.schemathesis --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

test-kosong:  ## Compare our kosong models with the real ones; needs Python 3.12 (newest) and 3.13 (0.23)
	$(PYTHON313) tests/formats/kosong/real.py 0.23.0
	$(PYTHON312) tests/formats/kosong/real.py newest

# What these three run takes long, so CI takes a share of it, another one with each commit.
SHARE ?= 0/1
MODE = CHATLEDGER_TEST_SHARE=$(SHARE) $(BIN)/python -m pytest -n 2 --dist worksteal

test-copy: $(READY)  ## Copy 200 random ledgers and a million messages there and back, and kill copies at ten moments
	$(BIN)/python -m tests.transfer.copy.long
	$(BIN)/python -m tests.transfer.copy.large

test-partitioned: $(READY)  ## Run the SHARE (0/1, all) of the storage suite on PostgreSQL that is hash-partitioned by tenant
	CHATLEDGER_TEST_PARTITIONS=4 $(MODE) -m postgresql tests/storage tests/answers tests/reports

DISTRIBUTED = CHATLEDGER_TEST_DISTRIBUTED=1 $(MODE) -m 'postgresql and not one_statement and not one_server'
test-distributed: $(READY)  ## Run the SHARE of the storage suite on plain and on partitioned PostgreSQL, one table a statement, and of the commands and the server
	$(DISTRIBUTED) tests/storage tests/answers tests/reports tests/faults/test_machine.py
	CHATLEDGER_TEST_PARTITIONS=4 $(DISTRIBUTED) tests/storage tests/answers tests/reports
	$(DISTRIBUTED) tests/cli tests/server

test-encrypted: $(READY)  ## Run the SHARE of the storage suite on ledgers that encrypt
	CHATLEDGER_TEST_KEYS=1 $(MODE) -m 'not plain' tests/storage tests/answers tests/reports tests/faults/test_machine.py

plans: $(READY)  ## Compare the plans of the reads that must not grow, on 50,000 threads, with the files; WRITE=--write writes these
	$(BIN)/python -m tests.storage.statements.plans $(WRITE)

test-pgbouncer: $(READY)  ## Run two processes with 16 tasks each behind a real PgBouncer, found on PATH or at PGBOUNCER
	$(BIN)/python -m tests.pgbouncer

mutants: $(READY)  ## Run each proof of reliability with its protection removed: all must fail (SAMPLE=3/20: each 20th, from the 3rd)
	$(BIN)/python -m tests.faults.mutants $(if $(SAMPLE),--sample $(SAMPLE))

mutants-generated: $(READY)  ## Run 600 small faults of core against the tests that cover their lines, resumably: what was killed is killed (TESTS: only these; MOST: so many; two at a time, each 5 to 30 s)
	$(BIN)/python -m tests.faults.generated $(if $(TESTS),--tests $(TESTS)) $(if $(MOST),--most $(MOST))

torture: $(READY)  ## Kill servers each second while they make answers, for MINUTES on each database: nothing is lost, doubled or wrong
	$(BIN)/python -m tests.answers.torture --minutes $(MINUTES)

crowd: $(READY)  ## Keep a thousand answers live while their loop, the database and a lease are held up: nobody takes one over
	$(BIN)/python -m tests.answers.crowd

latencies: $(READY)  ## Measure in three minutes how soon an answer goes on after a kill, and how soon a stop is told
	$(BIN)/python -m tests.answers.latencies

soak: $(READY)  ## Run the proofs of reliability for MINUTES, and write the figures to docs/contribute/reliability.md
	$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) --page docs/contribute/reliability.md

fuzz: $(READY)  ## Fuzz decoders and imports for MINUTES, guided by coverage; needs a Python that atheris supports
	$(BIN)/python -m pip install --quiet --requirement tests/hostile/fuzz.txt
	for format in import-files $$($(BIN)/python -c 'import chatledger.formats as f; print(*f.format_names())'); do \
	  $(BIN)/python -m tests.hostile.fuzz $$format $$(($(MINUTES) * 60 / 9)) || exit 1; \
	done

lint: $(READY)  ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## Check types
	$(BIN)/mypy

types-complete: $(READY)  ## Print the public names and members whose types a type checker does not know
	$(BIN)/python -m tests.typing.test_complete

imports: $(READY)  ## Check that imports point down and form no cycle
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_import_graph.py

$(DOCS_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $(DOCS_READY)

# Not with --quiet: a warning that is not shown is not counted either, and strict mode would let it pass.
docs: $(DOCS_READY)  ## Build the site of the documentation into site/; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build

# What builds a release is installed by its hashes, and as wheels only: an sdist would be built with whatever is newest. The
# environment is new whenever the file changes, so nothing else is in it.
HASHED = install --quiet --require-hashes --only-binary :all: --requirement
$(BUILD_READY): release/build.txt
	rm -rf $(BUILD)
	$(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python -m pip $(HASHED) release/build.txt
	touch $(BUILD_READY)

# Not in an environment that the builder makes, since it would install the newest hatchling, without a hash. The wheel is built
# from the sdist, so an sdist that lacks a file fails here.
dist: $(BUILD_READY)  ## Build the sdist and the wheel into dist/, by tools that are pinned with their hashes
	rm -f dist/*.tar.gz dist/*.whl dist/*.cdx.json
	$(BUILD)/bin/python -m build --no-isolation

$(TOOLS_READY): release/tools.txt
	rm -rf $(TOOLS)
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip $(HASHED) release/tools.txt
	touch $(TOOLS_READY)

sbom: $(TOOLS_READY) dist  ## Write the SBOM (CycloneDX) of the wheel with its dependencies into dist/
	$(TOOLS)/bin/python -m release.bill

matrix:  ## Run storage, rules, models and migrations on each Python and PostgreSQL (CELL=3.12-16: one; TESTS: only these), and write docs/reference/support.md
	$(PYTHON) -m release.matrix $(if $(CELL),--only $(CELL)) $(if $(TESTS),--tests $(TESTS))

candidate: $(BUILD_READY)  ## Build the program of the release candidate, from its tag or the commit in release/candidate.toml, into .candidate/
	$(BUILD)/bin/python -m release.candidate

release: $(BUILD_READY)  ## Build VERSION, try it in bare environments, tag it, and print the commands that publish it
	$(BUILD)/bin/python -m release.cut $(VERSION)

audit: $(TOOLS_READY)  ## Ask an index for advisories on core and all extras: exit 1 if it knows some, 3 if none answers
	$(TOOLS)/bin/python -m release.advisories

# No address of an index is written into the files, so that any index serves.
lock: $(TOOLS_READY)  ## Write release/*.txt, the pins with hashes of release/*.in, within constraints.txt
	for name in build tools; do (cd release && CUSTOM_COMPILE_COMMAND='make lock' ../$(TOOLS)/bin/pip-compile --quiet --upgrade \
	  --generate-hashes --allow-unsafe --strip-extras --no-emit-options --constraint ../constraints.txt --output-file $$name.txt $$name.in) || exit 1; done

DURABLE = $(BIN)/python -m tests.postgres --durable

bench: $(READY)  ## Compare append, load and import with the bare drivers, in under five minutes
	$(DURABLE) $(BIN)/python -m benchmarks

face: $(READY)  ## Print the public calls with their parameters, which tests/face.toml holds
	$(BIN)/python -m tests.test_face

bench-full: $(READY)  ## Run bench up to 1,000,000 messages, and write docs/contribute/benchmarks.md and the figures in the README
	$(DURABLE) $(BIN)/python -m benchmarks --full --page docs/contribute/benchmarks.md --keep .bench
	$(BIN)/python -m benchmarks.readme

bench-peers: $(READY) $(PEERS_READY)  ## Compare with the stores that frameworks ship, and write the figures to docs/contribute/benchmarks.md
	$(DURABLE) $(PEERS)/bin/python -m benchmarks.peers --page docs/contribute/benchmarks.md

bench-adapters: $(READY) $(PEERS_READY)  ## Compare our adapters with their frameworks' own stores, and write docs/contribute/benchmarks.md
	$(DURABLE) $(PEERS)/bin/python -m benchmarks.peers.adapters --page docs/contribute/benchmarks.md

bench-profile: $(READY)  ## Profile append and history, and write the shares of time to docs/contribute/benchmarks.md
	$(DURABLE) $(BIN)/python -m benchmarks.profile --page docs/contribute/benchmarks.md

instructions: $(READY)  ## Count the instructions of an append and a history with valgrind, and hold their budgets
	$(BIN)/python -m benchmarks.instructions

bench-server: $(READY)  ## Append, page and list over HTTP by 200 clients for SECONDS, on PostgreSQL and on SQLite
	$(DURABLE) $(BIN)/python -m benchmarks.server --seconds $(SECONDS)

bench-against: $(READY)  ## Compare the speed of the working tree with the commit BASE, in under four minutes
	$(BIN)/python -m benchmarks.against --base $(BASE)

bench-import: $(READY)  ## Compare the CPU time of the first import with the commit BASE
	$(BIN)/python -m benchmarks.import_against --base $(BASE)

# The peers have an environment of their own: nothing here depends on them, not even the tests. The packages that
# chatledger runs on have our versions there; the rest of constraints.txt would contradict theirs.
SHARED := ^(aiosqlite|alembic|asyncpg|greenlet|pydantic|pydantic_core|sqlalchemy)==
$(PEERS_READY): pyproject.toml constraints.txt benchmarks/peers/requirements.txt tests/adapters/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	grep -iE '$(SHARED)' constraints.txt > $(PEERS)/shared.txt
	$(PEERS)/bin/python -m pip install --quiet --constraint $(PEERS)/shared.txt --editable . \
		--requirement benchmarks/peers/requirements.txt
	touch $(PEERS_READY)

clean:  ## Remove all environments, caches and build outputs
	rm -rf .candidate .matrix .mutants $(VENV) $(DEMO) $(PEERS) $(ADAPTERS) $(BROWSER) $(AI_SDK) $(SCHEMATHESIS) $(DOCS) $(BUILD) $(TOOLS) site .bench dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis .import_linter_cache
