"""placeholder"""


def bite() -> None: ...
