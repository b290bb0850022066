"""What a child process that makes steps once more tells its parent, through a pipe: no pickles."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from whynan.core.session import Earlier, Extent
from whynan.core.trials import Failed, Outcome, Survived, Untried

KINDS: dict[str, type[Outcome]] = {"survived": Survived, "failed": Failed, "untried": Untried}
Message = Earlier | Extent | tuple[str, Outcome]
SIZE = 8  # bytes that tell how long a message is


class Envelope(msgspec.Struct):
    kind: str
    body: msgspec.Raw
    name: str = ""


def encode(message: Message) -> bytes:
    name, content = message if isinstance(message, tuple) else ("", message)
    body = msgspec.Raw(msgspec.msgpack.encode(content))
    data = msgspec.msgpack.encode(Envelope(type(content).__name__.lower(), body, name))
    return len(data).to_bytes(SIZE, "big") + data


def decode(data: bytes) -> Iterator[Message]:
    """The messages that have arrived whole."""
    while len(data) >= SIZE:
        end = SIZE + int.from_bytes(data[:SIZE], "big")
        if len(data) < end:
            return
        yield _message(msgspec.msgpack.decode(data[SIZE:end], type=Envelope))
        data = data[end:]


def _message(envelope: Envelope) -> Message:
    if envelope.kind in KINDS:
        return envelope.name, msgspec.msgpack.decode(envelope.body, type=KINDS[envelope.kind])
    if envelope.kind == "extent":
        return msgspec.msgpack.decode(envelope.body, type=Extent)
    return msgspec.msgpack.decode(envelope.body, type=Earlier)
