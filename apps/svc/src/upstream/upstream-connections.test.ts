import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { startForwardProxy, tempFolder } from "@devplat/testkit";
import { UpstreamConnections } from "./upstream-connections.ts";

describe("connections to the code host", () => {
  it("use the proxy of the environment, except for an IPv6 host in NO_PROXY", async (t) => {
    const served: string[] = [];
    const host = createServer((incoming, outgoing) => {
      served.push(incoming.headers.host ?? "");
      outgoing.end("answer");
    }).listen(0, "127.0.0.1");
    await once(host, "listening");
    const { port } = host.address() as AddressInfo;
    const routes = { "git.example:80": port, "[2001:db8::5]:80": port };
    const proxy = await startForwardProxy({ routes, credentials: "ada:planted" });
    t.after(async () => {
      await proxy.stop();
      host.closeAllConnections();
      host.close();
    });
    const ask = async (origin: string, NO_PROXY = ""): Promise<string> => {
      const HTTP_PROXY = `http://ada:planted@127.0.0.1:${proxy.port}`;
      const connections = new UpstreamConnections({ environment: { HTTP_PROXY, NO_PROXY } });
      const pool = await connections.pool(origin, 2);
      try {
        const signal = AbortSignal.timeout(NO_PROXY === "" ? 10_000 : 300);
        const { body } = await pool.request({ origin, path: "/x", method: "GET", signal });
        return await body.text();
      } finally {
        await pool.destroy();
      }
    };
    assert.equal(await ask("http://git.example"), "answer");
    assert.equal(await ask("http://[2001:db8::5]"), "answer");
    assert.deepEqual(proxy.seen, ["GET http://git.example/x", "GET http://[2001:db8::5]/x"]);
    assert.deepEqual(served, ["git.example", "[2001:db8::5]"]);
    // Nothing answers at this address; what counts is that the proxy is not asked.
    await assert.rejects(ask("http://[2001:db8::5]", "a.b,2001:db8::5"));
    assert.equal(proxy.seen.length, 2);
  });

  it("an invalid proxy address prevents the start; the error names only the variable", async () => {
    for (const HTTPS_PROXY of [
      "http://u:planted@proxy:xx",
      "socks5://u:planted@proxy:1",
      "http://bad host/",
    ]) {
      await assert.rejects(
        new UpstreamConnections({ environment: { HTTPS_PROXY } }).check("https://git.example"),
        {
          code: "config_refused",
          message: "HTTPS_PROXY is not the address of an HTTP proxy",
        },
      );
    }
  });

  it("host.ca_file that is missing, or no PEM, refuses the start and names the file", async () => {
    const folder = await tempFolder("ca");
    const file = join(folder.path, "ca.pem");
    assert.throws(() => new UpstreamConnections({ caFile: file }), {
      code: "config_refused",
      message: /ca\.pem cannot be read/,
    });
    await writeFile(file, "nothing");
    assert.throws(() => new UpstreamConnections({ caFile: file }), { message: /holds no PEM certificate/ });
    await folder.remove();
  });
});
