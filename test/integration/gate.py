"""A gate in front of a server: a relay that holds back the server's answers, so that a script decides when a client can
end.

    gate.py HOST:PORT SERVER_HOST:SERVER_PORT

Prints "ready", then relays connections to the server. Bytes from clients pass at once. Bytes from the server pass as
lines of the standard input allow, counted over all clients:

    pass BYTES   this many more bytes; prints "held" when they have passed
    open         all bytes from now on

Held bytes wait in memory; they are at most what the clients have requested. When one side of a connection ends, the
gate ends the other side and drops its held bytes. The gate ends with its standard input.
"""
import asyncio
import collections
import math
import sys

CHUNK = 64 << 10


class Gate:
    def __init__(self, server):
        self.server = server
        self.room = 0
        self.held = collections.deque()  # (a client's connection, bytes)

    def release(self):
        while self.held and self.room:
            client, data = self.held.popleft()
            now = len(data) if self.room == math.inf else min(len(data), self.room)
            if client.is_closing():
                continue
            client.write(data[:now])
            if now < len(data):
                self.held.appendleft((client, data[now:]))
            self.room -= now
            if self.room == 0:
                print("held", flush=True)

    def order(self, words):
        self.room = math.inf if words[0] == "open" else int(words[1])
        self.release()

    async def carry(self, from_client, client):
        try:
            from_server, server = await asyncio.open_connection(*self.server)
        except OSError:
            client.close()
            return

        async def questions():
            while data := await from_client.read(CHUNK):
                server.write(data)

        async def answers():
            while data := await from_server.read(CHUNK):
                self.held.append((client, data))
                self.release()

        sides = [asyncio.ensure_future(questions()), asyncio.ensure_future(answers())]
        await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
        for side in sides:
            side.cancel()
        await asyncio.gather(*sides, return_exceptions=True)
        client.close()
        server.close()


def endpoint(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def main(listen, server):
    gate = Gate(server)
    await asyncio.start_server(gate.carry, *listen)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    print("ready", flush=True)
    while line := await orders.readline():
        gate.order(line.decode().split())


asyncio.run(main(endpoint(sys.argv[1]), endpoint(sys.argv[2])))
