import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  decodeKnownHosts,
  encodeKnownHostsLine,
  encodePublicKeyLine,
  hashKnownHostName,
  type KnownHost,
} from "@devplat/ssh-protocol";
import { certify, keysFolder, makeKey } from "../server/ssh-agent.test-kit.ts";
import { namesOfHostKey } from "./host-names.ts";

const linesOf = (...lines: string[]): readonly KnownHost[] => {
  const { hosts, faults } = decodeKnownHosts(lines.join("\n"));
  assert.deepEqual(faults, []);
  return hosts;
};
const now = { nowMs: Date.now() };

describe("namesOfHostKey", () => {
  it("finds spelled, hashed and matching names of a plain key", async () => {
    await using keys = await keysFolder();
    const [key, other] = [await makeKey(keys.path, "host"), await makeKey(keys.path, "other")];
    const line = encodePublicKeyLine(key.blob);
    const hashed = encodeKnownHostsLine({
      marker: undefined,
      names: hashKnownHostName("hidden.example.com"),
      blob: key.blob,
      comment: "",
    });
    const known = linesOf(`web.example.com,192.0.2.1 ${line}`, hashed, `*.internal ${line}`);
    const candidates = ["hidden.example.com", "db.internal", "elsewhere.example.com"];
    assert.deepEqual(
      new Set(namesOfHostKey(key.blob, known, { ...now, candidates })),
      new Set(["web.example.com", "192.0.2.1", "hidden.example.com", "db.internal"]),
    );
    assert.deepEqual(namesOfHostKey(other.blob, known, { ...now, candidates }), []);
    // Without a candidate a hashed name and a pattern tell nothing.
    assert.equal(namesOfHostKey(key.blob, known, { ...now, candidates: [] }).length, 2);
  });

  it("a revoked key has no name", async () => {
    await using keys = await keysFolder();
    const key = await makeKey(keys.path, "host");
    const line = encodePublicKeyLine(key.blob);
    const known = linesOf(`web ${line}`, `@revoked * ${line}`);
    assert.deepEqual(namesOfHostKey(key.blob, known, { ...now, candidates: ["web"] }), []);
  });

  const certificates: [name: string, args: string[], authorityHosts: string, names: string[]][] = [
    ["principals that the line covers", ["-h", "-n", "web.a.test,db.b.test"], "*.a.test", ["web.a.test"]],
    ["an authority of other hosts", ["-h", "-n", "web.a.test"], "*.b.test", []],
    ["a certificate without principals", ["-h"], "*", []],
    ["a certificate of a user", ["-n", "web.a.test"], "*", []],
    ["an expired certificate", ["-h", "-n", "web.a.test", "-V", "-2d:-1d"], "*", []],
    ["a certificate that is not yet valid", ["-h", "-n", "web.a.test", "-V", "+1d:+2d"], "*", []],
    ["a principal that is a pattern", ["-h", "-n", "*,web.a.test"], "*", ["web.a.test"]],
  ];
  for (const [name, args, authorityHosts, names] of certificates) {
    it(`${name}: ${names.length === 0 ? "no name" : names.join(", ")}`, async () => {
      await using keys = await keysFolder();
      const [host, authority] = [await makeKey(keys.path, "host"), await makeKey(keys.path, "ca")];
      const certificate = await certify(host, authority, args);
      const line = encodePublicKeyLine(authority.blob);
      const known = linesOf(`@cert-authority ${authorityHosts} ${line}`);
      assert.deepEqual(namesOfHostKey(certificate, known, { ...now, candidates: ["web.a.test"] }), names);
      const hostLine = (await readFile(`${host.path}.pub`, "utf8")).trim();
      for (const revoked of [line, hostLine]) {
        const all = [...known, ...linesOf(`@revoked * ${revoked}`)];
        assert.deepEqual(namesOfHostKey(certificate, all, { ...now, candidates: ["web.a.test"] }), []);
      }
      // The key of an authority is not the key of a host without the marker, nor the other way round.
      assert.deepEqual(
        namesOfHostKey(certificate, linesOf(`* ${line}`), { ...now, candidates: ["web"] }),
        [],
      );
      assert.deepEqual(namesOfHostKey(authority.blob, known, { ...now, candidates: ["web.a.test"] }), []);
    });
  }

  it("the known plain key of a host counts under any certificate", async () => {
    await using keys = await keysFolder();
    const [host, authority] = [await makeKey(keys.path, "host"), await makeKey(keys.path, "ca")];
    const certificate = await certify(host, authority, ["-h", "-n", "other"]);
    const known = linesOf(`web ${encodePublicKeyLine(host.blob)}`);
    assert.deepEqual(namesOfHostKey(certificate, known, { ...now, candidates: [] }), ["web"]);
  });

  it("never throws for other bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        assert.deepEqual(namesOfHostKey(Buffer.from(bytes), [], { ...now, candidates: ["web"] }), []);
      }),
    );
  });
});
