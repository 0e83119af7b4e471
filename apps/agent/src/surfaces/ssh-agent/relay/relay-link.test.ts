import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  AgentFrameReader,
  decodeAgentRequest,
  encodeAgentAnswer,
  encodeAgentFrame,
} from "@devplat/ssh-protocol";
import { tempFolder } from "@devplat/testkit";
import { MAX_BOUND_SESSIONS } from "../policy/session-chain.ts";
import { RelayLink } from "./relay-link.ts";

describe("RelayLink", () => {
  it("keeps a limited number of session-binds, however many a client sends", async () => {
    const folder = await tempFolder("relay-link");
    const path = join(folder.path, "s");
    const binds: string[] = [];
    const server = createServer((socket) => {
      const reader = new AgentFrameReader();
      socket.on("data", (chunk: Buffer) => {
        reader.push(chunk);
        for (let message = reader.next(); message !== undefined; message = reader.next()) {
          const request = decodeAgentRequest(message);
          if (request.type === "extension") binds.push(request.content.toString());
          const isBind = request.type === "extension";
          const answer = isBind
            ? ({ type: "success" } as const)
            : ({ type: "identities", identities: [] } as const);
          socket.write(encodeAgentFrame(encodeAgentAnswer(answer)));
        }
      });
    }).listen(path);
    await once(server, "listening");
    const { signal } = new AbortController();
    const link = new RelayLink(path, () => undefined);
    try {
      for (let at = 0; at < 100; at++) await link.bind(Buffer.from(`bind ${at}`), signal);
      assert.deepEqual(await link.ask({ type: "identities" }, signal), {
        type: "identities",
        identities: [],
      });
      // After the connection is made as well.
      for (let at = 100; at < 200; at++) await link.bind(Buffer.from(`bind ${at}`), signal);
      await link.ask({ type: "identities" }, signal);
      assert.deepEqual(
        binds,
        Array.from({ length: MAX_BOUND_SESSIONS }, (_, at) => `bind ${at}`),
      );
    } finally {
      link.close();
      server.close();
      await folder.remove();
    }
  });
});
