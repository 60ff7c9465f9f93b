"""redis-py against `tamis serve`: its Bloom and cuckoo calls, pipelines, transactions, scans, in both protocols.

Run by `cargo xtask test` as `redis_py.py PROGRAM`; it starts the server itself. With `redis_py.py SERVER MODULE`, it
makes the Bloom and cuckoo calls to a Redis or Valkey server with the module.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

import redis

# The longest wait for the start of a server, or for a reply, in seconds.
DEADLINE = 60


def connect(port, **options):
    """Returns a client whose calls fail after the deadline."""
    return redis.Redis(port=port, socket_timeout=DEADLINE, socket_connect_timeout=DEADLINE, **options)


def start(program, folder):
    """Starts a server on a free port; returns it and its port."""
    server = subprocess.Popen(
        [program, "serve", "--port", "0", "--dir", folder],
        stderr=subprocess.PIPE,
        text=True,
    )
    late = threading.Timer(DEADLINE, server.kill)
    late.daemon = True
    late.start()
    for line in server.stderr:
        found = re.search(r"ready.*address=\S*:(\d+)", line)
        if found:
            late.cancel()
            return server, int(found[1])
    sys.exit("the server did not start in time")


def start_with_module(server, module, folder):
    """Starts Redis or Valkey with the module on a free port; returns it and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [server, "--port", str(port), "--dir", folder, "--save", "", "--loadmodule", module]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    for _ in range(10 * DEADLINE):
        if server.poll() is not None:
            break
        try:
            if connect(port).ping():
                return server, port
        except redis.ConnectionError:
            time.sleep(0.1)
    sys.exit("the server did not start in time")


def refuses(call, text):
    """Checks that a call raises an error of the server with this text."""
    try:
        call()
    except redis.ResponseError as error:
        assert text in str(error), f"{error!r} has no {text!r}"
    else:
        raise AssertionError(f"nothing was raised, expected {text!r}")


def field(reply, name):
    """Returns a field of what BF.INFO and its kin gave: redis-py makes an object of it, or in RESP3 a dict of the server's names."""
    if not isinstance(reply, dict):
        return reply.get(name)
    names = {key.decode() if isinstance(key, bytes) else key: value for key, value in reply.items()}
    return names[
        {
            "insertedNum": "Number of items inserted",
            "deletedNum": "Number of items deleted",
            "capacity": "Capacity",
            "filterNum": "Number of filters",
        }[name]
    ]


def bloom(client):
    bf = client.bf()
    assert bf.create("seen", 0.01, 1000)
    refuses(lambda: bf.create("seen", 0.01, 1000), "item exists")
    assert bf.add("seen", "a") == 1
    assert bf.add("seen", "a") == 0
    assert bf.madd("seen", "a", "b", "c") == [0, 1, 1]
    assert bf.exists("seen", "b") == 1
    assert bf.exists("seen", "z") == 0
    assert bf.mexists("seen", "a", "z", "c") == [1, 0, 1]
    assert bf.insert("made", ["a", "b"], capacity=50, error=0.001, expansion=2) == [1, 1]
    refuses(lambda: bf.insert("none", ["a"], noCreate=True), "not found")
    assert bf.card("seen") == 3
    info = bf.info("seen")
    assert field(info, "insertedNum") == 3, info
    assert field(info, "capacity") == 1000
    assert field(info, "filterNum") == 1

    # Chunks go out of one server and into another key.
    client.delete("copy")
    position = 0
    while True:
        position, data = bf.scandump("seen", position)
        if position == 0:
            break
        assert bf.loadchunk("copy", position, data) in (True, b"OK", "OK")
    assert bf.mexists("copy", "a", "z", "c") == [1, 0, 1]


def cuckoo(client):
    cf = client.cf()
    assert cf.create("carts", 1000)
    assert cf.add("carts", "a") == 1
    assert cf.addnx("carts", "a") == 0
    assert cf.insert("carts", ["b", "c"]) == [1, 1]
    assert cf.insertnx("carts", ["b", "d"]) == [0, 1]
    assert cf.exists("carts", "a") == 1
    assert cf.mexists("carts", "a", "z") == [1, 0]
    assert cf.count("carts", "a") == 1
    assert cf.delete("carts", "a") == 1
    assert cf.exists("carts", "a") == 0
    info = cf.info("carts")
    assert field(info, "insertedNum") == 3, info
    assert field(info, "deletedNum") == 1
    position, data = cf.scandump("carts", 0)
    assert position == 1 and data


def around(client):
    assert client.ping()
    assert client.set("name", "tamis", ex=100, nx=True)
    assert client.set("name", "other", nx=True) is None
    assert client.get("name") == b"tamis"
    assert 90 < client.ttl("name") <= 100
    assert client.incr("n") == 1 and client.incrby("n", 5) == 6
    assert client.setbit("bits", 4_294_967_295, 1) == 0
    assert client.getbit("bits", 4_294_967_295) == 1
    assert client.bitcount("bits") == 1
    assert client.memory_usage("bits") < 2_000_000
    assert client.bitfield("field").incrby("u8", 0, 255).incrby("u8", 0, 1).execute() == [255, 0]
    assert client.type("seen") == b"MBbloom--"

    with client.pipeline(transaction=False) as pipe:
        for i in range(10_000):
            pipe.execute_command("BF.ADD", "piped", i)
        assert sum(pipe.execute()) > 9_800
    with client.pipeline(transaction=True) as pipe:
        pipe.set("a", 1)
        pipe.bf().add("seen", "d")
        pipe.incr("a")
        replies = pipe.execute()
        assert replies[0] and replies[1] == 1 and replies[2] == 2, replies
    with client.pipeline() as pipe:
        pipe.watch("a")
        client.set("a", 7)
        pipe.multi()
        pipe.set("a", 8)
        try:
            pipe.execute()
            raise AssertionError("the watched key had changed")
        except redis.WatchError:
            pass
    assert client.get("a") == b"7"

    for i in range(100):
        client.bf().add(f"many:{i}", "x")
    assert len(set(client.scan_iter("many:*", count=7))) == 100
    assert client.copy("seen", "seen2") and client.bf().exists("seen2", "a") == 1
    assert client.rename("seen2", "seen3") and client.exists("seen2") == 0
    payload = client.dump("seen3")
    assert client.restore("seen4", 0, payload) and client.bf().exists("seen4", "a") == 1

    assert client.info("server")["redis_mode"] == "standalone"
    assert client.config_get("port")
    assert client.client_setname("test") and client.client_getname() in ("test", b"test")
    assert client.client_id() > 0 and client.client_list()
    modules = client.module_list()
    assert any(b"bf" in str(module).encode() for module in modules), modules
    assert "BF.ADD" in {name.upper() for name in client.command()}
    assert client.acl_whoami() in ("default", b"default")
    assert isinstance(client.slowlog_get(), list)
    assert client.time()[0] > 1_700_000_000


def users(client, port):
    assert client.acl_setuser(
        "reader", enabled=True, passwords=["+secret"], categories=["+@bloom", "-@write"], keys=["shop:*"]
    )
    client.bf().add("shop:seen", "a")
    reader = connect(port, username="reader", password="secret")
    assert reader.bf().exists("shop:seen", "a") == 1
    for call, text in [
        (lambda: reader.bf().exists("seen", "a"), "permissions"),
        (lambda: reader.bf().add("shop:seen", "b"), "permissions"),
        (lambda: reader.flushall(), "permissions"),
    ]:
        try:
            call()
            raise AssertionError("it was allowed")
        except redis.exceptions.NoPermissionError as error:
            assert text in str(error)
    try:
        connect(port, username="reader", password="wrong").ping()
        raise AssertionError("a wrong password was taken")
    except redis.exceptions.AuthenticationError:
        pass
    assert client.acl_deluser("reader") == 1


def main():
    has_module = len(sys.argv) > 2
    with tempfile.TemporaryDirectory() as folder:
        if has_module:
            server, port = start_with_module(sys.argv[1], os.path.abspath(sys.argv[2]), folder)
        else:
            server, port = start(os.path.abspath(sys.argv[1]), folder)
        try:
            for protocol in (2, 3):
                client = connect(port, protocol=protocol)
                client.flushall()
                for part in (bloom, cuckoo) if has_module else (bloom, cuckoo, around):
                    part(client)
                if not has_module:
                    users(client, port)
                print(f"redis-py {redis.__version__}, RESP{protocol}: passed")
        finally:
            server.kill()
            server.wait()


main()
