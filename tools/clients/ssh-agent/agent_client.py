"""A client of an SSH agent with nothing but Python's own library, for tests/interop.

Asks an unknown extension, lists the keys, has the first one sign, and prints the results as JSON.
The framing must hold after every answer, because all requests are sent before the first answer is read.
"""

import json
import os
import socket
import struct
import sys

IDENTITIES, SIGN, EXTENSION = 11, 13, 27
UNKNOWN = 200


def string(value):
    return struct.pack(">I", len(value)) + value


def message(number, body=b""):
    return string(bytes([number]) + body)


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise EOFError("the agent closed the connection")
        data += part
    return data


def answer(connection):
    (length,) = struct.unpack(">I", read_exactly(connection, 4))
    return read_exactly(connection, length)


def take(data):
    (length,) = struct.unpack(">I", data[:4])
    return data[4 : 4 + length], data[4 + length :]


def main(text):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["SSH_AUTH_SOCK"])
    requests = message(EXTENSION, string(b"nothing@example.com") + b"content")
    requests += message(UNKNOWN, b"content") + message(IDENTITIES)
    # In pieces, as a slow client sends them.
    for at in range(0, len(requests), 3):
        connection.sendall(requests[at : at + 3])
    extension, unknown, listed = (answer(connection) for _ in range(3))
    (count,) = struct.unpack(">I", listed[1:5])
    rest, keys = listed[5:], []
    for _ in range(count):
        blob, rest = take(rest)
        comment, rest = take(rest)
        keys.append({"blob": blob.hex(), "comment": comment.decode()})
    first = bytes.fromhex(keys[0]["blob"])
    connection.sendall(message(SIGN, string(first) + string(text.encode()) + struct.pack(">I", 0)))
    signed = answer(connection)
    signature, _ = take(signed[1:]) if signed[0] == 14 else (b"", b"")
    print(json.dumps({"extension": extension[0], "unknown": unknown[0], "keys": keys, "signature": signature.hex()}))


main(sys.argv[1])
