import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { run } from "@devplat/testkit";
import fc from "fast-check";
import { assertSurvivesDamage, assertThrowsCode } from "../test/malformed.test-kit.ts";
import { keyFolder, type KeyFolder } from "../test/openssh.test-kit.ts";
import {
  decodeKnownHosts,
  decodeKnownHostsLine,
  encodeKnownHostsLine,
  encodePublicKey,
  encodePublicKeyLine,
  hashKnownHostName,
  isRevoked,
  knownHostName,
  knownHostsOf,
  namesOfKey,
  publicKeyOf,
  type KnownHost,
  type KnownHostNames,
  type SshErrorCode,
} from "./index.ts";

const newKey = (): Buffer => encodePublicKey(publicKeyOf(generateKeyPairSync("ed25519").publicKey));
const [FIRST, SECOND, THIRD] = [newKey(), newKey(), newKey()];
const key = (blob: Buffer): string => encodePublicKeyLine(blob);

const FILE = [
  "# a comment",
  `web.example.com,192.0.2.1 ${key(FIRST)} made by hand`,
  "",
  `[web.example.com]:2222 ${key(SECOND)}`,
  `*.example.com,!db.example.com ${key(THIRD)}`,
  `@cert-authority *.example.org,example.org ${key(FIRST)}`,
  `@revoked * ${key(SECOND)}`,
  "not a line",
  `[*]:2200 ${key(FIRST)}`,
  `Host-With-Capitals.Example.NET ${key(FIRST)}`,
  `h?st ${key(SECOND)}`,
  `@unknown-marker a.example.com ${key(FIRST)}`,
  `2001:db8::1 ${key(FIRST)}`,
  `[2001:db8::1]:2222 ${key(FIRST)}`,
  "web.example.com 2048 65537 1234567890",
  "",
].join("\n");
const NAMES = [
  "web.example.com",
  "db.example.com",
  "192.0.2.1",
  "[web.example.com]:2222",
  "[web.example.com]:2200",
  "other.example.com",
  "example.com",
  "example.org",
  "a.example.org",
  "host-with-capitals.example.net",
  "host",
  "hoost",
  "2001:db8::1",
  "[2001:db8::1]:2222",
];

/** Numbers of the lines that ssh-keygen finds for a name. */
async function foundBySshKeygen(keys: KeyFolder, name: string): Promise<number[]> {
  const { stdout } = await run("ssh-keygen", ["-F", name, "-f", "known"], { cwd: keys.path });
  return [...stdout.matchAll(/^# Host .* found: line (\d+)/gm)].map(([, line]) => Number(line));
}

describe("known_hosts", () => {
  it("finds the lines that ssh-keygen -F finds, with plain and with hashed names", async () => {
    await using keys = await keyFolder();
    const file = decodeKnownHosts(FILE);
    await keys.write("known", FILE);
    let count = 0;
    for (const name of NAMES) {
      const ours = knownHostsOf(file.hosts, name).map(({ line }) => line);
      assert.deepEqual(ours, await foundBySshKeygen(keys, name), name);
      count += ours.length;
    }
    assert.ok(count > NAMES.length);

    const plain = NAMES.map((name) => `${name} ${key(FIRST)}\n`).join("");
    await keys.write("known", plain);
    await keys.keygen(["-q", "-H", "-f", "known"]);
    const hashed = decodeKnownHosts(await keys.read("known"));
    assert.ok(hashed.hosts.every(({ names }) => names.kind === "hashed"));
    for (const [index, name] of NAMES.entries()) {
      assert.deepEqual(
        knownHostsOf(hashed.hosts, name).map(({ line }) => line),
        [index + 1],
      );
    }
  });

  it("writes plain and hashed lines that ssh-keygen finds", async () => {
    await using keys = await keyFolder();
    const lines = [
      {
        names: { kind: "patterns", patterns: ["*.example.com", "!db.example.com"] },
        marker: "cert-authority",
      },
      { names: hashKnownHostName("[web.example.com]:2222"), marker: undefined },
    ] as const;
    const text = lines
      .map((line) => encodeKnownHostsLine({ ...line, blob: FIRST, comment: "c d" }))
      .join("\n");
    await keys.write("known", `${text}\n`);
    assert.deepEqual(await foundBySshKeygen(keys, "web.example.com"), [1]);
    assert.deepEqual(await foundBySshKeygen(keys, "[web.example.com]:2222"), [2]);
    assert.deepEqual(await foundBySshKeygen(keys, "db.example.com"), []);
  });

  it("numbers the lines that cannot be read, and leaves out empty ones and comments", () => {
    const { hosts, faults } = decodeKnownHosts(FILE);
    assert.deepEqual(faults, [8, 12, 15]);
    assert.deepEqual(
      hosts.map(({ line }) => line),
      [2, 4, 5, 6, 7, 9, 10, 11, 13, 14],
    );
    assert.equal(hosts[0]?.comment, "made by hand");
    assert.deepEqual(
      hosts.map(({ marker }) => marker).filter((marker) => marker !== undefined),
      ["cert-authority", "revoked"],
    );
  });

  it("gives the names of a key, those of patterns and hashes for candidates only", () => {
    const { hosts } = decodeKnownHosts(FILE);
    assert.deepEqual(namesOfKey(hosts, THIRD, []), new Set());
    assert.deepEqual(
      namesOfKey(hosts, THIRD, ["web.example.com", "db.example.com"]),
      new Set(["web.example.com"]),
    );
    assert.deepEqual(
      namesOfKey(hosts, FIRST, []),
      new Set([
        "web.example.com",
        "192.0.2.1",
        "host-with-capitals.example.net",
        "2001:db8::1",
        "[2001:db8::1]:2222",
      ]),
    );
    // The line of an authority names hosts whose certificates it signs. Its key is not the key of a host.
    assert.ok(!namesOfKey(hosts, FIRST, ["example.org"]).has("example.org"));
    const hashed: KnownHost = {
      marker: undefined,
      names: hashKnownHostName("git.example.com"),
      keyType: "ssh-ed25519",
      blob: FIRST,
      comment: "",
    };
    assert.deepEqual(namesOfKey([hashed], FIRST, []), new Set());
    assert.deepEqual(namesOfKey([hashed], FIRST, ["git.example.com", "other"]), new Set(["git.example.com"]));
    assert.deepEqual(namesOfKey([hashed], SECOND, ["git.example.com"]), new Set());
  });

  it("reads lines with odd white space", () => {
    const host = decodeKnownHostsLine(`  @revoked \t a,b  \t${key(FIRST)}  c d \r`);
    const names = { kind: "patterns", patterns: ["a", "b"] };
    assert.deepEqual(host, { marker: "revoked", names, keyType: "ssh-ed25519", blob: FIRST, comment: "c d" });
    assert.deepEqual(decodeKnownHosts(` \t\n  # a\na # b\n a ${key(FIRST)}`).faults, [3]);
  });

  it("tells revoked keys", () => {
    const { hosts } = decodeKnownHosts(FILE);
    assert.ok(isRevoked(hosts, SECOND));
    assert.ok(!isRevoked(hosts, FIRST));
  });

  it("names a host with a port as ssh does", () => {
    assert.equal(knownHostName({ host: "Web.example.com", port: 22 }), "web.example.com");
    assert.equal(knownHostName({ host: "web.example.com", port: 2222 }), "[web.example.com]:2222");
    assert.equal(knownHostName({ host: "2001:DB8::1", port: 22 }), "2001:db8::1");
  });

  it("gives back every line that was encoded", () => {
    const pattern = fc.stringMatching(/^[A-Za-z0-9!*?[][A-Za-z0-9.*?:\]-]{0,20}$/);
    const names: fc.Arbitrary<KnownHostNames> = fc.oneof(
      fc
        .array(pattern, { minLength: 1, maxLength: 4 })
        .map((patterns) => ({ kind: "patterns" as const, patterns })),
      fc.domain().map((name) => hashKnownHostName(name)),
    );
    const marker = fc.constantFrom(undefined, "cert-authority" as const, "revoked" as const);
    fc.assert(
      fc.property(names, marker, fc.constantFrom("", "a comment"), (each, mark, comment) => {
        const host: KnownHost = { marker: mark, names: each, keyType: "ssh-ed25519", blob: FIRST, comment };
        assert.deepEqual(decodeKnownHostsLine(encodeKnownHostsLine(host)), host);
      }),
    );
  });

  it("refuses malformed lines and names with the code that names the fault", () => {
    const salt = Buffer.alloc(20, 1).toString("base64");
    // OpenSSH does not compare the type in a line with the type of its key.
    const table: readonly [string, SshErrorCode][] = [
      ["", "bad_text"],
      [key(FIRST), "bad_text"],
      ["host", "bad_text"],
      ["@revoked host", "bad_text"],
      [`@cert-authority ${key(FIRST)}`, "bad_text"],
      [`@other host ${key(FIRST)}`, "unsupported"],
      [`host ssh-rsa ${FIRST.toString("base64")}`, "bad_value"],
      [`|1|${salt} ${key(FIRST)}`, "bad_value"],
      [`|1|${salt}|${salt}|${salt} ${key(FIRST)}`, "bad_value"],
      [`|2|${salt}|${salt} ${key(FIRST)}`, "bad_value"],
      [`|1|AAAA|${salt} ${key(FIRST)}`, "bad_value"],
      [`|1||${salt} ${key(FIRST)}`, "bad_text"],
    ];
    for (const [line, code] of table) assertThrowsCode(() => decodeKnownHostsLine(line), code, line);
    for (const patterns of [
      [],
      ["a b"],
      ["a", "b c"],
      ["a,b"],
      ["a\nb"],
      [""],
      ["#a"],
      ["@revoked"],
      ["|1|a"],
    ]) {
      const names = { kind: "patterns", patterns } as const;
      const line = { marker: undefined, names, blob: FIRST, comment: "" };
      assertThrowsCode(() => encodeKnownHostsLine(line), "bad_value", patterns.join(" "));
    }
    const names = { kind: "patterns", patterns: ["a#@|"] } as const;
    assert.match(
      encodeKnownHostsLine({ marker: undefined, names, blob: FIRST, comment: "" }),
      /^a#@\| ssh-ed25519 /,
    );
  });

  it("ends with a file for any damage", () => {
    assertSurvivesDamage(Buffer.from(FILE), (bytes) => {
      const { hosts } = decodeKnownHosts(bytes.toString("latin1"));
      assert.ok(knownHostsOf(hosts, "web.example.com").length <= hosts.length);
    });
  });
});
