import assert from "node:assert/strict";
import { link, mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, afterEach, before, describe, it } from "node:test";
import { Secret, silentLogger } from "@devplat/base";
import type { Clipboard } from "../../desktop/clipboard.ts";
import { PeerFanOut } from "./fan-out.ts";
import { PeersFirstClipboard } from "./peers-first.ts";

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

describe("PeerFanOut", () => {
  let folder: string;
  const servers: Server[] = [];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "agent-peers-"));
  });
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
  });
  after(() => rm(folder, { recursive: true }));

  /** A peer that answers with the status, or never. */
  async function peer(name: string, status: number | "hangs"): Promise<Seen[]> {
    const seen: Seen[] = [];
    const server = createServer((request, response) => {
      void text(request).then((body) => {
        seen.push({ method: request.method, url: request.url, headers: request.headers, body });
        if (status !== "hangs") response.writeHead(status).end();
      });
    });
    server.listen(join(folder, name));
    await once(server, "listening");
    servers.push(server);
    return seen;
  }
  const fanOut = (): PeerFanOut =>
    new PeerFanOut({
      patterns: ["~/daemon.sock", "~/daemon.*.sock"],
      home: folder,
      logger: silentLogger,
      restTimeoutMs: 20,
    });

  it("the request is form-posted to every live socket that matches the patterns [agent 7.1 30.1]", async () => {
    const peers = [
      await peer("daemon.sock", 200),
      await peer("daemon.one.sock", 200),
      await peer("daemon.two.sock", 204),
    ];
    const other = await peer("other.sock", 200);
    assert.equal(await fanOut().send({ kind: "clipboard", text: new Secret("a\r\nb ü") }), 3);
    for (const [request] of peers) {
      assert.ok(request);
      assert.equal(request.method, "POST");
      assert.equal(request.url, "/api/v1/remote/clipboard");
      assert.equal(request.headers["content-type"], "application/x-www-form-urlencoded");
      assert.equal(request.headers.origin, undefined);
      assert.equal(request.body, "text=a%0D%0Ab+%C3%BC");
    }
    assert.equal(other.length, 0);
  });

  for (const status of [400, 403, 404, 413, 500, 502, 503, 301]) {
    it(`a ${status} answer from a peer counts as not accepted [agent 7.3 30.3]`, async () => {
      await peer("daemon.sock", status);
      assert.equal(await fanOut().send({ kind: "browse", url: "https://example.com/" }), 0);
    });
  }

  it("one accepting peer is enough [agent 7.2]", async () => {
    await peer("daemon.one.sock", 403);
    await peer("daemon.two.sock", 200);
    await peer("daemon.three.sock", 503);
    assert.equal(await fanOut().send({ kind: "notify", notification: { level: "info", title: "t" } }), 1);
  });

  it("a socket without a listener is skipped", async () => {
    await peer("daemon.gone.sock", 200);
    const dead = servers.pop();
    assert.ok(dead);
    // Node removes the file of a listener; a broken forward leaves it behind.
    await link(join(folder, "daemon.gone.sock"), join(folder, "daemon.left.sock"));
    dead.close();
    assert.deepEqual(await fanOut().sockets(), [join(folder, "daemon.left.sock")]);
    assert.equal(await fanOut().send({ kind: "browse", url: "https://example.com/" }), 0);
    await rm(join(folder, "daemon.left.sock"));
  });

  it("without peers the count of acceptances is zero", async () => {
    assert.equal(await fanOut().send({ kind: "browse", url: "https://example.com/" }), 0);
  });

  it("a peer that hangs is not waited for once another has accepted", async () => {
    await peer("daemon.one.sock", "hangs");
    await peer("daemon.two.sock", 200);
    assert.equal(await fanOut().send({ kind: "browse", url: "https://example.com/" }), 1);
  });

  it("given up by the caller, it ends immediately", async () => {
    await peer("daemon.sock", "hangs");
    const abort = new AbortController();
    const sent = fanOut().send({ kind: "browse", url: "https://example.com/" }, abort.signal);
    abort.abort();
    assert.equal(await sent, 0);
  });
});

describe("PeersFirstClipboard", () => {
  function clipboards(accepting: number): { clipboard: Clipboard; local: string[]; sent: string[] } {
    const local: string[] = [];
    const sent: string[] = [];
    const clipboard = new PeersFirstClipboard(
      {
        send: async (action) => {
          if (action.kind === "clipboard") sent.push(action.text.reveal());
          return accepting;
        },
      },
      {
        copy: async (secret) => {
          local.push(secret.reveal());
          return "copied";
        },
      },
    );
    return { clipboard, local, sent };
  }

  it("goes to the peers, and to this host only when none has accepted", async () => {
    const with2 = clipboards(2);
    assert.equal(await with2.clipboard.copy(new Secret("x")), "copied");
    assert.deepEqual([with2.sent, with2.local], [["x"], []]);
    const with0 = clipboards(0);
    assert.equal(await with0.clipboard.copy(new Secret("x")), "copied");
    assert.deepEqual([with0.sent, with0.local], [["x"], ["x"]]);
  });

  it("a text that no clipboard takes is sent nowhere", async () => {
    const { clipboard, sent, local } = clipboards(1);
    assert.equal(await clipboard.copy(new Secret("a\0b")), "unusable_text");
    assert.deepEqual([sent, local], [[], []]);
  });
});
