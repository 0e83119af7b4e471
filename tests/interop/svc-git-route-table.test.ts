import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { FLUSH_PKT } from "@devplat/git-protocol";
import { git, repositories } from "@devplat/testkit";
import { GIT_ROUTES, type GitRoute } from "../../apps/svc/src/git/route-table.ts";
import { PROXY_TOKEN, basic, command, startStand, type Stand } from "./svc-git-stand.ts";

type Name = keyof typeof GIT_ROUTES;
/** Bytes of a response that arrive before the code host breaks it off. */
const SENT_BYTES = 100_000;

interface Sample {
  /** Below `/org/r`. */
  readonly path: string;
  readonly method?: "POST" | "GET";
  readonly level: "read" | "write" | undefined;
  /** Type and text of the body. Default: the type of git's command of this name, and a flush-pkt. */
  readonly body?: { readonly type: string; readonly text: string };
}

/** One request for each row. A fetch has a body of its own. */
const SAMPLES: Readonly<Record<Exclude<Name, "raw" | "other">, Sample>> = {
  advertise_fetch: { path: "/info/refs?service=git-upload-pack", level: "read" },
  advertise_push: { path: "/info/refs?service=git-receive-pack", level: "write" },
  fetch: { path: "/git-upload-pack", method: "POST", level: "read" },
  push: { path: "/git-receive-pack", method: "POST", level: "write" },
  ensure: {
    path: "/svc/ensure",
    method: "POST",
    level: "read",
    body: {
      type: "application/json",
      text: JSON.stringify({ refs: { "refs/heads/main": "0".repeat(40) } }),
    },
  },
  seed: { path: "/svc/seed", level: "read" },
  seed_file: { path: `/svc/seed/pack-${"0".repeat(40)}.pack`, level: "read" },
  dumb_refs: { path: "/info/refs", level: "read" },
  dumb_object: { path: "/HEAD", level: "read" },
  lfs: { path: "/info/lfs/locks", level: "read" },
  archive: { path: "/archive/main.tar.gz", level: "read" },
};

describe("the table of git routes", { timeout: 120_000 }, () => {
  let stand: Stand;
  let away: Stand;
  let fetchBody: Buffer;
  before(async () => {
    stand = await startStand({ listed: ["r"], fill: "wants" });
    away = await startStand({ listed: ["r"], hostUrl: "http://127.0.0.1:1" });
    const { path } = await stand.codeHost.addRepository("org", "r", {
      build: (dir) => repositories.bigBlobs(dir, { blobs: 1, bytes: 2_000_000 }),
    });
    fetchBody = command("fetch", [`want ${await git(["-C", path, "rev-parse", "main"])}`, "done"]);
  });
  after(async () => {
    await stand.stop();
    await away.stop();
  });

  const send = (
    url: string,
    { path, method = "GET", body }: Sample,
    authorization?: string,
  ): Promise<Response> =>
    fetch(`${url}/org/r${path}`, {
      method,
      headers: {
        "Git-Protocol": "version=2",
        ...(method === "GET"
          ? {}
          : { "Content-Type": body?.type ?? `application/x${path.replace("/", "-")}-request` }),
        ...(authorization === undefined ? {} : { Authorization: authorization }),
      },
      redirect: "manual",
      ...(method === "GET"
        ? {}
        : { body: body?.text ?? (path === "/git-upload-pack" ? fetchBody : FLUSH_PKT) }),
    });

  for (const [name, sample] of Object.entries(SAMPLES)) {
    const route: GitRoute = GIT_ROUTES[name as Name];

    it(`${name}: answers its methods only`, async () => {
      const other = ["TRACE", "OPTIONS", "PUT"].find((method) => !route.methods.includes(method));
      const answer = await stand.ask(`/org/r${sample.path}`, { method: other ?? "COPY" });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers["allow"], route.methods.join(", "));
    });

    it(`${name}: needs the permission of the table`, async () => {
      stand.actions.length = 0;
      await (await send(stand.url, sample, basic(PROXY_TOKEN))).arrayBuffer();
      assert.deepEqual(
        stand.actions.map((action) => action?.level),
        [sample.level],
      );
      if (route.permission !== "operation") assert.equal(route.permission, sample.level);
    });

    it(`${name}: a failure before the first byte has a status of its own`, async () => {
      const answer = await send(away.url, sample);
      assert.equal(route.failure.before, "status");
      assert.equal(answer.status, 502);
      assert.match(await answer.text(), /127\.0\.0\.1:1/);
    });

    it(`${name}: policy for redirects to another server: ${route.redirects}`, async () => {
      stand.codeHost.inject(
        { path: /\/r/, times: 2 },
        { status: 302, headers: { Location: "https://other.example/x" } },
      );
      const answer = await send(stand.url, sample);
      assert.equal(answer.status, route.redirects === "never" ? 502 : 302);
      await answer.arrayBuffer();
      stand.codeHost.clearFaults();
    });

    // A file of a seed comes from the disk: svc-seed.test.ts.
    if (route.failure.after === "none" || name === "seed_file") continue;
    it(`${name}: a failure after the first byte ends in a ${route.failure.after}`, async () => {
      const match =
        route.failure.after === "packet" ? { command: "fetch", times: 1 } : { path: /\/r/, times: 1 };
      const body =
        route.failure.after === "packet" ? {} : { status: 200, body: Buffer.alloc(2 * SENT_BYTES) };
      stand.codeHost.inject(match, { ...body, cutAfterBytes: SENT_BYTES });
      if (route.failure.after === "packet") {
        const { text } = await stand.post("org/r", fetchBody);
        assert.ok(text.includes("\u0003") && /broke off/.test(text));
      } else {
        const answer = await send(stand.url, sample);
        assert.equal(answer.status, 200);
        await assert.rejects(answer.arrayBuffer());
      }
      stand.codeHost.clearFaults();
    });
  }
});
