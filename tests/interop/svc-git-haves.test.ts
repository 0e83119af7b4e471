import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import {
  git,
  gitEnvironment,
  run,
  startCodeHost,
  startSvc,
  until,
  type CodeHost,
  type Svc,
} from "@devplat/testkit";
import { command } from "./svc-git-stand.ts";

const MIB = 2 ** 20;
/** `limits.git_command_bytes` of this test. */
const LIMIT = 16 * MIB;
/** Haves of a request just below the limit: each line takes 50 bytes. */
const HAVES = 320_000;
const HEADERS = {
  "Content-Type": "application/x-git-upload-pack-request",
  "Git-Protocol": "version=2",
};

describe("haves without end", { timeout: 240_000 }, () => {
  let host: CodeHost;
  let svc: Svc;
  let tip = "";
  before(async () => {
    host = await startCodeHost();
    const { path } = await host.addRepository("org", "r");
    tip = await git(["-C", path, "rev-parse", "refs/heads/main"]);
    svc = await startSvc({ codeHost: host, env: { SVC_LIMITS_GIT_COMMAND_BYTES: String(LIMIT) } });
    await svc.addCachedRepository("org", "r");
    assert.equal((await lsRemote()).code, 0);
  });
  after(async () => {
    await svc?.stop();
    await host?.stop();
  });

  const lsRemote = (): ReturnType<typeof run> =>
    run("git", ["ls-remote", `${svc.url}/org/r`], { env: gitEnvironment(), timeoutMs: 30_000 });
  /** Largest memory of the process so far, in MiB. */
  const peak = async (): Promise<number> => {
    const status = await readFile(`/proc/${svc.pid}/status`, "utf8");
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  };
  const post = (body: Buffer): Promise<Response> =>
    fetch(`${svc.url}/org/r/git-upload-pack`, { method: "POST", headers: HEADERS, body });

  it("that repeat one object are answered in bounded time and memory [svc 11.8]", async (t) => {
    const body = command("fetch", [`want ${tip}`, ...Array<string>(HAVES).fill(`have ${tip}`)]);
    assert.ok(body.length < LIMIT);
    const earlier = await peak();
    const startedAt = performance.now();
    for (let round = 0; round < 8; round++) {
      const answer = await post(body);
      await answer.arrayBuffer();
      assert.ok([200, 413].includes(answer.status), String(answer.status));
    }
    const seconds = (performance.now() - startedAt) / 1000;
    const grown = (await peak()) - earlier;
    t.diagnostic(`8 requests of ${HAVES} haves: ${seconds.toFixed(1)} s, ${grown.toFixed(0)} MiB more`);
    assert.ok(seconds < 60, `${seconds} s`);
    assert.ok(grown < 400, `${grown} MiB`);
    assert.equal((await lsRemote()).code, 0);
  });

  it("in a body that never ends are refused at limits.git_command_bytes [svc 11.8]", async (t) => {
    const earlier = await peak();
    const socket = connect(Number(new URL(svc.url).port), "127.0.0.1");
    let text = "";
    let sent = 0;
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.on("error", () => undefined);
    socket.setMaxListeners(0);
    const head = Object.entries({ Host: new URL(svc.url).host, "Transfer-Encoding": "chunked", ...HEADERS });
    socket.write(
      `POST /org/r/git-upload-pack HTTP/1.1\r\n${head.map((pair) => pair.join(": ")).join("\r\n")}\r\n\r\n`,
    );
    const chunk = (bytes: Buffer): Buffer =>
      Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
    // Without the flush-pkt that would end the request.
    socket.write(chunk(command("fetch", [`want ${tip}`]).subarray(0, -4)));
    const lines = chunk(Buffer.from(`0032have ${tip}\n`.repeat(5000)));
    while (!socket.destroyed && sent < 16 * LIMIT) {
      sent += lines.length;
      if (socket.write(lines)) continue;
      await new Promise<void>((resolve) => {
        for (const event of ["drain", "close"]) socket.once(event, () => resolve());
      });
    }
    await until(() => socket.destroyed);
    const grown = (await peak()) - earlier;
    t.diagnostic(`${(sent / MIB).toFixed(0)} MiB sent, ${grown.toFixed(0)} MiB more`);
    assert.match(text, /^HTTP\/1\.1 413 /);
    assert.ok(sent < 4 * LIMIT, String(sent));
    assert.ok(grown < 200, `${grown} MiB`);
    assert.equal((await lsRemote()).code, 0);
  });
});
