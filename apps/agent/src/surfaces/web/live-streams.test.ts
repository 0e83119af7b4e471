import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { describe, it } from "node:test";
import { startTestServer } from "./server.test-kit.ts";
import { ruleView } from "./memory-view.test-kit.ts";
import { assertProtected } from "./responses.test-kit.ts";

describe("live streams", () => {
  /** Reads a stream until its text matches, or it ends. */
  async function readUntil(stream: IncomingMessage, pattern: RegExp): Promise<string> {
    let text = "";
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      text += String(chunk);
      if (pattern.test(text)) break;
    }
    return text;
  }

  it("push the time of the last cycle and the connection on every change [agent 34.1]", async () => {
    await using server = await startTestServer();
    const stream = await server.open("/ui/sse");
    assertProtected({ headers: stream.headers });
    assert.match(String(stream.headers["content-type"]), /^text\/event-stream/);
    await readUntil(
      stream,
      /event: updated\ndata: \{"updated_at":"2026-11-21T09:00:01.000Z","connected":true\}\n\n/,
    );
    const { sync, store } = server.view.status();
    server.view.set({
      status: {
        sync: { ...sync, last_cycle_at: "2026-11-21T10:00:00.000Z" },
        store: { ...store, reachable: false },
      },
    });
    const text = await readUntil(stream, /"connected":false/);
    assert.match(text, /\{"updated_at":"2026-11-21T10:00:00.000Z","connected":false\}/);
    stream.destroy();
  });

  it("of a page carry its header and its own topic, of a rule's page that rule alone [agent 34.1]", async () => {
    await using server = await startTestServer({
      configuration: "store: { driver: embedded }\nenrolments: {a: {engine: ssh}}",
    });
    server.view.set({ rules: [ruleView("npm"), ruleView("other")] });
    const targets = async (show: string): Promise<string[]> => {
      const stream = await server.open(`/ui/sse${show}`);
      let sent = "";
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        sent += chunk.toString();
        if (sent.includes("</hx-partial>")) break;
      }
      stream.destroy();
      return [...sent.matchAll(/hx-target="#([\w-]+)"/g)].map(([, id = ""]) => id.replace(/-YQ$/, "-KEY"));
    };
    const table: [string, string[]][] = [
      ["?show=header", []],
      ["?show=overview", ["live-content"]],
      ["?show=rules", ["live-rules"]],
      ["?show=rule%3Anpm", ["live-rule"]],
      ["?show=rule%3Aabsent", []],
      ["?show=enrolments", ["enrolment-list", "page-KEY"]],
      ["?show=setup", ["setup-KEY", "setup-end"]],
      ["?show=remotes", ["live-remotes"]],
      ["?show=remote%3Aabsent", ["live-remote"]],
      ["?show=agent", ["live-agent"]],
      ["?show=peer-socket", ["live-peer-socket"]],
      [
        "",
        [
          "live-content",
          "live-rules",
          "enrolment-list",
          "page-KEY",
          "setup-KEY",
          "setup-end",
          "live-remotes",
          "live-peer-socket",
          "live-agent",
        ],
      ],
    ];
    for (const [show, own] of table) {
      assert.deepEqual(await targets(show), ["live-state", "live-notice", ...own], show);
    }
  });

  it("give the API's listeners the status as JSON [agent 34.2]", async () => {
    await using server = await startTestServer();
    const stream = await server.open("/api/v1/events");
    const text = await readUntil(stream, /data: .*\n\n/);
    const data = /event: status\ndata: (.*)\n/.exec(text)?.[1] ?? "";
    assert.deepEqual(JSON.parse(data), server.view.status());
    stream.destroy();
  });

  it("end with the token under which they were opened, and go on when it is the same [agent 34.6]", async () => {
    await using server = await startTestServer({ token: "hvs.one" });
    const page = await server.open("/ui/sse");
    const api = await server.open("/api/v1/events");
    let ended = false;
    const both = Promise.all([readUntil(page, /never/), readUntil(api, /never/)]).then(() => (ended = true));
    server.replaceToken("hvs.one");
    const follower = await server.open("/api/v1/events");
    await readUntil(follower, /event: status/);
    assert.equal(ended, false, "renewed, not replaced");
    server.replaceToken("hvs.two");
    await both;
  });

  it("end when the daemon is signed out, and when it stops", async () => {
    await using server = await startTestServer();
    const page = await server.open("/ui/sse");
    const api = await server.open("/api/v1/events");
    const ended = Promise.all([readUntil(page, /never/), readUntil(api, /never/)]);
    server.view.set({ status: { authenticated: false } });
    await assert.doesNotReject(ended);
    server.view.set({ status: { authenticated: true } });
    const last = await server.open("/ui/sse");
    const lastEnded = readUntil(last, /never/);
    await server.stop();
    await assert.doesNotReject(lastEnded);
  });
});
