import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { AgentError } from "../../errors.ts";
import { ForwardError, RemotesFileError } from "../forwards/errors/forward-error.ts";
import type { OfferedKey } from "../forwards/host-keys.ts";
import { failedDial, fingerprintOf, MemoryRemotes, remoteView } from "../forwards/memory-remotes.test-kit.ts";
import {
  startTestServer,
  type Answer,
  type RequestOptions,
  type TestServer,
} from "../web/server.test-kit.ts";

const PATH = "/api/v1/ssh/remotes";
const KEY = `ssh-ed25519 ${"A".repeat(68)}`;

function offered(host: string, letter: string, more: Partial<OfferedKey> = {}): OfferedKey {
  const fingerprint = fingerprintOf(letter);
  return { host, type: "ssh-ed25519", fingerprint, key: KEY, known: false, pinned: undefined, ...more };
}

describe("remotes over the JSON API", () => {
  let remotes: MemoryRemotes;
  let server: TestServer;
  beforeEach(async () => {
    remotes = new MemoryRemotes([remoteView("Build.example"), remoteView("fe80::1%eth0")]);
    server = await startTestServer({ remotes });
  });
  afterEach(() => server.stop());

  async function csrf(): Promise<string> {
    return (JSON.parse((await server.send("/api/v1/csrf")).body) as { token: string }).token;
  }
  async function send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const options: RequestOptions = {
      method,
      headers: { "X-CSRF-Token": await csrf(), "Content-Type": "application/json", ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    };
    return await server.send(path, options);
  }
  const documentOf = ({ body }: Answer): Record<string, unknown> =>
    JSON.parse(body) as Record<string, unknown>;
  async function assertRefused(status: number, code: string, answer: Promise<Answer>): Promise<string> {
    const got = await answer;
    const document = documentOf(got);
    assert.deepEqual([got.status, document["code"]], [status, code], got.body);
    assert.equal(got.headers["content-type"], "application/problem+json");
    return String(document["detail"]);
  }

  it("lists them with the problem of the file, also while signed out [agent 36.1 36.9]", async () => {
    server.view.set({ status: { authenticated: false } });
    remotes.problem = "ssh.yaml:3:1: hots: unknown key";
    const { status, body } = await server.send(PATH);
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(body), { remotes: remotes.list(), file_problem: remotes.problem });
    assert.equal((await send("PATCH", `${PATH}/build.example`, { enabled: false })).status, 200);
    assert.equal((await send("POST", PATH, { host: "next" })).status, 201);
  });

  it("adds one with every key of the file [agent 36.2]", async () => {
    const settings = {
      port: 2222,
      remote_socket: "~/d.sock",
      enabled: false,
      user: "ada",
      proxy_jump: "jump:2200",
      offers: ["browse"],
      policies: ["read"],
      policies_strict: true,
      token_ttl: "5m",
      ask: "always",
      lend: "own",
    };
    const { status, body } = await send("POST", PATH, {
      host: "db",
      host_key: KEY,
      force: true,
      ...settings,
    });
    assert.equal(status, 201, body);
    assert.deepEqual(remotes.calls, [
      [
        "add",
        "db",
        {
          host: "db",
          hostKey: KEY,
          accepted: [],
          force: true,
          settings: { ...settings, token_ttl: 300_000 },
        },
      ],
    ]);
  });

  it("asks for each key on the way, and takes one fingerprint or a list [agent 36.3]", async () => {
    remotes.offered = [
      offered("jump:22", "J", { known: true }),
      offered("db:22", "D", { pinned: fingerprintOf("O") }),
    ];
    const first = await send("POST", PATH, { host: "db" });
    assert.equal(first.status, 409);
    assert.equal(documentOf(first)["code"], "host_key_unknown");
    assert.deepEqual(documentOf(first)["offered"], {
      host: "jump:22",
      type: "ssh-ed25519",
      fingerprint: fingerprintOf("J"),
      key: KEY,
      known: true,
      pinned: null,
    });
    const second = await send("POST", PATH, { host: "db", accept_fingerprint: fingerprintOf("J") });
    assert.deepEqual(
      (documentOf(second)["offered"] as OfferedKey).pinned,
      fingerprintOf("O"),
      "the key that is pinned now",
    );
    const third = await send("POST", PATH, {
      host: "db",
      accept_fingerprint: [fingerprintOf("J"), fingerprintOf("D")],
    });
    assert.equal(third.status, 201);
  });

  it("of two concurrent adds of one host one wins [agent 36.4]", async () => {
    const answers = await Promise.all([
      send("POST", PATH, { host: "db" }),
      send("POST", PATH, { host: "DB" }),
    ]);
    assert.deepEqual(answers.map(({ status }) => String(status)).toSorted(), ["201", "409"]);
    const lost = answers.find(({ status }) => status === 409);
    assert.equal(lost && documentOf(lost)["code"], "host_exists");
  });

  it("says the class and text of a failed dial, and the line of a fault in the file [agent 36.2]", async () => {
    remotes.failure = failedDial("ada@db: Permission denied (publickey)");
    const dial = await send("POST", PATH, { host: "db" });
    assert.equal(dial.status, 422);
    const { code, class: kind, detail } = documentOf(dial);
    assert.deepEqual(
      [code, kind, detail],
      ["connection_failed", "authentication", "ada@db: Permission denied (publickey)."],
    );
    remotes.failure = new RemotesFileError("ssh.yaml:3:1: hots: unknown key", 3, { hint: "Correct it." });
    const file = await send("DELETE", `${PATH}/build.example`);
    assert.equal(file.status, 409);
    assert.deepEqual(
      [documentOf(file)["code"], documentOf(file)["line"], documentOf(file)["hint"]],
      ["file_invalid", 3, "Correct it."],
    );
  });

  it("says what is wrong with this host, and with a file that others can write", async () => {
    remotes.failure = new AgentError("config_refused", "others can write ssh.yaml", { hint: "Run chmod." });
    const answer = await send("PATCH", `${PATH}/build.example`, { enabled: true });
    const { code, line, detail, hint } = documentOf(answer);
    assert.deepEqual(
      [answer.status, code, line, detail, hint],
      [409, "file_invalid", 0, "others can write ssh.yaml.", "Run chmod."],
    );
    for (const error of [
      new AgentError("place_refused", "cannot make the folder"),
      new ForwardError("ssh_unusable", "ssh is too old"),
      new ForwardError("configuration_refused", "HostName cannot be used"),
    ]) {
      remotes.failure = error;
      const text = await assertRefused(422, "remote_refused", send("POST", PATH, { host: "db" }));
      assert.equal(text, `${error.message}.`);
    }
  });

  it("an error of the program is 500 without its message", async () => {
    remotes.failure = new Error("S3cret");
    const answer = await send("POST", `${PATH}/build.example/revoke`);
    assert.equal(answer.status, 500);
    assert.ok(!answer.body.includes("S3cret"));
  });

  it("changes one; the port 0, an empty socket and null take the default [agent 36.5 36.6]", async () => {
    const edit = { port: 0, remote_socket: "", user: null, token_ttl: null, ask: "first" };
    const { status, body } = await send("PATCH", `${PATH}/BUILD.EXAMPLE`, edit);
    assert.equal(status, 200, body);
    assert.deepEqual(remotes.calls, [
      [
        "edit",
        "BUILD.EXAMPLE",
        { port: null, remote_socket: null, user: null, token_ttl: null, ask: "first" },
      ],
    ]);
  });

  it("finds an IPv6 address with a zone by its encoded form [agent 36.6]", async () => {
    const path = `${PATH}/${encodeURIComponent("FE80::1%eth0")}`;
    assert.equal((await send("POST", `${path}/retry`)).status, 202);
    assert.equal((await send("POST", `${path}/revoke`)).status, 204);
    assert.equal((await send("POST", `${path}/consent`, { allowed: true })).status, 204);
    assert.equal((await send("DELETE", path)).status, 204);
    assert.deepEqual(remotes.calls, [
      ["retry", "FE80::1%eth0"],
      ["revoke", "FE80::1%eth0"],
      ["consent", "FE80::1%eth0", true],
      ["remove", "FE80::1%eth0"],
    ]);
    assert.deepEqual(
      remotes.list().map(({ host }) => host),
      ["Build.example"],
    );
  });

  it("an answer that no program waits for is 404", async () => {
    remotes.isAsking = false;
    const answer = send("POST", `${PATH}/build.example/consent`, { allowed: true });
    assert.equal(await assertRefused(404, "not_found", answer), "No host waits for this consent.");
  });

  it("pins a key again after a person has confirmed it [agent 36.11]", async () => {
    remotes.offered = [offered("build.example:22", "N", { pinned: fingerprintOf("O") })];
    const shown = await send("POST", `${PATH}/build.example/host-key`);
    assert.equal(shown.status, 409);
    const { fingerprint, pinned } = documentOf(shown)["offered"] as OfferedKey;
    assert.deepEqual([fingerprint, pinned], [fingerprintOf("N"), fingerprintOf("O")]);
    const body = { accept_fingerprint: fingerprint };
    assert.equal((await send("POST", `${PATH}/build.example/host-key`, body)).status, 200);
  });

  it("an unknown host is 404 for each request", async () => {
    for (const [method, rest, body] of [
      ["PATCH", "", {}],
      ["DELETE", "", undefined],
      ["POST", "/host-key", undefined],
      ["POST", "/retry", undefined],
      ["POST", "/revoke", undefined],
      ["POST", "/consent", { allowed: false }],
    ] as const) {
      await assertRefused(404, "host_unknown", send(method, `${PATH}/elsewhere${rest}`, body));
    }
  });

  const faults: readonly [name: string, body: unknown, detail: RegExp][] = [
    ["no object", [], /expected a mapping/],
    ["no JSON", "{", /not JSON/],
    ["no host", {}, /host: required/],
    ["an unknown key", { host: "db", prot: 22 }, /prot: unknown key; did you mean 'port'\?/],
    ["two faults", { host: "db", a: 1, port: "S3cret" }, /port: expected a number; a: unknown key/],
    ["an option as host", { host: "-oProxyCommand=S3cret" }, /host: expected a host name/],
    ["a user in the host", { host: "ada@db" }, /host: expected a host name/],
    ["a line break in the host", { host: "db\nProxyCommand x" }, /host: expected a host name/],
    ["a port that is too large", { host: "db", port: 65_536 }, /port: must be at most 65535/],
    ["a negative port", { host: "db", port: -1 }, /port: must be at least 0/],
    ["a relative socket", { host: "db", remote_socket: "d.sock" }, /remote_socket: /],
    ["a long socket", { host: "db", remote_socket: `/${"s".repeat(103)}` }, /at most 103 bytes/],
    ["a variable in the socket", { host: "db", remote_socket: "/run/${HOME}" }, /must not hold/],
    ["a command as jump host", { host: "db", proxy_jump: "-oProxyCommand=x" }, /proxy_jump: /],
    ["an unknown offer", { host: "db", offers: ["secrets"] }, /offers\[0\]: expected one of/],
    ["a duration without a unit", { host: "db", token_ttl: "15" }, /token_ttl: expected a duration/],
    ["another fingerprint", { host: "db", accept_fingerprint: "MD5:aa" }, /accept_fingerprint: /],
    [
      "too many fingerprints",
      { host: "db", accept_fingerprint: Array(21).fill(fingerprintOf("A")) },
      /accept_fingerprint: /,
    ],
    ["a private key", { host: "db", host_key: "-----BEGIN S3cret" }, /host_key: expected a host key/],
  ];
  for (const [name, body, detail] of faults) {
    it(`refuses ${name}, and quotes no value [agent 36.7]`, async () => {
      const text = await assertRefused(400, "bad_request", send("POST", PATH, body));
      assert.match(text, detail);
      assert.ok(!text.includes("S3cret"));
      assert.deepEqual(remotes.calls, []);
    });
  }

  it("refuses keys of the file that a change cannot set", async () => {
    for (const body of [{ host: "other" }, { host_key: KEY }, { hop_keys: {} }, { force: true }]) {
      const [key = ""] = Object.keys(body);
      const text = await assertRefused(400, "bad_request", send("PATCH", `${PATH}/build.example`, body));
      assert.match(text, new RegExp(`${key}: unknown key`));
    }
    await assertRefused(400, "bad_request", send("POST", `${PATH}/build.example/retry`, { now: true }));
    await assertRefused(
      400,
      "bad_request",
      send("POST", `${PATH}/build.example/consent`, { allowed: "yes" }),
    );
  });

  it("refuses bodies over 64 KiB and of other types [agent 36.7]", async () => {
    const long = JSON.stringify({ host: "db", policies: ["p".repeat(65_536)] });
    await assertRefused(413, "body_too_large", send("POST", PATH, long));
    const form = { "Content-Type": "application/x-www-form-urlencoded" };
    await assertRefused(415, "unsupported_media_type", send("POST", PATH, "host=db", form));
    assert.deepEqual(remotes.calls, []);
  });

  it("changes nothing without a good CSRF token, or for a foreign page [agent 32.2 36.8]", async () => {
    const used = await csrf();
    await send("POST", `${PATH}/build.example/retry`, undefined, { "X-CSRF-Token": used });
    remotes.calls.length = 0;
    for (const [method, rest] of [
      ["POST", ""],
      ["PATCH", "/build.example"],
      ["DELETE", "/build.example"],
      ["POST", "/build.example/host-key"],
      ["POST", "/build.example/retry"],
      ["POST", "/build.example/revoke"],
      ["POST", "/build.example/consent"],
    ] as const) {
      const body = method === "DELETE" ? undefined : { host: "db", allowed: true };
      for (const token of ["", "guess", used])
        await assertRefused(403, "csrf_refused", send(method, PATH + rest, body, { "X-CSRF-Token": token }));
      for (const headers of [
        { Origin: "http://evil.example" },
        { Origin: "null" },
        { Origin: server.url.replace(/\d+$/, "1") },
        { "Sec-Fetch-Site": "same-site" },
      ] as Record<string, string>[])
        await assertRefused(403, "origin_refused", send(method, PATH + rest, body, headers));
    }
    assert.deepEqual(remotes.calls, []);
  });

  it("a daemon without forwards answers 404", async () => {
    await using bare = await startTestServer();
    assert.equal((await bare.send(PATH)).status, 404);
  });
});
