import assert from "node:assert/strict";
import { createHash, createHmac, hash } from "node:crypto";
import { describe, it } from "node:test";
import { SignatureV4 } from "@smithy/signature-v4";
import fc from "fast-check";
import { Secret } from "@devplat/base";
import { testSeed } from "@devplat/testkit";
import { checkKey, encodeComponent, encodeKey } from "./object-key.ts";
import { EMPTY_SHA256, RequestSigner } from "./request-signer.ts";
import { S3Address } from "./s3-address.ts";

const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const credentials = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: new Secret(SECRET),
  sessionToken: undefined,
};
const AT = Date.UTC(2026, 10, 24, 1, 2, 3);

/** SHA-256 in the form that AWS's own signer expects. */
class Sha256 {
  readonly #hash;
  constructor(key?: string | Uint8Array) {
    this.#hash = key === undefined ? createHash("sha256") : createHmac("sha256", key);
  }
  update(data: string | Uint8Array): void {
    this.#hash.update(data);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
}

/** Authorization header of AWS's own signer for the same request. */
async function reference(path: string, query: Record<string, string>, headers: Record<string, string>) {
  const signer = new SignatureV4({
    credentials: { accessKeyId: credentials.accessKeyId, secretAccessKey: SECRET },
    region: "eu-west-3",
    service: "s3",
    sha256: Sha256 as never,
    // S3 encodes a path once.
    uriEscapePath: false,
    applyChecksum: false,
  });
  const signed = await signer.sign(
    {
      method: "PUT",
      protocol: "https:",
      hostname: "s3.eu-west-3.amazonaws.com",
      path,
      query,
      headers,
    } as never,
    { signingDate: new Date(AT) },
  );
  return (signed as unknown as { headers: Record<string, string> }).headers["authorization"];
}

const key = fc
  .array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 })
  .map((segments) => segments.join("/"))
  .filter((each) => {
    try {
      checkKey(each);
      return true;
    } catch {
      return false;
    }
  });
const odd = fc.constantFrom(
  " ",
  "+",
  "%",
  "%2F",
  "a+b c",
  ".hidden",
  "~",
  "!'()*",
  "é",
  "日本/🙂",
  "a&b=c;d",
  "?x#y",
  "\\",
  "|^`{}[]",
  "@:,$",
);

describe("RequestSigner", () => {
  const address = new S3Address({ bucket: "tests", region: "eu-west-3", pathStyle: true });

  it("signs every name and query as AWS's own signer does", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(key, odd),
        fc.dictionary(fc.constantFrom("prefix", "uploadId", "max-keys", "list-type"), fc.oneof(key, odd)),
        async (name, query) => {
          const signer = new RequestSigner("eu-west-3");
          const payloadSha256 = hash("sha256", name);
          const condition = { "if-match": '"e"' };
          const url = address.url(name, query);
          const headers = await signer.sign(
            { method: "PUT", url, headers: condition, payloadSha256 },
            credentials,
            AT,
          );
          const expected = await reference(`/tests/${encodeKey(name)}`, query, {
            ...condition,
            host: "s3.eu-west-3.amazonaws.com",
            "x-amz-content-sha256": payloadSha256,
          });
          assert.equal(headers["authorization"], expected);
        },
      ),
      { seed: testSeed(), numRuns: 300 },
    );
  });

  it("a name keeps its path through URL parsing, and decodes to itself", () => {
    fc.assert(
      fc.property(fc.oneof(key, odd), (name) => {
        const { pathname } = new URL(address.url(name));
        assert.equal(pathname, `/tests/${encodeKey(name)}`);
        assert.equal(decodeURIComponent(pathname).slice("/tests/".length), name);
        assert.match(pathname, /^[A-Za-z0-9\-._~%/]*$/);
      }),
      { seed: testSeed(), numRuns: 500 },
    );
    assert.equal(encodeComponent("a/b"), "a%2Fb");
  });

  it("sends the session token, and no header that shows a secret", async () => {
    const signer = new RequestSigner("eu-west-3");
    const temporary = { ...credentials, sessionToken: new Secret("token") };
    const request = {
      method: "GET",
      url: address.url("a"),
      headers: {},
      payloadSha256: EMPTY_SHA256,
    } as const;
    const headers = await signer.sign(request, temporary, AT);
    assert.equal(headers["x-amz-security-token"], "token");
    assert.match(
      headers["authorization"] ?? "",
      /SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token/,
    );
    assert.ok(!JSON.stringify(headers).includes(SECRET));
    assert.ok(!JSON.stringify([temporary, signer]).includes(SECRET));
  });

  it("uses new keys for another day, secret or region", async () => {
    const signer = new RequestSigner("eu-west-3");
    const request = {
      method: "GET",
      url: address.url("a"),
      headers: {},
      payloadSha256: EMPTY_SHA256,
    } as const;
    const sign = async (by: RequestSigner, given: typeof credentials, at: number) =>
      (await by.sign(request, given, at))["authorization"];
    const first = await sign(signer, credentials, AT);
    const others = [
      await sign(signer, { ...credentials, secretAccessKey: new Secret("other") }, AT),
      await sign(signer, credentials, AT + 86_400_000),
      await sign(new RequestSigner("eu-west-1"), credentials, AT),
    ];
    assert.equal(new Set([first, ...others]).size, 4);
    assert.equal(await sign(signer, credentials, AT), first);
  });
});

describe("S3Address", () => {
  it("puts the bucket into the path or the host name", () => {
    const url = (settings: Partial<ConstructorParameters<typeof S3Address>[0]>): string =>
      new S3Address({ bucket: "b-1.x", ...settings }).url("k y", { b: "1", a: "" });
    assert.equal(url({ region: "eu-west-3" }), "https://b-1.x.s3.eu-west-3.amazonaws.com/k%20y?a=&b=1");
    assert.equal(url({ endpoint: "http://127.0.0.1:9000" }), "http://127.0.0.1:9000/b-1.x/k%20y?a=&b=1");
    assert.equal(
      url({ endpoint: "https://s3.example/", pathStyle: false }),
      "https://b-1.x.s3.example/k%20y?a=&b=1",
    );
    assert.equal(url({ endpoint: "http://[::1]:9000" }), "http://[::1]:9000/b-1.x/k%20y?a=&b=1");
  });

  it("refuses settings that lead elsewhere", () => {
    const refused = [
      { bucket: "a/b" },
      { bucket: "A" },
      { bucket: "" },
      { region: "x.evil.example/" },
      { endpoint: "ftp://s3.example" },
      { endpoint: "https://s3.example/path" },
      { endpoint: "https://user@s3.example" },
      { endpoint: "https://s3.example?x" },
      { endpoint: "no address" },
      { endpoint: "http://127.0.0.1:9000", pathStyle: false },
    ];
    for (const settings of refused) {
      assert.throws(
        () => new S3Address({ bucket: "tests", ...settings }),
        /Cannot use/,
        JSON.stringify(settings),
      );
    }
  });
});
