import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { assertSurvivesDamage, assertThrowsCode } from "../test/malformed.test-kit.ts";
import {
  WireWriter,
  decodeUserauthRequest,
  describeSignedData,
  encodeUserauthRequest,
  type SshErrorCode,
  type UserauthRequest,
} from "./index.ts";

const bytes = fc.uint8Array({ maxLength: 80 }).map((value) => Buffer.from(value));
const request: fc.Arbitrary<UserauthRequest> = fc.record(
  {
    sessionId: bytes,
    user: fc.string(),
    algorithm: fc.constantFrom("ssh-ed25519", "rsa-sha2-512"),
    publicKey: bytes,
    hostKey: fc.option(bytes, { nil: undefined }),
  },
  { noNullPrototype: true },
);

describe("login requests that a key signs", () => {
  it("gives back both methods as they were encoded, and recognises them", () => {
    fc.assert(
      fc.property(request, (value) => {
        const encoded = encodeUserauthRequest(value);
        assert.deepEqual(decodeUserauthRequest(encoded), value);
        assert.deepEqual(describeSignedData(encoded), { kind: "userauth", request: value });
      }),
    );
  });

  it("refuses other data with the code that names the fault", () => {
    const made = ({
      message = 50,
      service = "ssh-connection",
      method = "publickey",
      flag = 1,
      end = "",
    }): Buffer =>
      new WireWriter()
        .string("session")
        .byte(message)
        .string("alice")
        .string(service)
        .string(method)
        .byte(flag)
        .string("ssh-ed25519")
        .string("key")
        .raw(Buffer.from(end))
        .bytes();
    const table: readonly [string, Buffer, SshErrorCode][] = [
      ["empty", Buffer.alloc(0), "truncated"],
      ["another message", made({ message: 51 }), "bad_value"],
      ["another service", made({ service: "ssh-userauth" }), "bad_value"],
      ["another method", made({ method: "hostbased" }), "unsupported"],
      ["no signature follows", made({ flag: 0 }), "bad_value"],
      ["an odd flag", made({ flag: 2 }), "bad_value"],
      ["host key with the plain method", made({ end: "\0\0\0\0" }), "trailing_data"],
      ["no host key", made({ method: "publickey-hostbound-v00@openssh.com" }), "truncated"],
    ];
    for (const [name, data, code] of table) {
      assertThrowsCode(() => decodeUserauthRequest(data), code, name);
      assert.deepEqual(describeSignedData(data), { kind: "unknown" }, name);
    }
    assert.equal(decodeUserauthRequest(made({})).user, "alice");
  });

  it("ends with a request or the package's error for damaged data", () => {
    const sound = encodeUserauthRequest({
      sessionId: Buffer.alloc(32, 1),
      user: "alice",
      algorithm: "ssh-ed25519",
      publicKey: Buffer.alloc(51, 2),
      hostKey: Buffer.alloc(51, 3),
    });
    assertSurvivesDamage(sound, (data) => decodeUserauthRequest(data));
    assertSurvivesDamage(sound, (data) => assert.ok(describeSignedData(data).kind !== "sshsig"));
  });
});
