"""The conversation store of LLM applications."""
