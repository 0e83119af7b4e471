import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, it } from "node:test";
import { freePort } from "@devplat/testkit";
import { PortGuard } from "../../apps/agent/src/surfaces/web/access/port-guard.ts";
import {
  systemSocketOwners,
  type SocketOwners,
} from "../../apps/agent/src/surfaces/web/access/socket-owners.ts";
import { startTestServer, type TestServer } from "../../apps/agent/src/surfaces/web/server.test-kit.ts";
import { connectAsNobody } from "./agent-web/foreign-connections.ts";

/** A form of the pages, as another user would send it. */
function formRequest(server: TestServer, path: string, form: string): string {
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: ${server.host}`,
    `Origin: ${server.url}`,
    "Content-Type: application/x-www-form-urlencoded",
    `Content-Length: ${form.length}`,
  ];
  return [...head, "", form].join("\r\n");
}

/** The kernel's list of sockets, read only after the test has done its part. */
class HeldTable implements SocketOwners {
  readonly uid = systemSocketOwners.uid;
  readonly #asked = Promise.withResolvers<void>();
  readonly #released = Promise.withResolvers<void>();
  #held = false;

  readonly read: SocketOwners["read"] = async (table, port) => {
    if (this.#held) {
      this.#asked.resolve();
      await this.#released.promise;
    }
    return await systemSocketOwners.read(table, port);
  };

  /** Holds the next reads. */
  hold(): void {
    this.#held = true;
  }

  /** Resolves when a read is held. */
  asked(): Promise<void> {
    return this.#asked.promise;
  }

  release(): void {
    this.#held = false;
    this.#released.resolve();
  }
}

describe("the web port when another user closes a connection before its look-up", () => {
  const requests: [name: string, path: string, form: string][] = [
    ["a secret is not written", "/ui/secrets/tools/x1", "action=add&version=0&name=x1&text=planted"],
    ["no sync is started", "/ui/sync", ""],
  ];
  for (const [name, path, form] of requests) {
    it(`${name} when an own process takes the same source port [agent 32.9]`, async () => {
      const table = new HeldTable();
      await using server = await startTestServer({
        guard: new PortGuard(table),
        editablePaths: ["tools"],
      });
      table.hold();
      const sourcePort = await freePort();
      const request = formRequest(server, path, form);
      await using attacker = await connectAsNobody(server.url, { request, sourcePort });
      await table.asked();
      await attacker.reset();
      const { hostname, port } = new URL(server.url);
      const own = connect({ host: hostname, port: Number(port), localPort: sourcePort });
      await once(own, "connect");
      table.release();
      // The own connection is served; its answer comes after the request of the other user was dealt with.
      own.write(`GET /api/v1/status HTTP/1.1\r\nHost: ${server.host}\r\n\r\n`);
      const [answer] = (await once(own, "data")) as [Buffer];
      assert.match(answer.toString(), /^HTTP\/1\.1 200 /);
      own.destroy();
      assert.equal((await server.send("/api/v1/status")).status, 200);
      assert.equal(server.view.cycles, 0);
      await assert.rejects(server.store.read("tools/x1"), { code: "not_found" });
      assert.deepEqual(server.warnings, ["request to the web port refused"]);
    });
  }
});
