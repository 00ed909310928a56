"""The messages of LangChain and LangGraph: `message_to_dict` of langchain-core, or the message objects themselves."""

from chatledger.formats.langchain.codec import CODEC, LangChain

__all__ = ["CODEC", "LangChain"]
