"""What chatledger costs beside a store written by hand on the bare driver, with the same tables, keys and indexes.

A figure here is a ratio of medians within one run: the contenders take turns, A B C A B C, so that what else the
machine does falls on all of them. Everything is durable: fsync and synchronous_commit on, synchronous = FULL. `make
bench` prints the tables; `make bench-full` also goes to threads of 100,000 and 1,000,000 messages, and writes
docs/contribute/benchmarks.md.
"""
