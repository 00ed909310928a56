"""Stores that frameworks ship, beside ours: the same turn through the public calls of each.

    make bench-peers        sets up an environment of its own and runs `python -m benchmarks.peers`
    make bench-adapters     there, `python -m benchmarks.peers.adapters`: our adapters beside them

Each keeps its own defaults. What a caller would prepare (the framework's own message objects, a session that is held
between turns) is prepared before the clock starts.
"""
