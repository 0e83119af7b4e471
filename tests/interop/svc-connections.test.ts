import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rename, writeFile } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type CodeHost,
  gitEnvironment,
  makeCertificate,
  repositories,
  run,
  startCodeHost,
  startSvc,
  type Svc,
  SVC_LAUNCHER,
  type TempFolder,
  tempFolder,
  type TestCertificate,
  until,
} from "@devplat/testkit";

let codeHost: CodeHost;
let folder: TempFolder;

before(async () => {
  codeHost = await startCodeHost();
  codeHost.addUser("ada", "planted-push-token");
  folder = await tempFolder("svc-connections");
  // More than one HTTP/2 window, so that back-pressure is met.
  await codeHost.addRepository("org", "r", {
    build: (dir) => repositories.bigBlobs(dir, { blobs: 2, bytes: 2 * 2 ** 20 }),
  });
});
after(async () => {
  await codeHost.stop();
  await folder.remove();
});

async function curl(args: readonly string[]): Promise<{ code: number; out: string }> {
  const { code, stdout, stderr } = await run("curl", ["-sS", "--max-time", "20", ...args]);
  return { code, out: stdout + stderr };
}

let agents = 0;
/** A `User-Agent` by which the log tells a request from all others. */
const newAgent = (): string => `request-${++agents}-of-the-test`;

/** The access-log line of the request with that user agent. */
async function accessLine(svc: Svc, agent: string): Promise<Record<string, unknown>> {
  const line = new RegExp(`^.*"${agent}".*\\n`, "m");
  await svc.logged(line);
  return JSON.parse(line.exec(svc.log())?.[0] ?? "") as Record<string, unknown>;
}

describe("TLS and HTTP/2 (server.http2, tls.certificates)", () => {
  let svc: Svc;
  let local: TestCertificate;
  before(async () => {
    local = await makeCertificate(folder.path, ["DNS:localhost"], { file: "local" });
    const other = await makeCertificate(folder.path, ["DNS:git.example", "DNS:*.wild.example"], {
      file: "other",
    });
    svc = await startSvc({
      codeHost,
      https: true,
      configText: [
        "server:",
        "  http2: true",
        "tls:",
        "  certificates:",
        `    - { cert_file: ${local.certFile}, key_file: ${local.keyFile} }`,
        `    - { cert_file: ${other.certFile}, key_file: ${other.keyFile} }`,
        "",
      ].join("\n"),
    });
  });
  after(async () => {
    assert.equal(await svc.stop(), 0);
  });

  it("answers in HTTP/2 and in HTTP/1.1, as the client likes", async () => {
    for (const [option, version] of [
      ["--http2", "2"],
      ["--http1.1", "1.1"],
    ] as const) {
      const shown = await curl([
        "--cacert",
        local.certFile,
        option,
        "-w",
        "%{http_version}",
        `${svc.url}/healthz`,
      ]);
      assert.equal(shown.out, `ok\n${version}`);
    }
  });

  it("HTTP/2: a Host that differs from :authority is refused, and the log stays JSON", async () => {
    const session = connectHttp2(svc.url, { ca: local.cert });
    const status = async (headers: Record<string, string>): Promise<number> => {
      // The body has not ended when the answer comes.
      const stream = session.request({ ":path": "/healthz", ...headers }, { endStream: false });
      const [answered] = (await once(stream, "response")) as [{ ":status": number }];
      const closed = once(stream, "close");
      stream.resume().end();
      await closed;
      return answered[":status"];
    };
    const { host } = new URL(svc.url);
    assert.equal(await status({ ":authority": host, host: "elsewhere.example" }), 400);
    assert.equal(await status({ ":authority": host, host }), 200);
    assert.equal(await status({ ":method": "POST", ":path": "/org/r/info/refs" }), 405);
    session.close();
    const text = svc
      .log()
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("{"));
    assert.deepEqual(text, []);
  });

  it("HTTP/2: a refused fetch is answered before its body ends, the connection stays", async () => {
    await codeHost.addRepository("org", "private", { private: true });
    const session = connectHttp2(svc.url, { ca: local.cert });
    /** @returns status and body, when the stream is closed; the request's own body never ends where `ends` is false */
    const post = async (
      path: string,
      headers: Record<string, string>,
      body: Buffer | string,
      ends = true,
    ): Promise<[status: number, body: string]> => {
      const stream = session.request({ ":method": "POST", ":path": path, ...headers }, { endStream: false });
      stream.on("error", () => undefined);
      const closed = new Promise((resolve) => stream.once("close", resolve));
      if (ends) stream.end(body);
      else stream.write(body);
      const [answered] = (await once(stream, "response")) as [{ ":status": number }];
      let text = "";
      for await (const chunk of stream) text += String(chunk);
      await closed;
      return [answered[":status"], text];
    };
    const json = { "content-type": "application/json" };
    const login = await post("/auth/test-login", json, JSON.stringify({ username: "ada", role: "admin" }));
    const { session_token: token } = JSON.parse(login[1]) as { session_token: string };
    const authorization = `Bearer ${token}`;
    const listed = JSON.stringify({ owner: "org", name: "private" });
    assert.equal((await post("/api/cached-repos", { ...json, authorization }, listed))[0], 201);
    const wants = Buffer.alloc(0x32 * 1400, `0032want ${"1".repeat(40)}\n`);
    const fetchHeaders = {
      "content-type": "application/x-git-upload-pack-request",
      "git-protocol": "version=2",
    };
    const beginning = Buffer.concat([Buffer.from("0012command=fetch\n0001"), wants]);
    for (let time = 0; time < 3; time++) {
      const [status] = await post("/org/private/git-upload-pack", fetchHeaders, beginning, false);
      assert.equal(status, 401);
    }
    assert.equal((await post("/org/r/git-upload-pack", fetchHeaders, "0014command=ls-refs\n0000"))[0], 200);
    session.close();
  });

  it("the log has the bytes of each answer, in both versions", async () => {
    for (const [option, path] of [
      ["--http2", "/admin?two"],
      ["--http1.1", "/admin?one"],
    ] as const) {
      const agent = newAgent();
      const { out } = await curl(["--cacert", local.certFile, "-A", agent, option, svc.url + path]);
      const bytes = Number((await accessLine(svc, agent))["bytes"]);
      const length = Buffer.byteLength(out);
      assert.ok(
        length > 500 && bytes >= length && bytes < length + 2000,
        `${option}: ${bytes}, not ${length}`,
      );
    }
  });

  it("shows the certificate of the name that was asked for, the first one otherwise", async () => {
    const port = new URL(svc.url).port;
    const subjectFor = async (name?: string): Promise<string> => {
      const { stdout } = await run("openssl", [
        "s_client",
        "-connect",
        `localhost:${port}`,
        ...(name === undefined ? ["-noservername"] : ["-servername", name]),
      ]);
      return /subject=CN = (\S+)/.exec(stdout)?.[1] ?? "";
    };
    assert.equal(await subjectFor("git.example"), "git.example");
    assert.equal(await subjectFor("a.wild.example"), "git.example");
    assert.equal(await subjectFor("localhost"), "localhost");
    assert.equal(await subjectFor("unknown.example"), "localhost");
    assert.equal(await subjectFor(), "localhost");
  });

  for (const version of ["HTTP/2", "HTTP/1.1"]) {
    it(`stock git clones, cold and warm, and pushes over ${version}`, async () => {
      const env = { ...gitEnvironment(), GIT_SSL_CAINFO: local.certFile };
      const git = async (...args: string[]): Promise<string> => {
        const { code, stdout, stderr } = await run("git", ["-c", `http.version=${version}`, ...args], {
          env,
        });
        assert.equal(code, 0, stderr);
        return stdout;
      };
      const login = await curl([
        "--cacert",
        local.certFile,
        "-H",
        "Content-Type: application/json",
        "-d",
        '{"username":"ada","role":"admin"}',
        `${svc.url}/auth/test-login`,
      ]);
      const { session_token: token } = JSON.parse(login.out) as { session_token: string };
      await curl([
        "--cacert",
        local.certFile,
        "-H",
        "Content-Type: application/json",
        "-H",
        `Authorization: Bearer ${token}`,
        "-d",
        '{"owner":"org","name":"r"}',
        `${svc.url}/api/cached-repos`,
      ]);
      const clones = ["cold", "warm"].map((name) => join(folder.path, `${name}-${version.replace("/", "")}`));
      for (const clone of clones) {
        await git("clone", "-q", `${svc.url}/org/r`, clone);
        await git("-C", clone, "fsck", "--full");
      }
      const [first = ""] = clones;
      const pushUrl = `${svc.url}/org/r`.replace("//", "//ada:planted-push-token@");
      const branch = `from-${version.replace("/", "").toLowerCase()}`;
      await git("-C", first, "push", "-q", pushUrl, `HEAD:refs/heads/${branch}`);
      assert.match(await git("ls-remote", `${svc.url}/org/r`), new RegExp(`refs/heads/${branch}`));
    });
  }
});

describe("proxies in front (server.trusted_proxies, server.proxy_protocol)", () => {
  it("X-Forwarded-For counts only from a trusted proxy, up to the last other address", async () => {
    const [trusting, strict] = [
      await startSvc({ codeHost, env: { SVC_SERVER_TRUSTED_PROXIES: "127.0.0.0/8,10.0.0.0/8" } }),
      await startSvc({ codeHost }),
    ];
    const table = [
      ["198.51.100.7", "198.51.100.7"],
      ["203.0.113.9, 198.51.100.7, 10.1.2.3", "198.51.100.7"],
      ["198.51.100.7:4711", "198.51.100.7"],
      ["[2001:db8::7]:4711", "2001:db8::7"],
      ["unknown, 10.1.2.3", "10.1.2.3"],
      ["garbage", "127.0.0.1"],
      ["10.9.9.9, 10.1.2.3", "10.9.9.9"],
    ] as const;
    for (const [header, client] of table) {
      for (const [svc, expected] of [
        [trusting, client],
        [strict, "127.0.0.1"],
      ] as const) {
        const agent = newAgent();
        await curl(["-A", agent, "-H", `X-Forwarded-For: ${header}`, `${svc.url}/healthz`]);
        assert.equal((await accessLine(svc, agent))["remote"], expected, header);
      }
    }
    await Promise.all([trusting.stop(), strict.stop()]);
  });

  it("a PROXY header of a trusted proxy names the client; without one no response", async () => {
    const svc = await startSvc({
      codeHost,
      https: true,
      env: {
        SVC_SERVER_TRUSTED_PROXIES: "127.0.0.1",
        SVC_SERVER_PROXY_PROTOCOL: "true",
        SVC_SERVER_BASE_URL: undefined,
      },
    });
    const port = Number(new URL(svc.url).port);
    const raw = async (start: Buffer | string, pauseMs = 0, agent = "none"): Promise<string> => {
      const socket = connect(port, "127.0.0.1");
      let text = "";
      socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
      socket.on("error", () => undefined);
      const bytes = typeof start === "string" ? Buffer.from(start, "latin1") : start;
      const get = Buffer.from(
        `GET /healthz HTTP/1.1\r\nHost: localhost\r\nUser-Agent: ${agent}\r\nConnection: close\r\n\r\n`,
      );
      if (pauseMs === 0) socket.write(Buffer.concat([bytes, get]));
      else {
        for (const byte of bytes) {
          socket.write(Buffer.of(byte));
          await sleep(pauseMs);
        }
        socket.write(get);
      }
      await once(socket, "close");
      return text;
    };
    const v2 = Buffer.concat([
      Buffer.from("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", "latin1"),
      Buffer.of(198, 51, 100, 8, 127, 0, 0, 1, 0, 80, 0, 80),
    ]);
    for (const [start, pause, client] of [
      ["PROXY TCP4 198.51.100.7 127.0.0.1 1234 80\r\n", 0, "198.51.100.7"],
      ["PROXY TCP4 198.51.100.9 127.0.0.1 1234 80\r\n", 1, "198.51.100.9"],
      ["PROXY TCP6 2001:db8::7 ::1 1234 80\r\n", 0, "2001:db8::7"],
      ["PROXY UNKNOWN\r\n", 0, "127.0.0.1"],
      [v2, 0, "198.51.100.8"],
    ] as const) {
      const agent = newAgent();
      assert.match(await raw(start, pause, agent), /^HTTP\/1\.1 200 OK[\s\S]*ok\n$/);
      assert.equal((await accessLine(svc, agent))["remote"], client);
    }
    for (const garbled of [
      "",
      "PROXY TCP4 nonsense 127.0.0.1 1 2\r\n",
      "PROXY TCP4 198.51.100.7 127.0.0.1 1 99999\r\n",
      `PROXY ${"x".repeat(200)}`,
      Buffer.from("\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c0123456789ab", "latin1"),
    ]) {
      assert.equal(await raw(garbled), "", JSON.stringify(garbled));
    }
    await svc.stop();
  });
});

it("limits.client_requests: one client's excess is refused, and others are served [svc 11.11]", async () => {
  const svc = await startSvc({
    codeHost,
    env: { SVC_LIMITS_CLIENT_REQUESTS: "2", SVC_SERVER_TRUSTED_PROXIES: "127.0.0.1" },
  });
  const go = Promise.withResolvers<void>();
  codeHost.inject({ path: /info\/refs/, times: 2 }, { until: go.promise });
  codeHost.resetCalls();
  const as = (client: string, path: string): Promise<Response> =>
    fetch(`${svc.url}${path}`, { headers: { "X-Forwarded-For": client } });
  const slow = [1, 2].map(() => as("198.51.100.1", "/org/r/info/refs?service=git-upload-pack"));
  while (codeHost.calls.filter(({ path }) => path.endsWith("/info/refs")).length < 2) await sleep(10);
  const refused = await as("198.51.100.1", "/healthz");
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get("retry-after"), "1");
  // Git hides the body of a refused POST: a fetch of git gets its reason in a packet.
  const fetched = await fetch(`${svc.url}/org/r/git-upload-pack`, {
    method: "POST",
    headers: { "X-Forwarded-For": "198.51.100.1", Accept: "application/x-git-upload-pack-result" },
  });
  assert.equal(fetched.status, 200);
  assert.match(await fetched.text(), /^[0-9a-f]{4}ERR too many concurrent requests from this address/);
  assert.equal((await as("198.51.100.2", "/healthz")).status, 200);
  go.resolve();
  for (const answer of await Promise.all(slow)) {
    assert.equal(answer.status, 200);
    await answer.arrayBuffer();
  }
  // A place is free when the service has seen the end of its answer.
  await until(async () => (await as("198.51.100.1", "/healthz")).status === 200);
  codeHost.clearFaults();
  await svc.stop();
});

it("inherits a socket of the service manager, but children not its variables", async () => {
  // As with systemd, the listening socket is descriptor 3, and LISTEN_PID is the process itself.
  const script = [
    "import os, socket, sys",
    "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(16)",
    "print(s.getsockname()[1], flush=True)",
    "os.dup2(s.fileno(), 3); os.set_inheritable(3, True)",
    "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')",
    "os.execv('/bin/sh', ['/bin/sh', sys.argv[1], 'serve', '--migrate'])",
  ].join("\n");
  const file = join(folder.path, "activate.py");
  await writeFile(`${file}.new`, script);
  await rename(`${file}.new`, file);
  const child = spawn("python3", [file, SVC_LAUNCHER], {
    cwd: folder.path,
    env: {
      ...process.env,
      SVC_DEV_MODE: "true",
      SVC_DATA_DIR: join(folder.path, "activated"),
      SVC_SERVER_LISTEN: "127.0.0.1:1",
      SVC_METRICS_LISTEN: "127.0.0.1:0",
      SVC_HOST_URL: codeHost.url,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [first] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number.parseInt(first.toString(), 10);
  // The connection waits in the queue of the socket until the service is there.
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`);
  assert.equal(await answer.text(), "ok\n");
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number];
  assert.equal(code, 0);
});
