import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { systemClock } from "@devplat/base";
import { locateIn } from "@devplat/config/document";
import { addRemote, parseConfig, type LoadedConfig } from "./load.ts";
import { parseRemote } from "./overlay.ts";
import { RemoteConfig } from "./remote.ts";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const PUBLIC = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
const signed = (text: string, key = privateKey): string =>
  `${text}# signature: ${sign(null, Buffer.from(text), key).toString("base64")}\n`;
const FUTURE = "2099-01-01T00:00:00Z";
const rule = (target: string, more = ""): string =>
  `rules:\n  - {name: r, key: k, target: {path: ~/r.yaml, format: yaml${target}}${more}}\n`;
const document = (serial: number, text = rule("")): string =>
  `serial: ${serial}\nexpires: ${FUTURE}\n${text}`;

/** `endless`: a body that goes on until the other side hangs up; `silent`: none at all. */
let answer: { status: number; body: string; way?: "endless" | "silent" } = { status: 200, body: "" };
let requests: { etag: string | undefined; auth: string | undefined }[] = [];
const server = createServer((incoming, outgoing) => {
  const etag = `"${Buffer.from(answer.body).toString("base64url").slice(-20)}"`;
  requests.push({ etag: incoming.headers["if-none-match"], auth: incoming.headers.authorization });
  if (answer.way === "silent") return;
  if (answer.way === "endless") endless(outgoing);
  else if (answer.status === 200 && incoming.headers["if-none-match"] === etag) outgoing.writeHead(304).end();
  else outgoing.writeHead(answer.status, { etag }).end(answer.body);
});
function endless(outgoing: ServerResponse): void {
  while (outgoing.write("# nothing\n".repeat(1000)));
  outgoing.once("drain", () => endless(outgoing));
}
let url = "";
let cache = "";
before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/fleet.yaml`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});
afterEach(() => rm(cache, { recursive: true, force: true }));
beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), "agent-remote-"));
  requests = [];
});

const LOCAL = `rules:
  - {name: own, key: k, target: {path: ~/own.yaml, format: yaml}}
enrolments:
  tools/hub: {engine: github, client_id: abc}
  tools/mirror: {engine: copy, from: shared/own}
  tools/oauth: {engine: oauth-device, device_url: "https://own.example/d", token_url: "https://own.example/t", client_id: c}
`;

function base(more = ""): LoadedConfig {
  const text = `store: {driver: embedded}\nremote_config: {url: "${url}"${more}}\n${LOCAL}`;
  return {
    config: parseConfig({ path: "c.yaml", text }),
    locate: locateIn("c.yaml", text),
    sources: ["c.yaml"],
    warnings: [],
  };
}

async function load(
  more: string,
  body: string,
  status = 200,
): Promise<{ rules: string[]; warnings: string; loaded: LoadedConfig }> {
  answer = { status, body };
  const remote = new RemoteConfig({ cache, home: "/nowhere", clock: systemClock, environment: {} });
  const loaded = await addRemote(base(more), remote, "refresh");
  return { rules: loaded.config.rules.map(({ name }) => name), warnings: loaded.warnings.join("\n"), loaded };
}

const KEYED = (): string => `, public_key: "${PUBLIC}"`;

describe("remote_config", () => {
  after(() => rm(cache, { recursive: true, force: true }));

  it("adds and replaces rules, enrolments and the interval; sends headers and the ETag [agent 3.22]", async () => {
    const body = `${rule("")}  - {name: own, key: other, target: {path: ~/own.yaml, format: yaml}}
enrolments: {tools/copy: {engine: copy, from: shared/x}}
sync: {interval: 1m}
`;
    const headers = ', headers: {authorization: "Bearer abc"}';
    const { rules, loaded, warnings } = await load(headers, body);
    assert.equal(warnings, "");
    assert.deepEqual(rules, ["r", "own"]);
    assert.equal(loaded.config.rules.find(({ name }) => name === "own")?.key, "other");
    assert.ok(loaded.config.rules.every(({ remote }) => remote));
    assert.deepEqual(Object.keys(loaded.config.enrolments), [
      "tools/hub",
      "tools/mirror",
      "tools/oauth",
      "tools/copy",
    ]);
    assert.equal(loaded.config.sync.interval, 60_000);
    assert.deepEqual(loaded.sources, ["c.yaml", url]);
    assert.deepEqual((await load(headers, body)).rules, rules);
    assert.equal(requests[1]?.auth, "Bearer abc");
    assert.notEqual(requests[1]?.etag, undefined);
  });

  it("ladder: fresh, else cached, else the local configuration alone, with the reason [agent 3.24]", async () => {
    const none = await load("", "", 500);
    assert.deepEqual(none.rules, ["own"]);
    assert.match(none.warnings, /the server answers 500/);
    assert.deepEqual((await load("", rule(""))).rules, ["own", "r"]);
    const cached = await load("", "", 503);
    assert.deepEqual(cached.rules, ["own", "r"]);
    assert.match(cached.warnings, /the server answers 503/);
    const asked = requests.length;
    const remote = new RemoteConfig({ cache, home: "/nowhere", clock: systemClock, environment: {} });
    assert.equal((await addRemote(base(), remote, "cached")).config.rules.length, 2);
    assert.equal(requests.length, asked, "looking at the cache asks no server");
    const broken = await load("", "rules: [}", 200);
    assert.deepEqual(broken.rules, ["own", "r"], "a broken document does not replace a good one");
  });

  it("with public_key: signature, serial and expiry are checked, in the cache again [agent 3.25]", async () => {
    assert.deepEqual((await load(KEYED(), signed(document(5)))).rules, ["own", "r"]);
    const older = await load(KEYED(), signed(document(4, "rules: []\n")));
    assert.match(older.warnings, /serial 4 is older than 5/);
    assert.deepEqual(older.rules, ["own", "r"]);
    const file = join(cache, (await readdir(cache))[0] ?? "");
    const tampered = (await readFile(file, "utf8")).replace("r.yaml", "s.yaml");
    await writeFile(file, tampered);
    const offline = await load(KEYED(), "", 500);
    assert.deepEqual(offline.rules, ["own"], "a cache that somebody has changed is not used");
    assert.match(offline.warnings, /the signature is not of remote_config.public_key/);
  });

  const { privateKey: other } = generateKeyPairSync("ed25519");
  const refused: [string, () => string, () => string, RegExp][] = [
    ["no signature", KEYED, () => document(1), /last line is not its signature/],
    ["a signature of another key", KEYED, () => signed(document(1), other), /signature is not of/],
    [
      "a line behind the signature",
      KEYED,
      () => `${signed(document(1))}sync: {interval: 1m}\n`,
      /last line is not its signature/,
    ],
    [
      "content changed after signing",
      KEYED,
      () => signed(document(1)).replace("r.yaml", "x.yaml"),
      /signature is not of/,
    ],
    ["an expired document", KEYED, () => signed(document(1).replace("2099", "2001")), /has expired/],
    ["no serial", KEYED, () => signed(`expires: ${FUTURE}\n`), /must carry serial/],
    ["no expiry", KEYED, () => signed("serial: 1\n"), /must carry expires/],
    ["a command", () => "", () => rule("", ", run: {command: [id]}"), /rules\[0\]\.run: needs/],
    ["a wider mode", () => "", () => rule(', mode: "0644"'), /wider than 0600 needs/],
    ["a wider folder", () => "", () => rule(', dir_mode: "0755"'), /wider than 0700 needs/],
    ["env", () => "", () => rule(", template: 'a: {{ env \"HOME\" }}'"), /env, secret and raw need/],
    ["secret", () => "", () => rule(", template: 'a: {{ (secret \"x\").y }}'"), /env, secret and raw need/],
    ["raw", () => "", () => rule(", template: 'a: {{ .x | raw }}'"), /env, secret and raw need/],
    ["another section", () => "", () => "store: {driver: embedded}\n", /store: unknown key/],
    [
      "allowed targets",
      () => "",
      () => "sync: {interval: 1m, allowed_targets: [/]}\n",
      /allowed_targets: unknown key/,
    ],
    [
      "another host for a local enrolment",
      () => "",
      () => "enrolments: {tools/hub: {engine: github, client_id: abc, host: 'https://evil.example'}}\n",
      /must not change the engine or host/,
    ],
    [
      "another engine for a local enrolment",
      () => "",
      () => "enrolments: {tools/hub: {engine: copy, from: shared/x}}\n",
      /fleet\.yaml:1:14: enrolments\.tools\/hub: must not change the engine or host/,
    ],
    [
      "another source for a local copy",
      () => "",
      () => "enrolments: {tools/mirror: {engine: copy, from: shared/theirs}}\n",
      /must not change the engine or host/,
    ],
    [
      "another token endpoint for a local enrolment",
      () => "",
      () =>
        "enrolments: {tools/oauth: {engine: oauth-device, device_url: 'https://own.example/d', token_url: 'https://evil.example/t', client_id: c}}\n",
      /must not change the engine or host/,
    ],
    [
      "secret in a copy's field",
      () => "",
      () => "enrolments: {tools/new: {engine: copy, from: a, fields: {b: '{{ (secret \"x\").y }}'}}}\n",
      /enrolments\.tools\/new\.fields\.b: the functions env, secret and raw need/,
    ],
    [
      "a rule that cannot share a local rule's file",
      () => "",
      () => "rules: [{name: r, key: k, target: {path: ~/own.yaml, format: json}}]\n",
      /fleet\.yaml:1:36: rules\.r\.target\.path: rule 'own' has the same file with another format/,
    ],
    ["more than 1 MiB", () => "", () => `# ${"x".repeat(1024 * 1024)}\n`, /larger than 1048576 bytes/],
  ];
  for (const [name, more, body, message] of refused) {
    it(`refuses ${name} [agent 3.22 19.3]`, async () => {
      const { rules, warnings } = await load(more(), body());
      assert.match(warnings, message);
      assert.deepEqual(rules, ["own"]);
    });
  }

  it("hangs up on a document that does not end [agent 19.3]", async () => {
    answer = { status: 200, body: "", way: "endless" };
    const remote = new RemoteConfig({ cache, home: "/nowhere", clock: systemClock, environment: {} });
    const { warnings } = await addRemote(base(), remote, "refresh");
    assert.match(warnings.join(), /larger than 1048576 bytes/);
  });

  it("waits for a server that says nothing for 10 seconds [agent 19.4]", async (t) => {
    answer = { status: 200, body: "", way: "silent" };
    const asked: number[] = [];
    t.mock.method(AbortSignal, "timeout", (ms: number) => {
      asked.push(ms);
      return AbortSignal.abort(new DOMException("", "TimeoutError"));
    });
    const remote = new RemoteConfig({ cache, home: "/nowhere", clock: systemClock, environment: {} });
    const { warnings } = await addRemote(base(), remote, "refresh");
    assert.deepEqual(asked, [10_000]);
    assert.match(warnings.join(), /the server cannot be reached \(no answer in time\)/);
  });

  it("trust: full allows commands, modes and functions, in signed documents only [agent 3.26]", async () => {
    const full = `${KEYED()}, trust: full`;
    const text = document(1, rule(', mode: "0644", template: "a: {{ .x | raw }}"', ", run: {command: [id]}"));
    assert.deepEqual((await load(full, signed(text))).rules, ["own", "r"]);
    assert.throws(() => base(", trust: full"), /remote_config\.public_key: required for trust: full/);
  });

  const addresses: [string, string, boolean][] = [
    ["https", "https://x.example/c.yaml", true],
    ["http to this host", "http://localhost:1/c.yaml", true],
    ["http to another host", "http://x.example/c.yaml", false],
  ];
  for (const [name, address, fine] of addresses) {
    it(`${fine ? "takes" : "refuses"} ${name} [agent 3.23]`, () => {
      const text = `store: {driver: embedded}\nremote_config: {url: "${address}"}\n`;
      const parse = (): unknown => parseConfig({ path: "c.yaml", text });
      if (fine) parse();
      else assert.throws(parse, /must be https/);
    });
  }

  it("names the line of a fault without quoting the document", () => {
    assert.throws(
      () => parseRemote("u", "rules:\n  - hunter2\n", "rules"),
      /^ConfigError: u:2:5: rules\[0\]/,
    );
  });
});
