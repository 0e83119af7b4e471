import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdir, readFile, readdir, rm, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  SVC_LAUNCHER,
  tempFolder,
  until,
  type CodeHost,
  type TempFolder,
} from "@devplat/testkit";
import { command, contentOf } from "./svc-git-stand.ts";
import { ACCEL_SECRET, startAccelStand, type AccelKind, type AccelStand } from "./svc-accel-stand.ts";
import { finishFetch } from "./svc-slow-fetch.ts";

const MEGABYTE = 2 ** 20;
const PATH = "/org/large/git-upload-pack";
const ACCEL_METRIC = 'svc_cache_bytes_total{source="accel"}';
/** Headers whose values differ from request to request. */
const VARYING = new Set(["date", "x-request-id", "server-timing", "connection", "keep-alive"]);

let codeHost: CodeHost;
let folder: TempFolder;
let source = "";
let fetchBody: Buffer;

before(async () => {
  codeHost = await startCodeHost();
  folder = await tempFolder("svc-accel");
  const { path } = await codeHost.addRepository("org", "large", {
    build: (dir) => repositories.bigBlobs(dir, { blobs: 3, bytes: 8 * MEGABYTE }),
  });
  source = path;
  const oid = await git(["-C", path, "rev-parse", "refs/heads/main"]);
  fetchBody = command("fetch", ["no-progress", "ofs-delta", `want ${oid}`, "done"]);
});
after(async () => {
  await codeHost.stop();
  await folder.remove();
});

/** Posts the fetch, or asks with another method. @returns the response, paused before its first byte */
async function begin(
  url: string,
  ca: string | undefined,
  headers: Record<string, string> = {},
  method = "POST",
): Promise<IncomingMessage> {
  const all = {
    "Content-Type": "application/x-git-upload-pack-request",
    "Git-Protocol": "version=2",
    ...headers,
  };
  const options = { method, agent: false as const, headers: all };
  const outgoing = ca === undefined ? httpRequest(url, options) : httpsRequest(url, { ...options, ca });
  outgoing.end(method === "POST" ? fetchBody : undefined);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.pause();
  return response;
}

for (const kind of ["nginx", "caddy"] satisfies AccelKind[]) {
  describe(`server.accel: ${kind}`, { timeout: 240_000 }, () => {
    let stand: AccelStand;
    let ca = "";
    let whole: Buffer;

    const post = async (
      headers?: Record<string, string>,
    ): Promise<{ head: IncomingMessage; body: Buffer }> => {
      const head = await begin(stand.url + PATH, ca, headers);
      return { head, body: await finishFetch(head) };
    };
    const metric = async (series: string): Promise<number> => {
      const text = await (await fetch(stand.svc.metricsUrl)).text();
      return Number(
        text
          .split("\n")
          .find((line) => line.startsWith(`${series} `))
          ?.split(" ")[1] ?? 0,
      );
    };
    /** The line of a request in the access log. */
    const logged = async ({ headers }: IncomingMessage): Promise<Record<string, unknown>> => {
      const id = String(headers["x-request-id"]);
      const isLine = (line: string): boolean => line.includes(`"${id}"`) && line.includes('"bytes"');
      await until(() => stand.svc.log().split("\n").slice(0, -1).some(isLine));
      return JSON.parse(stand.svc.log().split("\n").find(isLine) ?? "{}") as Record<string, unknown>;
    };
    /** As the web server asks. @returns the value of `X-Accel-Redirect` */
    const askDirectly = async (secret: string | undefined): Promise<string | undefined> => {
      const given = secret === undefined ? {} : { "X-Svc-Accel": secret };
      const response = await begin(stand.svc.url + PATH, undefined, given);
      await finishFetch(response);
      return response.headers["x-accel-redirect"]?.toString();
    };

    const handedOver = async (): Promise<string> => {
      const location = await askDirectly(ACCEL_SECRET);
      assert.ok(location !== undefined, stand.svc.log());
      return location;
    };

    before(async () => {
      stand = await startAccelStand(kind, codeHost);
      ca = await readFile(stand.certificate, "utf8");
      await stand.svc.addCachedRepository("org", "large");
      ({ body: whole } = await post());
      // The response is stored behind the first fetch.
      await until(async () => {
        await post();
        return (await metric(ACCEL_METRIC)) > 0;
      });
    });
    after(() => stand.stop());

    it("stock git clones from it", async () => {
      let clones = 0;
      /** @returns whether the web server sent the response */
      const clone = async (): Promise<boolean> => {
        const counted = await metric(ACCEL_METRIC);
        const name = `${kind}-${++clones}`;
        const args = ["-c", `http.sslCAInfo=${stand.certificate}`, "clone", "-q", "--bare"];
        const env = { ...gitEnvironment() };
        const cloned = await run("git", [...args, `${stand.url}/org/large`, name], { cwd: folder.path, env });
        assert.equal(cloned.code, 0, cloned.stderr);
        assert.equal(await contentOf(join(folder.path, name)), await contentOf(source));
        return (await metric(ACCEL_METRIC)) > counted;
      };
      // The response to this request is stored behind one of the first.
      await until(clone);
      for (let round = 0; round < 3; round++) {
        assert.equal(await clone(), true, stand.svc.log());
        await handedOver();
      }
    });

    it("a stored response has the bytes and headers that it has without it", async () => {
      await handedOver();
      const counted = await metric(ACCEL_METRIC);
      const accelerated = await post();
      // With a condition, the service sends the response itself.
      const own = await post({ "If-None-Match": '"x"' });
      assert.equal((await metric(ACCEL_METRIC)) - counted, whole.length);
      assert.equal(accelerated.head.statusCode, 200);
      assert.ok(accelerated.body.equals(own.body) && accelerated.body.equals(whole));
      const shown = ({ headers }: IncomingMessage): unknown =>
        Object.fromEntries(Object.entries(headers).filter(([name]) => !VARYING.has(name)));
      assert.deepEqual(shown(accelerated.head), shown(own.head));
      assert.equal(accelerated.head.headers["x-svc-cache"], "hit");
      assert.match(String(accelerated.head.headers["x-request-id"]), /^[\w-]{36}$/);
      const { bytes, sent_by: sender } = await logged(accelerated.head);
      assert.ok(Number(bytes) >= whole.length && Number(bytes) < whole.length + 2000, String(bytes));
      assert.equal(sender, "accel");
      assert.equal((await logged(own.head))["sent_by"], "sendfile");
      const refs = await begin(`${stand.url}/org/large/info/refs?service=git-upload-pack`, ca, {}, "GET");
      await finishFetch(refs);
      assert.equal((await logged(refs))["sent_by"], "svc");
    });

    it("Range, conditions, HEAD and GET are answered as without it", async () => {
      const conditions = [
        { Range: "bytes=0-9" },
        { "If-Match": '"x"' },
        { "If-None-Match": "*" },
        { "If-Modified-Since": new Date().toUTCString() },
        { "If-Unmodified-Since": new Date(0).toUTCString() },
      ];
      for (const headers of conditions) {
        const { head, body } = await post(headers);
        assert.equal(head.statusCode, 200, JSON.stringify(headers));
        assert.ok(body.equals(whole), JSON.stringify(headers));
      }
      for (const method of ["HEAD", "GET"]) {
        const response = await begin(stand.url + PATH, ca, {}, method);
        const direct = await begin(stand.svc.url + PATH, undefined, {}, method);
        await finishFetch(response);
        await finishFetch(direct);
        assert.equal(response.statusCode, direct.statusCode, method);
      }
    });

    it("without the secret, or with a wrong one, nothing is handed over", async () => {
      assert.match(await handedOver(), /^\/_svc_accel\/[0-9a-f]{32}$/);
      for (const secret of [undefined, "", "x", ACCEL_SECRET.slice(1), `${ACCEL_SECRET} x`]) {
        assert.equal(await askDirectly(secret), undefined);
      }
      assert.equal(await metric('svc_accel_refused_total{reason="secret"}'), 4);
      await stand.svc.logged(/X-Svc-Accel has a wrong value/);
      assert.equal(stand.svc.log().split("X-Svc-Accel has a wrong value").length, 2);
      assert.ok(!stand.svc.log().includes(ACCEL_SECRET));
      // The web server replaces what a client sends.
      const { head, body } = await post({ "X-Svc-Accel": "forged", "X-Accel-Redirect": "/etc/passwd" });
      assert.ok(head.statusCode === 200 && body.equals(whole));
      assert.equal(head.headers["x-accel-redirect"], undefined);
    });

    it("a client cannot reach the files by their address", async () => {
      const location = await handedOver();
      for (const path of [
        location,
        `/org/..${location}`,
        `/%5fsvc_accel/${location.split("/")[2]}`,
        "/_svc_accel/",
      ]) {
        const response = await begin(stand.url + path, ca, {}, "GET");
        const body = await finishFetch(response);
        assert.ok(
          (response.statusCode ?? 0) >= 400 && body.length < 10_000,
          `${path}: ${response.statusCode}`,
        );
      }
    });

    it("clients that leave early disturb nobody", async () => {
      const left = await Promise.all(Array.from({ length: 12 }, () => begin(stand.url + PATH, ca)));
      for (const response of left) {
        response.on("error", () => undefined);
        response.resume();
        await once(response, "data");
        response.destroy();
      }
      assert.ok((await post()).body.equals(whole));
    });

    it("the folder is made again if it is gone, and a symbolic link is not used", async () => {
      const handed = join(stand.storagePath, "_accel");
      const sender = async (): Promise<unknown> => {
        const { head, body } = await post();
        assert.equal(head.statusCode, 200);
        assert.ok(body.equals(whole));
        return (await logged(head))["sent_by"];
      };
      assert.equal(await sender(), "accel");
      await rm(handed, { recursive: true });
      assert.equal(await sender(), "accel");
      await chmod(handed, 0);
      assert.equal(await sender(), "accel");
      await rm(handed, { recursive: true });
      const foreign = join(folder.path, `foreign-${kind}`);
      await mkdir(foreign, { mode: 0o700 });
      await symlink(foreign, handed);
      const counted = await metric(ACCEL_METRIC);
      for (let times = 0; times < 2; times++) assert.notEqual(await sender(), "accel");
      assert.equal(await metric(ACCEL_METRIC), counted);
      assert.deepEqual([(await stat(foreign)).mode & 0o777, await readdir(foreign)], [0o700, []]);
      assert.equal(stand.svc.log().split("_accel is a symbolic link: remove it").length, 2);
      await unlink(handed);
      assert.equal(await sender(), "accel");
    });

    it("only the group can read, and a purged file stays for those who have its name", async () => {
      const handed = join(stand.storagePath, "_accel");
      const location = await handedOver();
      const file = join(handed, location.split("/")[2] ?? "");
      assert.equal((await stat(file)).mode & 0o777, 0o640);
      assert.equal((await stat(handed)).mode & 0o777, 0o750);
      assert.equal((await stat(stand.storagePath)).mode & 0o777, 0o710);
      assert.equal((await stat(file)).gid, (await stat(handed)).gid);
      const token = await stand.svc.signIn();
      const list = await fetch(`${stand.svc.url}/api/cached-repos`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const items = (await list.json()) as { id: string }[];
      const purged = await fetch(`${stand.svc.url}/api/cached-repos/${items[0]?.id}/purge`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
      });
      assert.ok(purged.ok, String(purged.status));
      await until(async () => (await stat(file)).nlink === 1);
      assert.ok((await readFile(file)).equals(whole));
      assert.ok((await readdir(handed)).length > 0);
    });
  });
}

it("X-Accel headers of the code host never reach the web server", async () => {
  const hostile = createServer((_request, response) => {
    response.writeHead(200, {
      "Content-Type": "application/json",
      "X-Accel-Redirect": "/_svc_accel/x",
      "X-Accel-Expires": "1",
      "X-Accel-Buffering": "yes",
      "X-Sendfile": "/etc/passwd",
    });
    response.end("{}");
  }).listen(0, "127.0.0.1");
  await once(hostile, "listening");
  const url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
  const svc = await startSvc({
    codeHost: { url, apiUrl: `${url}/api` },
    env: { SVC_SERVER_ACCEL: "nginx", SVC_SERVER_ACCEL_SECRET: ACCEL_SECRET },
  });
  const statuses: (number | undefined)[] = [];
  try {
    for (const path of [
      "/org/r/info/refs?service=git-upload-pack",
      "/org/r/git-receive-pack",
      "/org/r/info/lfs/locks",
      "/org/r/raw/main/file",
      "/api/v3/repos/org/r",
      "/api/v3/user",
    ]) {
      const headers = { "X-Svc-Accel": ACCEL_SECRET, Authorization: "Basic YTpi" };
      const method = path.endsWith("receive-pack") ? "POST" : "GET";
      const response = await begin(svc.url + path, undefined, headers, method);
      await finishFetch(response);
      const names = Object.keys(response.headers).filter((name) => /^x-(?:accel|sendfile)/.test(name));
      assert.deepEqual(names, [], path);
      statuses.push(response.statusCode);
    }
    // Some of them are relayed as they are.
    assert.ok(statuses.filter((status) => status === 200).length >= 3, statuses.join());
  } finally {
    await svc.stop();
    hostile.close();
  }
});

it("without the group, or without server.accel, files are private again", async () => {
  const stand = await startAccelStand("nginx", codeHost);
  const { storagePath } = stand;
  const mode = async (path: string): Promise<number> => (await stat(join(storagePath, path))).mode & 0o777;
  const response = `_responses/org/large/${"a".repeat(64)}`;
  const open = async (): Promise<void> => {
    await mkdir(join(storagePath, "_responses/org/large"), { recursive: true });
    await writeFile(join(storagePath, response), "content", { mode: 0o640 });
    await chmod(join(storagePath, response), 0o640);
  };
  const start = async (env: Record<string, string>): Promise<void> => {
    const svc = await startSvc({
      codeHost,
      dataDir: stand.svc.dataDir,
      env: { SVC_CACHE_STORAGE_PATH: storagePath, ...env },
    });
    await svc.stop();
  };
  const accel = { SVC_SERVER_ACCEL: "nginx", SVC_SERVER_ACCEL_SECRET: ACCEL_SECRET };
  try {
    await stand.svc.addCachedRepository("org", "large");
    await open();
    assert.deepEqual([await mode(""), await mode("_accel")], [0o710, 0o750]);
    const { gid } = await stat(join(storagePath, "_accel"));
    await stand.svc.stop();
    await start(accel);
    assert.deepEqual([await mode(""), await mode("_accel"), await mode(response)], [0o700, 0o700, 0o600]);
    await start({ ...accel, SVC_CACHE_ACCEL_GROUP: String(gid) });
    await open();
    assert.deepEqual([await mode(""), await mode("_accel")], [0o710, 0o750]);
    await start({});
    assert.deepEqual([await mode(""), await mode(response)], [0o700, 0o600]);
    await assert.rejects(stat(join(storagePath, "_accel")), { code: "ENOENT" });
  } finally {
    await stand.stop();
  }
});

it("svc doctor names the folder that the group cannot reach", async () => {
  const dataDir = join(folder.path, "closed");
  const doctor = async (): Promise<string> => {
    const env = {
      PATH: process.env["PATH"],
      SVC_DEV_MODE: "true",
      SVC_DATA_DIR: dataDir,
      SVC_CACHE_ENABLED: "true",
      SVC_SERVER_ACCEL: "caddy",
      SVC_SERVER_ACCEL_SECRET: ACCEL_SECRET,
      SVC_CACHE_ACCEL_GROUP: "65533",
    };
    return (await run(SVC_LAUNCHER, ["doctor"], { cwd: folder.path, env })).stdout;
  };
  // The folder of the test is open to its owner only.
  const shown = await doctor();
  assert.match(shown, /web server in front.*65533/s);
  assert.ok(shown.includes(folder.path), shown);
});
