// A server to look at: `tamis serve` as a program, and commands sent to it.

import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { end, start, started } from "../deadline.mjs";

/** Starts a server; ports are free ones unless said. */
export async function startServer(program, { dir = mkdtempSync(join(tmpdir(), "tamis-console-")), port = 0, httpPort = 0, more = [] } = {}) {
  const child = start(program, ["serve", "--port", String(port), "--http-port", String(httpPort), "--dir", dir, ...more]);
  const [redis, console] = await started(child, child.stderr, (log) => {
    const ports = [/address=[^ ]*:(\d+)/, /url=http:\/\/[^ ]*:(\d+)\//].map((pattern) => pattern.exec(log)?.[1]);
    return ports.every(Boolean) && ports.map(Number);
  });
  return {
    dir,
    port: redis,
    httpPort: console,
    url: `http://127.0.0.1:${console}/`,
    kill: () => end(child),
    async end() {
      await end(child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Sends commands, each a list of texts or bytes, and waits until all are answered. Each must answer by one line or number. */
export async function say(server, ...commands) {
  const socket = net.connect(server.port, "127.0.0.1");
  const last = "tamis-console-tests-are-done";
  const parts = [...commands, ["ECHO", last]].flatMap((words) => [
    Buffer.from(`*${words.length}\r\n`),
    ...words.flatMap((word) => {
      const bytes = Buffer.isBuffer(word) ? word : Buffer.from(String(word));
      return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")];
    }),
  ]);
  socket.write(Buffer.concat(parts));
  let said = "";
  for await (const data of socket) {
    said += data.toString("latin1");
    if (said.endsWith(`${last}\r\n`)) break;
  }
  const refused = /^-.*$/m.exec(said);
  if (refused) throw new Error(refused[0]);
}

/** Items of a command. */
export function items(many, from = 0) {
  return Array.from({ length: many }, (_, i) => `item:${from + i}`);
}
