// The two clients of Node.js against `tamis serve`: node-redis with its Bloom module, and ioredis.
//
// Run by `cargo xtask test`, which says where the program (TAMIS) and the packages (MODULES) are. With SERVER and MODULE,
// node-redis talks to a Redis or Valkey server with the module of Tamis.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, end, start, started, test } from "../deadline.mjs";

const require = createRequire(join(process.env.MODULES, "node_modules", "any.js"));
const { createClient } = require("redis");
const Redis = require("ioredis");

const dir = mkdtempSync(join(tmpdir(), "tamis-clients-"));
let server;
let port;

before(async () => {
  if (process.env.MODULE) {
    port = await freePort();
    const words = ["--port", port, "--dir", dir, "--save", "", "--loadmodule", process.env.MODULE];
    server = start(process.env.SERVER, words, ["ignore", "pipe", "ignore"]);
    await started(server, server.stdout, (log) => log.includes("Ready to accept connections"));
    return;
  }
  server = start(process.env.TAMIS, ["serve", "--port", "0", "--dir", dir]);
  port = Number((await started(server, server.stderr, (log) => /ready.*address=[^ ]*:(\d+)/.exec(log)))[1]);
});

async function freePort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  return port;
}

after(async () => {
  await end(server);
  rmSync(dir, { recursive: true, force: true });
});

for (const RESP of [2, 3]) {
  test(`node-redis in RESP${RESP}`, async () => {
    const client = createClient({ url: `redis://127.0.0.1:${port}`, RESP });
    client.on("error", (error) => assert.fail(error));
    await client.connect();
    await client.flushAll();
    assert.equal(await client.bf.reserve("seen", 0.01, 1000), "OK");
    await assert.rejects(client.bf.reserve("seen", 0.01, 1000), /item exists/);
    assert.equal(await client.bf.add("seen", "a"), true);
    assert.deepEqual(await client.bf.mAdd("seen", ["a", "b"]), [false, true]);
    assert.equal(await client.bf.exists("seen", "b"), true);
    assert.deepEqual(await client.bf.mExists("seen", ["a", "z"]), [true, false]);
    assert.deepEqual(await client.bf.insert("made", ["a"], { CAPACITY: 50, ERROR: 0.001 }), [true]);
    assert.equal(await client.bf.card("seen"), 2);
    const info = await client.bf.info("seen");
    assert.equal(info.Capacity ?? info.capacity, 1000);
    let iterator = 0;
    for (;;) {
      const { iterator: next, chunk } = await client.withTypeMapping({ 36: Buffer }).bf.scanDump("seen", iterator);
      if (Number(next) === 0) break;
      assert.equal(String(await client.bf.loadChunk("copy", next, chunk)), "OK");
      iterator = next;
    }
    assert.equal(await client.bf.exists("copy", "a"), true);

    assert.equal(await client.cf.reserve("carts", 1000), "OK");
    assert.equal(await client.cf.add("carts", "a"), true);
    assert.equal(await client.cf.addNX("carts", "a"), false);
    assert.deepEqual(await client.cf.insert("carts", ["b", "c"]), [true, true]);
    assert.equal(await client.cf.count("carts", "a"), 1);
    assert.equal(await client.cf.del("carts", "a"), true);
    assert.equal(await client.cf.exists("carts", "a"), false);

    assert.equal(await client.set("name", "tamis", { EX: 100 }), "OK");
    assert.equal(await client.get("name"), "tamis");
    const replies = await client.multi().set("n", "1").incr("n").get("n").exec();
    assert.deepEqual(replies, ["OK", 2, "2"]);
    const many = await Promise.all(Array.from({ length: 5000 }, (_, i) => client.bf.add("piped", String(i))));
    assert.ok(many.filter(Boolean).length > 4900);
    let keys = 0;
    for await (const found of client.scanIterator({ MATCH: "*", COUNT: 3 })) keys += [].concat(found).length;
    assert.equal(keys, await client.dbSize());
    await client.close();
  });
}

test("ioredis", { skip: Boolean(process.env.MODULE) }, async () => {
  const client = new Redis(port, "127.0.0.1");
  await client.flushall();
  assert.equal(await client.call("BF.RESERVE", "seen", "0.01", "1000"), "OK");
  assert.deepEqual(await client.call("BF.MADD", "seen", "a", "b"), [1, 1]);
  assert.deepEqual(await client.call("BF.MEXISTS", "seen", "a", "z"), [1, 0]);
  assert.equal(await client.setbit("bits", 7, 1), 0);
  assert.equal(await client.bitcount("bits"), 1);
  const replies = await client.multi().set("n", 1).incr("n").exec();
  assert.deepEqual(replies, [[null, "OK"], [null, 2]]);
  const pipeline = client.pipeline();
  for (let i = 0; i < 1000; i++) pipeline.call("BF.ADD", "piped", i);
  assert.ok((await pipeline.exec()).every(([error]) => error === null));
  await client.quit();
});
