import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { SecretStoreError, VaultClient, type SecretStore } from "@devplat/secret-store";
import { decodeCertificate, encodePublicKeyLine, publicKeyOfBlob, verify } from "@devplat/ssh-protocol";
import {
  startVault,
  startVaultProxy,
  tempFolder,
  until,
  type Vault,
  type VaultProxy,
} from "@devplat/testkit";
import { emptyStore } from "../../../secrets/empty-store.ts";
import { HandClock } from "../../../sync/clock.test-kit.ts";
import type { CaSource } from "./ca-source.ts";
import { renewalAt } from "./ca-source.ts";
import {
  StoreAuthority,
  type CertificateAuthority,
  type CertificateRequest,
} from "./certificate-authority.ts";
import { succeed } from "./keys.test-kit.ts";
import { renderPrincipals } from "./principals.ts";
import { never, section, sourcesStand } from "./sources.test-kit.ts";

const DATA = Buffer.from("data to be signed");
const MINUTE_MS = 60_000;
const store: SecretStore = emptyStore;
const ca = (more: Readonly<Record<string, unknown>> = {}) => ({
  agent: section([{ source: "ca", name: "prod", role: "login", ...more }]),
  enrolments: {},
});

describe("certificates of the SSH engine of a real Vault", () => {
  let vault: Vault;
  let proxy: VaultProxy;
  let client: VaultClient;
  let authority: CertificateAuthority;
  before(async () => {
    vault = await startVault();
    proxy = await startVaultProxy(vault.address);
    await vault.request("POST", "sys/mounts/ssh", { type: "ssh" });
    await vault.request("POST", "ssh/config/ca", { generate_signing_key: true });
    const role = {
      key_type: "ca",
      allow_user_certificates: true,
      allowed_users: "*",
      allowed_extensions: "permit-pty,permit-port-forwarding",
      default_extensions: { "permit-pty": "" },
      max_ttl: "1h",
    };
    await vault.request("POST", "ssh/roles/login", role);
    await vault.request("POST", "ssh/roles/narrow", { ...role, allowed_users: "grace", max_ttl: "2m" });
    client = new VaultClient({
      address: proxy.url,
      token: () => new Secret(vault.rootToken),
      environment: {},
      timing: { firstMs: 10, tryMs: 5000, callMs: 5000 },
    });
    authority = new StoreAuthority(client, () => Date.now());
  });
  after(async () => {
    await client.close();
    proxy.stop();
    await vault.stop();
  });
  beforeEach(() => {
    proxy.fault = undefined;
    proxy.calls.length = 0;
  });
  const signings = (): number => proxy.calls.filter(({ path }) => path.includes("/ssh/sign/")).length;

  for (const [type, shown] of [
    ["ed25519", "ssh-ed25519-cert-v01@openssh.com"],
    ["ecdsa", "ecdsa-sha2-nistp256-cert-v01@openssh.com"],
    ["rsa", "ssh-rsa-cert-v01@openssh.com"],
  ] as const) {
    it(`a key of type ${type} gets a certificate that ssh-keygen -L shows, and signs`, async () => {
      const config = ca({
        key_type: type,
        principals: ["{{ username }}", '{{ env "TEAM" }}', "ada"],
        ttl: "5m",
        extensions: { "permit-port-forwarding": "" },
      });
      await using stand = sourcesStand(store, config, { authority, events: false });
      await until(async () => (await stand.comments()).length === 1);
      const identity = await stand.identity("prod: ada, ops");
      const folder = await tempFolder("certificate");
      const file = join(folder.path, "cert.pub");
      await writeFile(file, encodePublicKeyLine(identity.blob));
      const text = await succeed("ssh-keygen", ["-L", "-f", file]);
      await folder.remove();
      assert.match(text, new RegExp(`Type: ${shown} user certificate`));
      assert.match(text, /Principals: \n\s+ada\n\s+ops\n/);
      assert.match(text, /Critical Options: \(none\)/);
      assert.match(text, /Extensions: \n\s+permit-port-forwarding\n?$/);
      const left = (identity.certificateExpiresAt ?? 0) - Date.now();
      assert.ok(left > 4 * MINUTE_MS && left <= 5 * MINUTE_MS, String(left));
      const signature = await identity.sign(DATA, "sha512", never());
      assert.ok(verify(publicKeyOfBlob(identity.blob), signature, DATA));
      assert.equal(identity.state, "ready");
    });
  }

  it("the role's own extensions count, and its refusals name the key to change", async () => {
    const refusals: Readonly<Record<string, readonly [Readonly<Record<string, unknown>>, RegExp]>> = {
      "no-role": [{ role: "missing" }, /^cannot get a certificate from ssh\/sign\/missing: .* no such role/],
      "no-mount": [{ mount: "nowhere" }, /nowhere\/sign\/login: the store has no SSH engine there/],
      name: [{ role: "narrow" }, /the role does not allow these names/],
      ttl: [{ ttl: "2h" }, /the role allows only a shorter life/],
      extension: [
        { extensions: { "permit-agent-forwarding": "" } },
        /the role does not allow these extensions/,
      ],
    };
    const config = {
      agent: section([
        { source: "ca", name: "plain", role: "login" },
        { source: "ca", name: "short", role: "narrow", principals: ["grace"], ttl: "2m" },
        ...Object.entries(refusals).map(([name, [more]]) => ({ source: "ca", name, role: "login", ...more })),
      ]),
      enrolments: {},
    };
    await using stand = sourcesStand(store, config, { authority, events: false });
    await until(async () => (await stand.comments()).length === 2);
    const plain = decodeCertificate((await stand.identity("plain: ada")).blob);
    assert.deepEqual([...plain.extensions.keys()], ["permit-pty"]);
    const short = await stand.identity("short: grace");
    assert.ok((short.certificateExpiresAt ?? Infinity) <= Date.now() + 2 * MINUTE_MS);
    for (const source of stand.sources.list.slice(2)) {
      const problem = await until(() => source.problem());
      assert.match(problem, refusals[source.name]?.[1] ?? /^$/, source.name);
    }
  });

  it("concurrent listings ask for one certificate, and later ones for none", async () => {
    await using stand = sourcesStand(store, ca(), { authority, events: false });
    await Promise.all([stand.comments(), stand.comments(), stand.comments()]);
    await until(async () => (await stand.comments()).length === 1);
    await stand.comments();
    assert.equal(signings(), 1);
  });

  it("a store that is down or silent gives no certificate, says so, and recovers", async () => {
    proxy.fault = { cut: true };
    await using stand = sourcesStand(store, ca(), { authority, events: false });
    assert.deepEqual(await stand.comments(), []);
    await until(() => stand.problems().startsWith("cannot get a certificate from ssh/sign/login: "));
    proxy.fault = undefined;
    await until(async () => (await stand.comments()).length === 1);
    assert.equal(stand.problems(), "");
  });
});

/** A STAND-IN for the authority, with times of the test's clock: Vault has its own clock. */
class StandInAuthority implements CertificateAuthority {
  readonly requests: CertificateRequest[] = [];
  before: (signal: AbortSignal) => void | Promise<void> = () => undefined;
  readonly #clock: HandClock;

  constructor(clock: HandClock) {
    this.#clock = clock;
  }

  async issue(request: CertificateRequest, signal: AbortSignal) {
    this.requests.push(request);
    await this.before(signal);
    const end = Math.floor((this.#clock.now() + request.ttlMs) / 1000);
    const certificate = { serial: 1n, validBefore: BigInt(end) } as ReturnType<typeof decodeCertificate>;
    return { blob: Buffer.from(`certificate ${this.requests.length}`), certificate };
  }
}

describe("the life of a certificate, by the clock of a test", () => {
  let clock: HandClock;
  let authority: StandInAuthority;
  beforeEach(() => {
    clock = new HandClock();
    authority = new StandInAuthority(clock);
  });
  const stand = (config = ca()) => sourcesStand(store, config, { authority, clock, events: false });
  const blobOf = (source: Pick<CaSource, "known"> | undefined): string =>
    source?.known()[0]?.blob.toString() ?? "";

  it("is renewed at a tenth of its life, and at least 30 s, before its end", async () => {
    for (const [ttl, beforeEnd] of [
      ["15m", 1.5 * MINUTE_MS],
      ["2m", 30_000],
    ] as const) {
      authority.requests.length = 0;
      await using current = stand(ca({ ttl }));
      const source = current.sources.list[0];
      await until(() => blobOf(source) === "certificate 1");
      const end = source?.known()[0]?.certificateExpiresAt ?? 0;
      // The loop sleeps for a minute at the longest.
      while (end - clock.now() - beforeEnd > MINUTE_MS) {
        clock.advance(MINUTE_MS);
        await new Promise((resolve) => setImmediate(resolve));
      }
      clock.advance(end - clock.now() - beforeEnd - 1);
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(authority.requests.length, 1);
      clock.advance(1);
      await until(() => blobOf(source) === "certificate 2");
      assert.deepEqual(authority.requests[1]?.publicKey, authority.requests[0]?.publicKey);
    }
  });

  it("plans the renewal of a short certificate for its half", () => {
    assert.equal(renewalAt(0, 900_000), 810_000);
    assert.equal(renewalAt(0, 120_000), 90_000);
    assert.equal(renewalAt(0, 40_000), 20_000);
    assert.equal(renewalAt(0, undefined), Infinity);
  });

  it("is never listed after its end, also after a sleep of the host", async () => {
    await using current = stand();
    const [source] = current.sources.list;
    await until(() => blobOf(source) === "certificate 1");
    authority.before = () => {
      throw new SecretStoreError("unavailable", "the store is down");
    };
    clock.jump(15 * MINUTE_MS - 1001);
    assert.equal(source?.known().length, 1);
    clock.jump(1001);
    assert.deepEqual(source?.known(), []);
    assert.deepEqual(await current.comments(), []);
    assert.match(current.problems(), /the store is down$/);
  });

  it("a failing authority is asked less and less often, and a sign-in asks again", async () => {
    authority.before = () => {
      throw new SecretStoreError("denied", "the token may not sign");
    };
    await using current = stand();
    await until(() => authority.requests.length === 1 && current.problems() !== "");
    // Waits of 1, 2, 4, … s, each ±20 %: nine failures take more than four minutes.
    for (let second = 0; second < 200; second++) {
      clock.advance(1000);
      await current.comments();
    }
    assert.ok(
      authority.requests.length >= 5 && authority.requests.length <= 9,
      String(authority.requests.length),
    );
    const earlier = authority.requests.length;
    current.signIn.set("ada");
    await until(() => authority.requests.length === earlier + 1);
  });

  it("a failing renewal keeps the certificate until its end", async () => {
    await using current = stand();
    const [source] = current.sources.list;
    await until(() => blobOf(source) === "certificate 1");
    authority.before = () => {
      throw new SecretStoreError("unavailable", "the store is down");
    };
    const end = source?.known()[0]?.certificateExpiresAt ?? 0;
    while (clock.now() + MINUTE_MS < end) {
      clock.advance(MINUTE_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => authority.requests.length > 1);
    assert.equal(blobOf(source), "certificate 1");
    assert.deepEqual(await current.comments(), ["prod: ada"]);
  });

  it("is dropped with its key at sign-out, and when another user signs in", async () => {
    await using current = stand();
    const [source] = current.sources.list;
    await until(() => blobOf(source) === "certificate 1");
    current.signIn.set("ada");
    assert.equal(blobOf(source), "certificate 1");
    current.signIn.set("eve");
    assert.deepEqual(source?.known(), []);
    await until(() => blobOf(source) === "certificate 2");
    assert.notDeepEqual(authority.requests[1]?.publicKey, authority.requests[0]?.publicKey);
    current.signIn.set(undefined);
    assert.deepEqual(source?.known(), []);
    current.signIn.set("eve");
    await until(() => blobOf(source) === "certificate 3");
    assert.notDeepEqual(authority.requests[2]?.publicKey, authority.requests[1]?.publicKey);
  });

  it("one that was asked for by the user before is not used", async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    authority.before = () => go;
    await using current = stand();
    const [source] = current.sources.list;
    await until(() => authority.requests.length === 1);
    authority.before = () => undefined;
    current.signIn.set("eve");
    await until(() => blobOf(source) === "certificate 2");
    resolve();
    await new Promise((turn) => setImmediate(turn));
    assert.equal(blobOf(source), "certificate 2");
  });

  it("forget() drops the key, and the next listing asks for a new one", async () => {
    await using current = stand();
    const [source] = current.sources.list;
    await until(() => blobOf(source) === "certificate 1");
    source?.forget();
    assert.deepEqual(source?.known(), []);
    clock.advance(10 * MINUTE_MS);
    await new Promise((turn) => setImmediate(turn));
    assert.equal(authority.requests.length, 1);
    assert.equal((await current.comments()).length, 1);
    assert.equal(authority.requests.length, 2);
  });

  it("nothing is asked for while nobody is signed in", async () => {
    await using current = sourcesStand(store, ca(), { clock, authority, events: false });
    await until(() => authority.requests.length === 1);
    current.signIn.set(undefined);
    clock.advance(10 * MINUTE_MS);
    await new Promise((turn) => setImmediate(turn));
    assert.equal(authority.requests.length, 1);
  });

  it("a source that hangs delays no other, and a slow one is listed when it is ready", async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    authority.before = () => go;
    await using current = stand();
    const listing = current.comments();
    await until(() => authority.requests.length === 1);
    clock.advance(1500);
    assert.deepEqual(await listing, []);
    assert.equal(current.problems(), "the store has not answered within 1.5 s");
    resolve();
    await until(async () => (await current.comments()).length === 1);
    assert.equal(current.problems(), "");
  });

  it("an embedded store has no authority, and says so", async () => {
    await using current = sourcesStand(store, ca(), { clock, events: false });
    assert.deepEqual(await current.comments(), []);
    assert.match(current.problems(), /the embedded store signs no SSH certificates$/);
  });
});

describe("principals", () => {
  const context = { username: "ada", env: (name: string) => (name === "TEAM" ? "ops" : undefined) };

  it("are rendered from templates, each once", () => {
    const templates = ["{{ username }}", '{{ env "TEAM" }}', "root", " ada "];
    assert.deepEqual(renderPrincipals(templates, context), ["ada", "ops", "root"]);
  });

  for (const [name, template, message] of [
    ["an empty one", '{{ env "OTHER" }}', "principal 2 is empty"],
    ["a list in one", "root,ada", "principal 2 holds a comma or white space"],
    ["white space in one", "root ada", "principal 2 holds a comma or white space"],
    ["a field", "{{ .user }}", /^principal 2: /],
    ["a secret", '{{ (secret "x").y }}', "principal 2: a principal cannot read a secret"],
    ["a broken template", "{{ nope }}", /^principal 2: .*there is no function "nope"/],
  ] as const) {
    it(`refuse ${name}`, () => {
      assert.throws(
        () => renderPrincipals(["a", template], context),
        (error: Error) => {
          const reason = error.message.replace("cannot make the names of the certificate: ", "");
          if (typeof message === "string") assert.equal(reason, message);
          else assert.match(reason, message);
          return true;
        },
      );
    });
  }
});
