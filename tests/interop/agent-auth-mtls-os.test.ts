import assert from "node:assert/strict";
import { readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  createSoftHsm,
  startSlapd,
  startVault,
  until,
  type Slapd,
  type SoftHsm,
  type Vault,
} from "@devplat/testkit";
import { AgentHome, GENERATE_ROOT, USER_POLICY } from "./agent-auth-stand.ts";

const STORED = ".local/share/daemon/mtls/client.pem";
const MARKER = ".local/state/daemon/login-check-suppress";
const RULE = `rules: [{name: r, key: k, target: {path: ~/out.yaml, format: yaml}}]\n`;
const password = [/Password of ada: /, "ada-password"] as const;
let vault: Vault;
let slapd: Slapd;
let hsm: SoftHsm;
let place: AgentHome;

before(async () => {
  [vault, slapd, hsm] = await Promise.all([
    startVault({ tls: true, ldapPlugin: true }),
    startSlapd({ ada: "ada-password" }),
    createSoftHsm(),
  ]);
  await vault.request("POST", "sys/mounts/pki", { type: "pki", config: { max_lease_ttl: "8760h" } });
  const { body } = await vault.request("POST", `pki/${GENERATE_ROOT}`, { common_name: "root", ttl: "8760h" });
  const names = { allow_any_name: true, enforce_hostnames: false, key_type: "any" };
  await vault.request("POST", "pki/roles/people", { ...names, max_ttl: "72h" });
  // The lifetime counts from 30 s before it is made, so that a certificate is past half of its life from the start.
  await vault.request("POST", "pki/roles/brief", { ...names, max_ttl: "20s" });
  await vault.request("PUT", "sys/policies/acl/bootstrap", {
    policy: `path "pki/sign/*" { capabilities = ["update"] }`,
  });
  await vault.request("PUT", "sys/policies/acl/user", {
    policy: `${USER_POLICY}
path "pki/sign/people" { capabilities = ["update"] }
path "pki/revoke" { capabilities = ["update"] }`,
  });
  await vault.request("POST", "sys/auth/cert", { type: "cert", config: { default_lease_ttl: "1h" } });
  await vault.request("POST", "auth/cert/certs/people", {
    certificate: (body["data"] as { certificate: string }).certificate,
    token_policies: ["user"],
  });
  await vault.request("POST", "sys/auth/ldap", { type: "vault-ldap" });
  await vault.request("POST", "auth/ldap/config", {
    url: slapd.url,
    userdn: slapd.usersDn,
    userattr: "uid",
    token_policies: ["bootstrap"],
  });
  await vault.put("users/ada/k", { value: "one" });
  place = await AgentHome.create(store(), RULE);
  Object.assign(place.env, hsm.env);
});
after(() => Promise.all([vault.stop(), slapd.stop(), hsm.stop(), place.remove()]));

function store(mtls: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    address: vault.address,
    ca_cert: vault.caFile,
    username: "ada",
    auth_method: "mtls+os",
    mtls: {
      bootstrap_method: "ldap",
      pki_role: "people",
      ttl: "24h",
      reissue_before: "1h",
      pkcs11: { module: hsm.module, token: hsm.token, pin_file: hsm.pinFile },
      ...mtls,
    },
  };
}

/** Tokens of certificate logins that are alive in the store. */
async function liveTokens(): Promise<number> {
  const { body } = await vault.request("LIST", "auth/token/accessors");
  let count = 0;
  for (const accessor of (body["data"] as { keys: string[] }).keys) {
    const found = await vault.request("POST", "auth/token/lookup-accessor", { accessor });
    if ((found.body["data"] as { display_name: string }).display_name === "cert-people") count += 1;
  }
  return count;
}

describe("login-check rule 3: under mtls+os the certificate is inspected, not a token", () => {
  const age = async (hours: number): Promise<void> => {
    const time = new Date(Date.now() - hours * 3_600_000);
    await utimes(join(place.path, MARKER), time, time);
  };

  it("missing: prints the reason and runs the bootstrap, and a declined one is exit 0 [agent 8.8]", async () => {
    const { code, stderr } = await place.agent(["login-check"]);
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      /^there is no client certificate yet\nagent: the login was given up: there is no terminal/,
    );
    await age(7);
    const done = await place.atTerminal(["login-check"], [password]);
    assert.equal(done.code, 0, done.shown);
    assert.match(done.shown, /there is no client certificate yet/);
    assert.match(await place.read(STORED), /^pkcs11-object: agent-[0-9a-f]{16}\n-----BEGIN CERTIFICATE-----/);
    assert.equal((await hsm.keys()).length, 1);
  });

  it("valid: exits 0 without output, a token or a request to the store [agent 8.7]", async () => {
    await age(7);
    const marked = await stat(join(place.path, MARKER));
    const { code, stdout, stderr } = await place.agent(["login-check"], {
      HTTPS_PROXY: "http://127.0.0.1:1",
    });
    assert.deepEqual([code, stdout, stderr], [0, "", ""]);
    assert.ok(
      (await stat(join(place.path, MARKER))).mtimeMs > marked.mtimeMs,
      "rule 5: the marker is refreshed",
    );
  });

  it("unreadable: prints the reason, and --quiet does not [agent 8.8]", async () => {
    const kept = await place.read(STORED);
    await place.write(STORED, "planted-text");
    await age(7);
    const told = await place.agent(["login-check"]);
    assert.equal(told.code, 0);
    assert.match(
      told.stderr,
      /^cannot use the client certificate's file .*client\.pem: its key is not in a token/,
    );
    assert.doesNotMatch(told.stderr, /planted-text/);
    await age(7);
    const quiet = await place.agent(["login-check", "--quiet"]);
    assert.match(quiet.stderr, /^agent: the login was given up/);
    await place.write(STORED, kept);
  });

  it("a key missing in the token, or a PIN that others can read: unreadable too [agent 8.8]", async () => {
    await writeFile(join(place.path, "open-pin"), "x", { mode: 0o644 });
    const pkcs11 = { module: hsm.module, token: hsm.token, pin_file: join(place.path, "open-pin") };
    await place.configure(store({ pkcs11 }), RULE);
    await age(7);
    assert.match(
      (await place.agent(["login-check"])).stderr,
      /^cannot use the PIN file .*: others can read or write it/,
    );
    await place.configure(
      store({ pkcs11: { module: hsm.module, token: "absent", pin_file: hsm.pinFile } }),
      RULE,
    );
    await age(7);
    assert.match(
      (await place.agent(["login-check"])).stderr,
      /^PKCS#11 token "absent" does not do what openssl asks/,
    );
    await place.configure(store(), RULE);
  });
});

describe("agent under mtls+os", () => {
  it("signs in with the key in its token, and revokes the token of a command [agent 10.17]", async () => {
    const alive = await liveTokens();
    const got = await place.agent(["secrets", "get", "k", "value"]);
    assert.deepEqual([got.code, got.stdout, got.stderr], [0, "one\n", ""]);
    assert.equal(await place.token(), undefined, "no token file");
    assert.equal(await liveTokens(), alive);
    assert.doesNotMatch(await place.read(STORED), /PRIVATE KEY/);
  });

  it("status: certificate enrolled, identity, backend and expiry, and no login [agent 9.1]", async () => {
    const logins = await liveTokens();
    const text = await place.ok("status", "--check");
    assert.match(
      text,
      /^Certificate: {4}enrolled as ada\n {2}Backend: {6}PKCS#11 token "daemon"\n {2}Expires: {6}\d{4}-\S+Z$/m,
    );
    assert.doesNotMatch(text, /Authentication:/);
    assert.equal(await liveTokens(), logins);
    const { certificate } = JSON.parse(await place.ok("status", "--json")) as { certificate: unknown };
    assert.deepEqual(Object.keys(certificate as object), [
      "enrolled",
      "identity",
      "backend",
      "expires_at",
      "fault",
    ]);
  });

  it("the daemon syncs, and renews a certificate with a new key in the token", async () => {
    await place.configure(store({ pki_role: "brief" }), RULE);
    await rm(join(place.path, STORED));
    await hsm.empty();
    const enrolled = await place.atTerminal(["login"], [password]);
    assert.equal(enrolled.code, 0, enrolled.shown);
    const [first = ""] = await hsm.keys();
    await place.configure(store(), RULE);
    const daemon = place.daemon();
    try {
      await until(async () => (await place.read("out.yaml")) === "value: one\n", daemon.log.bind(daemon));
      await daemon.logged(/client certificate replaced/);
      await until(async () => {
        const keys = await hsm.keys();
        return keys.length === 1 && keys[0] !== first;
      });
    } finally {
      assert.equal(await daemon.stop(), 0);
    }
    assert.doesNotMatch(daemon.log(), /could not be (?:revoked|removed)/);
    assert.doesNotMatch(
      daemon.log() + (await place.read(STORED)),
      new RegExp((await readFile(hsm.pinFile, "utf8")).trim()),
    );
    assert.equal(await liveTokens(), 0, "the daemon's own token ended with it");
  });

  it("status reports an empty token, and the next login gets another certificate", async () => {
    await place.configure(store(), RULE);
    await hsm.empty();
    const text = (await place.agent(["status", "--check"])).stdout;
    assert.match(
      text,
      /^Certificate: {4}not enrolled \(PKCS#11 token "daemon" does not do what openssl asks/m,
    );
    const done = await place.atTerminal(["login"], [password]);
    assert.equal(done.code, 0, done.shown);
    assert.equal(await place.ok("secrets", "get", "k", "value"), "one\n");
  });
});
