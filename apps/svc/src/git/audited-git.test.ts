import assert from "node:assert/strict";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { RequestContext } from "../http/request/request-context.ts";
import type { GitHandler } from "../http/server/listener.ts";
import type { Target } from "../http/routing/target.ts";
import { Metrics } from "../telemetry/metrics.ts";
import type { AuditEvent } from "../audit/audit-event.ts";
import { AuditedGit } from "./audited-git.ts";

const TARGET = {
  kind: "repository",
  owner: "acme",
  name: "widgets",
  tail: { kind: "upload_pack" },
  upstreamPath: "/acme/widgets.git/git-upload-pack",
} as const satisfies Target;

/** The audit record of a request, a fetch by default, whose client leaves before the end of the response. */
async function recordOf(
  respond: (context: RequestContext) => void,
  target: Extract<Target, { kind: "repository" }> = TARGET,
): Promise<AuditEvent | undefined> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const events: AuditEvent[] = [];
  const git: GitHandler = { handle: async (context) => respond(context) };
  const audited = new AuditedGit(git, { record: (event) => void events.push(event) });
  const metrics = new Metrics({ version: "0", processMetrics: false });
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    Object.assign(request, { method: "POST" });
    const facts = { remoteAddress: "192.0.2.1", expectsContinue: false, ownToken: () => false };
    response.once("close", () => setImmediate(resolve));
    void audited.handle(new RequestContext(request, response, metrics, facts), target, "management");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const asking = get(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  asking.on("error", () => undefined);
  asking.on("response", (found) => found.on("error", () => undefined).on("data", () => asking.destroy()));
  await over;
  server.close();
  return events[0];
}

describe("the audit of git", () => {
  it("a client that leaves in the middle of a fetch has failed", async () => {
    const event = await recordOf(({ response }) => void response.write("part"));
    assert.deepEqual([event?.action, event?.outcome], ["git.fetch", "failed"]);
  });

  it("a client that leaves on a fetch's last byte, as git does, has all of it", async () => {
    const event = await recordOf((context) => {
      context.delivered = true;
      context.response.write("all");
    });
    assert.deepEqual([event?.action, event?.outcome], ["git.fetch", "allowed"]);
  });

  it("a fetch that a queue refused has failed, and was not denied", async () => {
    const event = await recordOf((context) => {
      context.concludeCache("rejected");
      context.refusedBy = "queue";
      context.response.end("busy");
    });
    assert.deepEqual([event?.action, event?.outcome], ["git.fetch", "failed"]);
  });

  it("a request for a seed is recorded, except for one that is not there", async () => {
    const target = { ...TARGET, tail: { kind: "seed" } } as const;
    const answer = (status: number, outcome: "miss" | "rejected") => (context: RequestContext) => {
      context.concludeCache(outcome);
      context.response.writeHead(status).end("no");
    };
    assert.equal(await recordOf(answer(404, "miss"), target), undefined);
    const event = await recordOf(answer(404, "rejected"), target);
    assert.deepEqual([event?.action, event?.outcome], ["git.seed", "denied"]);
  });
});
