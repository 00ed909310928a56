"""Where conversations rest: tables, the append, the history, and one repository for each noun."""
