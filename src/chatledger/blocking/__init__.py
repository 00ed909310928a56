"""The ledger without `await`, for scripts, Django, Celery and notebooks.

    from chatledger import ChatMessage, blocking

    with blocking.open() as ledger:
        thread = ledger.threads.create(title="Weather")
        ledger.messages.append(thread.thread_id, [ChatMessage(role="user", content="Tokyo?")])

It has the calls of the asynchronous ledger, with the same arguments and errors. Any thread may use it.
"""

from chatledger.blocking.face import Draft, Ledger, Transaction

__all__ = ["Draft", "Ledger", "Transaction", "open"]

open = Ledger.open  # noqa: A001 - as `Ledger.open`
