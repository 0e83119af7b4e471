import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { startSwtpm, startVault, type Swtpm, type Vault } from "@devplat/testkit";
import { tpmDevice } from "../../apps/agent/src/auth/tpm/device.ts";
import { TpmSealer } from "../../apps/agent/src/auth/tpm/tpm-sealer.ts";
import { Tpm } from "../../apps/agent/src/auth/tpm/tpm.ts";
import { AgentHome, GENERATE_ROOT, writePolicies } from "./agent-auth-stand.ts";

const MARKER = "$daemon-tpm-sealed$v1$";
let tpm: Swtpm;
let other: Swtpm;
let vault: Vault;
const homes: AgentHome[] = [];

before(async () => {
  [tpm, other, vault] = await Promise.all([startSwtpm(), startSwtpm(), startVault({ tls: true })]);
  await writePolicies(vault);
});
after(() => Promise.all([tpm.stop(), other.stop(), vault.stop(), ...homes.map((each) => each.remove())]));

const sealer = (peer: Swtpm, pcrs: readonly number[] = []): TpmSealer =>
  new TpmSealer(new Tpm(tpmDevice({ AGENT_TPM_DEVICE: `unix:${peer.socket}` })), pcrs);

describe("sealing by a TPM", () => {
  it("gives a marked text that the same TPM turns back, as often as one likes", async () => {
    const long = new Secret("x".repeat(5000));
    const sealed = await sealer(tpm).seal(long);
    assert.ok(sealed.startsWith(MARKER) && !sealed.includes("xxxx"));
    for (let i = 0; i < 6; i++) assert.equal((await sealer(tpm).unseal(sealed)).reveal(), long.reveal());
  });

  it("another TPM cannot open it, nor this one after a change", async () => {
    const sealed = await sealer(tpm).seal(new Secret("hunter2"));
    await assert.rejects(sealer(other).unseal(sealed), /the TPM refused \(code 0x/);
    const parts = JSON.parse(Buffer.from(sealed.slice(MARKER.length), "base64url").toString());
    const changed = MARKER + Buffer.from(JSON.stringify({ ...parts, data: "AAAA" })).toString("base64url");
    await assert.rejects(sealer(tpm).unseal(changed), /sealed to the TPM is damaged/);
    await assert.rejects(sealer(tpm).unseal(`${MARKER}hunter2`), (error: Error) => {
      assert.match(error.message, /is damaged/);
      return !error.message.includes("hunter2");
    });
  });

  it("sealed to registers it opens only while they have the same values", async () => {
    const bound = await sealer(tpm, [7, 16]).seal(new Secret("s"));
    assert.equal((await sealer(tpm).unseal(bound)).reveal(), "s");
    await tpm.extend(16);
    await assert.rejects(sealer(tpm).unseal(bound), /started with other software/);
  });
});

describe("agent with a +tpm method", () => {
  it("keeps the token sealed, uses it, and reports a missing TPM [agent 10.7]", async () => {
    const store = {
      address: vault.address,
      ca_cert: vault.caFile,
      username: "ada",
      auth_method: "token+tpm",
    };
    const place = await AgentHome.create(store);
    homes.push(place);
    const env = { AGENT_TPM_DEVICE: `unix:${tpm.socket}` };
    const token = await vault.createUserToken("ada", ["user"]);
    const { code, shown } = await place.atTerminal(["login"], [[/Token/, token]], env);
    assert.equal(code, 0, shown);
    const kept = (await place.token()) ?? "";
    assert.ok(kept.startsWith(MARKER) && !kept.includes(token));
    assert.equal((await place.agent(["secrets", "list"], env)).code, 0);
    const without = await place.agent(["secrets", "list"], { AGENT_TPM_DEVICE: "/nowhere" });
    assert.equal(without.code, 1);
    assert.match(without.stderr, /cannot use the TPM at \/nowhere \(ENOENT\)/);
    await place.configure({ ...store, auth_method: "token" });
    const plain = await place.agent(["secrets", "list"], env);
    assert.equal(plain.code, 1);
    assert.match(plain.stderr, /sealed to this host's TPM/);
  });

  it("mtls+tpm keeps the key of the certificate sealed too, and signs in by it [agent 10.16]", async () => {
    await vault.request("POST", "sys/mounts/pki", { type: "pki" });
    const root = await vault.request("POST", `pki/${GENERATE_ROOT}`, { common_name: "root" });
    await vault.request("POST", "pki/roles/people", {
      allow_any_name: true,
      key_type: "any",
      max_ttl: "20h",
    });
    await vault.request("POST", "sys/auth/cert", { type: "cert" });
    const { certificate } = root.body["data"] as { certificate: string };
    await vault.request("POST", "auth/cert/certs/people", { certificate, token_policies: ["user"] });
    // The stock build's own userpass method answers like ldap at another mount.
    await vault.request("PUT", "sys/policies/acl/bootstrap", {
      policy: `path "pki/sign/people" { capabilities = ["update"] }`,
    });
    await vault.createUserToken("ada", ["bootstrap"]);
    const place = await AgentHome.create({
      address: vault.address,
      ca_cert: vault.caFile,
      username: "ada",
      auth_method: "mtls+tpm",
      mtls: {
        bootstrap_method: "ldap",
        bootstrap_mount: "userpass",
        pki_role: "people",
        reissue_before: "1h",
      },
    });
    homes.push(place);
    const env = { AGENT_TPM_DEVICE: `unix:${tpm.socket}` };
    const { code, shown } = await place.atTerminal(
      ["login"],
      [[/Password of ada: /, "password-of-ada"]],
      env,
    );
    assert.equal(code, 0, shown);
    const stored = await place.read(".local/share/daemon/mtls/client.pem");
    assert.ok(stored.startsWith(MARKER) && !stored.includes("PRIVATE KEY"));
    assert.ok(((await place.token()) ?? "").startsWith(MARKER));
    await place.agent(["logout"], env);
    const again = await place.agent(["login"], env);
    assert.match(again.stdout, /Signed in as cert-people/, again.stderr);
  });
});
