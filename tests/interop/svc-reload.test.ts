import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type CodeHost,
  makeCertificate,
  run,
  startCodeHost,
  startSvc,
  type Svc,
  type TempFolder,
  tempFolder,
} from "@devplat/testkit";

let codeHost: CodeHost;
let folder: TempFolder;
let svc: Svc;
let file: string;
let certFile: string;

const text = (admins: string, level: string, more = ""): string =>
  [
    `admins: [${admins}]`,
    `log: { level: ${level} }`,
    `tls: { certificates: [{ cert_file: ${certFile}, key_file: ${certFile} }] }`,
    more,
    "",
  ].join("\n");

/** Puts a new certificate and its key into the one file. */
async function renewCertificate(subject: string): Promise<void> {
  const { cert, key } = await makeCertificate(folder.path, ["DNS:localhost"], { subject });
  await writeFile(certFile, key + cert);
}

async function curl(...args: string[]): Promise<string> {
  const { stdout, stderr } = await run("curl", ["-sS", "-k", "--max-time", "20", ...args]);
  return stdout + stderr;
}

/** Sends the signal and waits for the line that answers it. */
async function reload(signal: NodeJS.Signals): Promise<Record<string, unknown>> {
  const seen = svc.log().length;
  process.kill(svc.pid, signal);
  for (;;) {
    await sleep(20);
    // The last piece may be half a line.
    const line = svc
      .log()
      .slice(seen)
      .split("\n")
      .slice(0, -1)
      .find((each) => /"msg":"(?:not )?reloaded/.test(each));
    if (line !== undefined) return JSON.parse(line) as Record<string, unknown>;
  }
}

/** Signs bob in. Gives the session. */
async function signIn(): Promise<string> {
  const login = await curl(
    "-H",
    "Content-Type: application/json",
    "-d",
    '{"username":"bob","role":"user"}',
    `${svc.url}/auth/test-login`,
  );
  return (JSON.parse(login) as { session_token: string }).session_token;
}

before(async () => {
  codeHost = await startCodeHost();
  folder = await tempFolder("svc-reload");
  certFile = join(folder.path, "cert.pem");
  file = join(folder.path, "svc.yaml");
  await renewCertificate("first");
  await writeFile(file, text("", "info"));
  svc = await startSvc({ codeHost, https: true, args: ["--config", file], env: { SVC_DEV_MODE: "true" } });
});
after(async () => {
  assert.equal(await svc.stop(), 0);
  await codeHost.stop();
  await folder.remove();
});

it("SIGHUP applies admins, certificate and log level, and names the other changes [svc 7.12]", async () => {
  const token = await signIn();
  const status = (): Promise<string> =>
    curl(
      "-o",
      "/dev/null",
      "-w",
      "%{http_code}",
      "-H",
      `Authorization: Bearer ${token}`,
      `${svc.url}/api/cached-repos`,
    );
  assert.equal(await status(), "403");
  await renewCertificate("second");
  await writeFile(file, text("bob", "debug", "cache: { grant_seconds: 7 }"));
  const line = await reload("SIGHUP");
  assert.equal(line["msg"], "reloaded");
  assert.deepEqual(line["applied"], ["admins", "log.level"]);
  assert.deepEqual(line["need_restart"], ["cache.grant_seconds"]);
  assert.equal(await status(), "200");
  const { stdout } = await run("openssl", ["s_client", "-connect", `localhost:${new URL(svc.url).port}`]);
  assert.match(stdout, /subject=CN = second/);
});

it("SIGHUP switches the seeds of all repositories off and on [svc 7.12 12.8]", async () => {
  await codeHost.addRepository("org", "r");
  const admin = ["-H", `Authorization: Bearer ${await signIn()}`, "-H", "Content-Type: application/json"];
  await curl(...admin, "-d", '{"owner":"org","name":"r"}', `${svc.url}/api/cached-repos`);
  const reason = async (): Promise<string> => {
    const { code, detail } = JSON.parse(await curl(`${svc.url}/org/r.git/svc/seed`)) as Record<
      string,
      string
    >;
    return `${code}: ${detail}`;
  };
  for (const [seeds, expected] of [
    [false, /^no_seed: Seeds of this repository are switched off/],
    [true, /^no_seed: There is no seed of this repository yet/],
  ] as const) {
    await writeFile(file, text("bob", "debug", `cache: { seeds: ${seeds} }`));
    assert.deepEqual((await reload("SIGHUP"))["applied"], ["cache.seeds"]);
    assert.match(await reason(), expected);
  }
});

it("SIGUSR1 with a faulty file: the settings stay, and the log locates the fault", async () => {
  await writeFile(file, text("bob", "shout"));
  const line = await reload("SIGUSR1");
  assert.equal(line["level"], "error");
  assert.match(JSON.stringify(line), /svc\.yaml:2:\d+: log\.level/);
  await writeFile(file, "tls: { certificates: [] }\n");
  assert.match(JSON.stringify(await reload("SIGUSR1")), /only with a restart/);
  assert.equal(await curl(`${svc.url}/healthz`), "ok\n");
});
