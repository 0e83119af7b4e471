import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { startSlapd, startVault, until, type Slapd, type Vault } from "@devplat/testkit";
import { AgentHome, GENERATE_ROOT, USER_POLICY } from "./agent-auth-stand.ts";

const STORED = ".local/share/daemon/mtls/client.pem";
const RULE = `rules: [{name: r, key: k, target: {path: ~/out.yaml, format: yaml}}]\n`;
const password = [/Password of ada: /, "ada-password"] as const;
const homes: AgentHome[] = [];
let vault: Vault;
let slapd: Slapd;

before(async () => {
  [vault, slapd] = await Promise.all([
    startVault({ tls: true, ldapPlugin: true }),
    startSlapd({ ada: "ada-password" }),
  ]);
  await vault.request("POST", "sys/mounts/pki", { type: "pki", config: { max_lease_ttl: "8760h" } });
  const { body } = await vault.request("POST", `pki/${GENERATE_ROOT}`, {
    common_name: "test root",
    ttl: "8760h",
  });
  const names = { allow_any_name: true, enforce_hostnames: false, key_type: "any" };
  await vault.request("POST", "pki/roles/people", { ...names, max_ttl: "72h" });
  // The lifetime counts from 30 s before it is made, so that a certificate is past half of its life from the start.
  await vault.request("POST", "pki/roles/brief", { ...names, max_ttl: "20s" });
  await vault.request("POST", "pki/roles/own", { ...names, key_type: "rsa", max_ttl: "72h" });
  await vault.request("POST", "pki/config/crl", { auto_rebuild: false });
  // The bootstrap may get a certificate and nothing else; the certificate's own token may do the rest.
  await vault.request("PUT", "sys/policies/acl/bootstrap", {
    policy: `path "pki/sign/*" { capabilities = ["update"] }`,
  });
  await vault.request("PUT", "sys/policies/acl/user", {
    policy: `${USER_POLICY}
path "pki/sign/people" { capabilities = ["update"] }
path "pki/revoke-with-key" { capabilities = ["update"] }`,
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
});
after(() => Promise.all([vault.stop(), slapd.stop(), ...homes.map((each) => each.remove())]));

function store(mtls: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    address: vault.address,
    ca_cert: vault.caFile,
    username: "ada",
    auth_method: "mtls",
    mtls: { bootstrap_method: "ldap", pki_role: "people", ttl: "24h", reissue_before: "1h", ...mtls },
  };
}

async function home(mtls: Record<string, unknown> = {}, more = ""): Promise<AgentHome> {
  const created = await AgentHome.create(store(mtls), more);
  homes.push(created);
  return created;
}

async function serialOf(place: AgentHome): Promise<string> {
  const pem = await place.read(STORED);
  return new X509Certificate(pem.slice(pem.indexOf("-----BEGIN CERTIFICATE"))).serialNumber;
}

async function keyOf(place: AgentHome): Promise<string> {
  return (await place.read(STORED)).split("-----BEGIN CERTIFICATE")[0] ?? "";
}

async function isRevoked(serial: string): Promise<boolean> {
  const dashed = serial.toLowerCase().replaceAll(/(..)(?=.)/g, "$1:");
  const { body } = await vault.request("GET", `pki/cert/${dashed}`);
  return (body["data"] as { revocation_time: number }).revocation_time > 0;
}

async function accessorsOf(display: string): Promise<number> {
  const { body } = await vault.request("LIST", "auth/token/accessors");
  let count = 0;
  for (const accessor of (body["data"] as { keys: string[] }).keys) {
    const found = await vault.request("POST", "auth/token/lookup-accessor", { accessor });
    if ((found.body["data"] as { display_name: string }).display_name === display) count += 1;
  }
  return count;
}

describe("agent login by mtls", () => {
  let place: AgentHome;
  before(async () => {
    place = await home({}, RULE);
  });

  it("without a certificate gets one by the bootstrap login, and revokes its token [agent 10.13]", async () => {
    const { code, shown } = await place.atTerminal(["login"], [password]);
    assert.equal(code, 0, shown);
    assert.match(shown, /there is no client certificate yet; getting one[^]*Signed in as cert-people/);
    assert.equal(await place.modeOf(STORED), 0o600);
    assert.equal(await place.modeOf(join(STORED, "..")), 0o700);
    assert.match(await place.read(STORED), /PRIVATE KEY/);
    assert.equal(await accessorsOf("ldap-ada"), 0);
    const token = (await place.token()) ?? "";
    const { body } = await vault.request("POST", "auth/token/lookup", { token });
    assert.equal((body["data"] as { display_name: string }).display_name, "cert-people");
  });

  it("from then on signs in by itself, also for one command", async () => {
    const first = await serialOf(place);
    await place.ok("logout");
    assert.match(await place.ok("sync"), /1 changed, 0 unchanged, 0 failed/);
    assert.ok((await place.token()) !== undefined);
    await place.ok("login");
    assert.equal(await serialOf(place), first);
  });

  it("login-check rule 3: plain mtls caches a token and ignores the certificate [agent 8.9]", async () => {
    const stored = await place.read(STORED);
    await place.ok("login");
    await place.write(STORED, "broken");
    const { code, stdout, stderr } = await place.agent(["login-check"]);
    assert.deepEqual([code, stdout, stderr], [0, "", ""]);
    await place.write(STORED, stored);
  });

  it("a dry run signs nobody in [agent 6.6]", async () => {
    await place.ok("logout");
    const { code, stderr } = await place.agent(["sync", "--dry-run"]);
    assert.equal(code, 1);
    assert.match(stderr, /not signed in/);
    assert.equal(await place.token(), undefined);
  });

  it("a stored key that others can read is refused", async () => {
    await chmod(join(place.path, STORED), 0o640);
    const { code, stderr } = await place.agent(["sync"]);
    assert.equal(code, 1);
    assert.match(stderr, /client\.pem: others can read or write it/);
    await chmod(join(place.path, STORED), 0o600);
  });
});

describe("the daemon under mtls", () => {
  let place: AgentHome;
  beforeEach(async () => {
    place = await home({}, RULE);
    assert.equal((await place.atTerminal(["login"], [password])).code, 0);
  });

  it("replaces a certificate near its end with a new key, and revokes the old one [agent 10.14]", async () => {
    const long = await serialOf(place);
    const quiet = place.daemon();
    await until(
      async () => (await place.read("out.yaml")).includes("one"),
      () => quiet.log(),
    );
    assert.equal(await quiet.stop(), 0);
    assert.equal(await serialOf(place), long, "24 hours left: not due");

    await place.write(STORED, "");
    await place.configure(store({ pki_role: "brief", ttl: undefined }), RULE);
    const { code, shown } = await place.atTerminal(["login"], [password]);
    assert.equal(code, 0, shown);
    const [brief, briefKey] = [await serialOf(place), await keyOf(place)];
    await place.configure(store(), RULE);
    const daemon = place.daemon();
    try {
      await daemon.logged(/client certificate replaced/);
      await until(async () => await isRevoked(brief));
      const fresh = await serialOf(place);
      assert.notEqual(fresh, brief);
      assert.equal(await isRevoked(fresh), false);
      assert.notEqual(await keyOf(place), briefKey);
      assert.doesNotMatch(daemon.log(), /PRIVATE KEY|hvs\./);
    } finally {
      assert.equal(await daemon.stop(), 0);
    }
  });

  it("signs in again by itself after its token was revoked [agent 10.26]", async () => {
    const daemon = place.daemon();
    try {
      await until(
        async () => (await place.read("out.yaml")).includes("one"),
        () => daemon.log(),
      );
      const token = (await place.token()) ?? "";
      await vault.request("POST", "auth/token/revoke", { token });
      await place.ok("logout");
      await until(
        async () => {
          const next = await place.token();
          return next !== undefined && next !== token;
        },
        () => daemon.log(),
      );
    } finally {
      assert.equal(await daemon.stop(), 0);
    }
  });
});

describe("a certificate of the user's own (byo)", () => {
  it("is never replaced; a broken or foreign one is refused without quoting it [agent 10.15]", async () => {
    const { body } = await vault.request("POST", "pki/issue/own", { common_name: "ada", ttl: "1h" });
    const { certificate, private_key } = body["data"] as { certificate: string; private_key: string };
    const place = await home({ byo: { cert: "~/own.crt", key: "~/own.key" }, reissue_before: "100h" });
    await place.write("own.crt", certificate);
    await place.write("own.key", private_key);
    assert.match(await place.ok("login"), /Signed in as cert-people/);
    await place.write("own.key", "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n");
    const broken = await place.agent(["login"]);
    assert.equal(broken.code, 1);
    assert.match(broken.stderr, /own\.crt cannot be read/);
    assert.doesNotMatch(broken.stderr, /hunter2/);
    const other = await vault.request("POST", "pki/issue/own", { common_name: "ada", ttl: "1h" });
    await place.write("own.key", (other.body["data"] as { private_key: string }).private_key);
    assert.match((await place.agent(["login"])).stderr, /does not belong to its key/);
  });

  it("a certificate of an authority that no role trusts is refused", async () => {
    await vault.request("POST", "sys/mounts/other", { type: "pki" });
    await vault.request("POST", `other/${GENERATE_ROOT}`, { common_name: "other root" });
    await vault.request("POST", "other/roles/people", { allow_any_name: true });
    const { body } = await vault.request("POST", "other/issue/people", { common_name: "ada", ttl: "1h" });
    const { certificate, private_key } = body["data"] as { certificate: string; private_key: string };
    const place = await home({ byo: { cert: "~/own.crt", key: "~/own.key" } });
    await place.write("own.crt", certificate);
    await place.write("own.key", private_key);
    const { code, stderr } = await place.agent(["login"]);
    assert.equal(code, 1);
    assert.match(stderr, /the store does not accept the client certificate/);
  });
});
