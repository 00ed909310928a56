"""Calls that type checkers refuse, each line for its own reason: as old programs or hurried authors write them."""

HEAD = """\
from chatledger import ChatMessage, Encryption, KeyRing, Ledger, Mark, NewThread, Newest, Oldest, Payload, PostgreSQL
from chatledger import Transaction, blocking
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


async def right(ledger: Ledger, message: ChatMessage, ring: KeyRing, engine: AsyncEngine, own: AsyncConnection) -> None:
    await ledger.messages.append("t", message)
    await ledger.messages.append("t", [message, message], create=NewThread(title="T"), expected=0)
    await ledger.messages.append("t", message, reply_to=message, expected=Mark("from a header"))
    await ledger.messages.append("t", message, alternative_to="m")
    await ledger.messages.append("t", Payload([{"role": "user", "content": "x"}], "openai-chat"))
    await ledger.user("ada").replica("0/1").messages.history("t")
    options = PostgreSQL(schema="chat", pooler="transaction", replica=engine)
    async with Ledger.open(engine, encryption=ring, postgresql=options) as opened:
        await opened.ping()
    await Ledger.open("chat.db", encryption=Encryption(lambda tenant: ring, plaintext=True))
    with blocking.open("chat.db", encryption=ring) as opened_too:
        opened_too.replica("0/1").messages.history("t")
    await Transaction(own, postgresql=options).messages.append("t", message)


async def wrong(ledger: Ledger, message: ChatMessage, ring: KeyRing, engine: AsyncEngine, own: AsyncConnection) -> None:
"""
WRONG = (
    # The fourteen of the face.
    'await ledger.messages.append("t", "Hello")',
    'await ledger.messages.append("t", [{"role": "user", "content": "x"}])',
    'await ledger.messages.append("t", message, reply_to=3)',
    'await ledger.messages.append("t", message, expected="mark")',
    'await ledger.messages.append("t", message, expected=7)',
    'await ledger.messages.append("t", message, user_id="ada")',
    'await ledger.messages.history("t", 50)',
    '(await ledger.messages.history("t")).payload',
    'await ledger.messages.prompt("t", "openai-chat", Oldest(5))',
    'ledger.messages.follow("t", cursor="mark")',
    'await ledger.messages.append("t", message, expected=(await ledger.messages.history("t")).previous_cursor)',
    'await ledger.messages.append("t", message, create={"title": "T"})',
    'await ledger.messages.stream("t", after="m")',
    # How a ledger is opened, and seen.
    "Ledger.open(engine=engine)",
    'Ledger.open("chat.db", schema="chat")',
    'Ledger.open("chat.db", keys=ring)',
    'Ledger.open("chat.db", encryption=lambda tenant: ring)',
    'Ledger.open("chat.db", postgresql={"schema": "chat"})',
    'blocking.open("chat.db", keys=ring)',
    "Transaction(own, rls=True)",
    'PostgreSQL(pooler="statement")',
    "PostgreSQL(pool_size=None)",
    "Encryption(None)",
    "ledger.replica(7)",
    'await ledger.messages.history("t", min_position="0/1")',
    'await ledger.messages.history("t", last=3)',
    'await ledger.messages.history("t", user_id="ada")',
    'await ledger.messages.history("t", Newest(3, after="x"))',
    'await ledger.messages.history("t", Newest(3, before="0.3"))',
    'await ledger.messages.prompt("t", "kosong")',
    'await ledger.messages.prompt("t", "openai-chat", 8000)',
    'await ledger.messages.append("t", message, kv_expected={"a": 1})',
    'Ledger.open("chat.db").threads',
)
PROGRAM = HEAD + "".join(f"    {line}\n" for line in WRONG)
FIRST = len(HEAD.splitlines()) + 1
"""The line of the first wrong call."""
