"""The stores of agent frameworks, kept in a ledger: one module for each framework, which only that module imports.

An application keeps its framework and gives it another store. The messages land in the ledger's own tables, so the same
thread can be read in every format.
"""
