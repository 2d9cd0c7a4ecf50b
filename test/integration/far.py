"""A distant server: a relay that delays the bytes of both sides.

    far.py SERVER_HOST:SERVER_PORT MILLISECONDS

Prints HOST:PORT, where it listens, and ends with its standard input.
"""
import asyncio
import os
import sys

CHUNK = 64 << 10


async def carry(reader, writer, seconds):
    """Reads as many bytes at a time as arrive: the path has a long delay, but full bandwidth."""
    loop = asyncio.get_running_loop()
    end = loop.create_future()

    def pass_on(data):
        if writer.is_closing():
            return
        if data:
            writer.write(data)
        else:
            writer.close()
            end.done() or end.set_result(None)

    while data := await reader.read(CHUNK):
        loop.call_later(seconds, pass_on, data)
    loop.call_later(seconds, pass_on, b"")
    await end


async def main(server, seconds):
    host, port = server.rsplit(":", 1)

    async def meet(from_client, client):
        try:
            from_server, to_server = await asyncio.open_connection(host, int(port))
            await asyncio.gather(carry(from_client, to_server, seconds), carry(from_server, client, seconds))
        except OSError:
            client.close()

    listener = await asyncio.start_server(meet, "127.0.0.1", 0)
    print(f"127.0.0.1:{listener.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # no peer is left for the remaining bytes


asyncio.run(main(sys.argv[1], float(sys.argv[2]) / 1000))
