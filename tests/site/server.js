// A static file server for the site, below a path that is not the root.

import { readFile } from "node:fs/promises";
import http from "node:http";
import { extname, join } from "node:path";

const TYPES = {
  ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".json": "application/json", ".png": "image/png", ".svg": "image/svg+xml",
};

/** The path of the site on the server. */
const PATH = "/any/path/";

/** Serves a folder. `missing` has each requested path that the folder does not have. */
export async function serve(folder) {
  const missing = [];
  const server = http.createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://site").pathname);
    const name = path.endsWith("/") ? `${path}index.html` : path;
    try {
      if (!path.startsWith(PATH)) throw new Error("outside of the site");
      const data = await readFile(join(folder, name.slice(PATH.length)));
      response.writeHead(200, { "content-type": TYPES[extname(name)] ?? "application/octet-stream" }).end(data);
    } catch {
      missing.push(path);
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    missing,
    url: `http://127.0.0.1:${server.address().port}${PATH}`,
    end() {
      server.closeAllConnections();
      server.close();
    },
  };
}
