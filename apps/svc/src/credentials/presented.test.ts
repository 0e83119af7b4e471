import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createToken } from "./token-format.ts";
import { presentedCredential } from "./presented.ts";

describe("the presented credential", () => {
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
  const token = createToken("proxy").reveal();
  const own = { kind: "own", token, tokenKind: "proxy" };

  it("our token is found as bearer, as token, and in either field of Basic [svc 9.2]", () => {
    for (const header of [
      `Bearer ${token}`,
      `token ${token}`,
      `BEARER  ${token} `,
      basic(`x:${token}`),
      basic(`${token}:x`),
      basic(`${token}:`),
      basic(token),
    ]) {
      assert.deepEqual(presentedCredential(header), own);
    }
  });

  it("a prefix elsewhere is garbled, so that it does not go upstream", () => {
    for (const header of [
      `Bearer x${token}`,
      token,
      `Digest a="${token}"`,
      basic(`a:b${token}`),
      `Negotiate x, ${basic(`x:${token}`)}`,
      `Digest response=${Buffer.from(token).toString("base64url")}`,
      `Basic ${Buffer.from(`x:${token}`, "utf16le").toString("base64")}`,
    ]) {
      assert.deepEqual(presentedCredential(header), { kind: "garbled" });
    }
  });

  it("anything else is foreign, and nothing is none", () => {
    for (const header of [basic("alice:hunter2"), "Bearer ghp_x", "Negotiate abc"]) {
      assert.deepEqual(presentedCredential(header), { kind: "foreign" });
    }
    assert.deepEqual(presentedCredential(undefined), { kind: "none" });
    assert.deepEqual(presentedCredential(" "), { kind: "none" });
  });
});
