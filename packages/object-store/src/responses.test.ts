import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { testSeed } from "@devplat/testkit";
import { ObjectStoreError } from "./errors.ts";
import { faultWith } from "./object-store.test-kit.ts";
import {
  readCompletion,
  readContentRange,
  readEtag,
  readFault,
  readHttpDate,
  readObjectInfo,
  readObjectPage,
  readUploadId,
  readUploadMarkers,
  readUploadPage,
} from "./responses.ts";

const damaged = faultWith("damaged");
const entry = "<Contents><Key>a</Key><ETag>&quot;e&quot;</ETag><Size>1</Size></Contents>";
const page = (content: string): string => `<ListBucketResult>${content}</ListBucketResult>`;

/** Documents that no reader may take for a response. */
const MALFORMED: Readonly<Record<string, string>> = {
  "an empty body": "",
  "white space": " \n ",
  text: "gateway error",
  "HTML of a proxy": "<!DOCTYPE html><html><body>Bad gateway<br></body></html>",
  "a document type": '<!DOCTYPE a [<!ENTITY x "y">]><ListBucketResult/>',
  "another root": "<Other/>",
  "two roots": "<ListBucketResult/><ListBucketResult/>",
  "an end in the middle": "<ListBucketResult><Contents><Key>a",
  "a wrong end": "<ListBucketResult></Contents>",
  "an unknown entity": page("<Contents><Key>&x;</Key><ETag>e</ETag><Size>1</Size></Contents>"),
  "a NUL": `${page("")}\u0000`,
  "an attribute without quotes": "<ListBucketResult a=b></ListBucketResult>",
};

describe("XML of responses", () => {
  for (const [title, text] of Object.entries(MALFORMED)) {
    it(`${title} is damaged for every reader, and not an error document`, () => {
      for (const read of [readObjectPage, readUploadPage, readUploadId, readCompletion]) {
        assert.throws(() => read(text), damaged);
      }
      assert.deepEqual(readFault(text), { code: undefined, region: undefined });
    });
  }

  it("a list of objects is read with and without encoding, namespace and quotes", () => {
    const listed = { key: "a b", etag: '"e"', length: 5, lastModified: Date.UTC(2026, 0, 2, 3, 4, 5) };
    const members = "<ETag>e</ETag><Size>5</Size><LastModified>2026-01-02T03:04:05.000Z</LastModified>";
    const plain = page(`<Contents><Key>a b</Key>${members}</Contents>`);
    assert.deepEqual(readObjectPage(plain), { entries: [listed], next: undefined });
    const encoded = `\n <?xml version="1.0"?><s:ListBucketResult xmlns:s="urn:x"><s:EncodingType>url</s:EncodingType>
      <s:IsTruncated>true</s:IsTruncated><s:NextContinuationToken>t</s:NextContinuationToken>
      ${`<Contents><Key>a+b%2B</Key>${members}</Contents>`.replaceAll(/<(\/?)/g, "<$1s:")}</s:ListBucketResult>`;
    assert.deepEqual(readObjectPage(encoded), { entries: [{ ...listed, key: "a b+" }], next: "t" });
  });

  for (const [title, content] of Object.entries({
    "an entry without a name": "<Contents><ETag>e</ETag><Size>1</Size></Contents>",
    "an entry with two names": "<Contents><Key>a</Key><Key>b</Key><ETag>e</ETag><Size>1</Size></Contents>",
    "elements in a name": "<Contents><Key><b/></Key><ETag>e</ETag><Size>1</Size></Contents>",
    "an entry without an ETag": "<Contents><Key>a</Key><Size>1</Size></Contents>",
    "an ETag with a line break": "<Contents><Key>a</Key><ETag>e\nf</ETag><Size>1</Size></Contents>",
    "a negative length": "<Contents><Key>a</Key><ETag>e</ETag><Size>-1</Size></Contents>",
    "a length in another notation": "<Contents><Key>a</Key><ETag>e</ETag><Size>1e3</Size></Contents>",
    "a length beyond every object": `<Contents><Key>a</Key><ETag>e</ETag><Size>${"9".repeat(16)}</Size></Contents>`,
    "a truncated page without a token": `${entry}<IsTruncated>true</IsTruncated>`,
    "an IsTruncated that is not a boolean": `${entry}<IsTruncated>maybe</IsTruncated>`,
    "a name that is not percent-encoded": `<EncodingType>url</EncodingType>${entry.replace(">a<", ">%zz<")}`,
    "a name that is not UTF-8": `<EncodingType>url</EncodingType>${entry.replace(">a<", ">%ff<")}`,
  })) {
    it(`a list of objects with ${title} is damaged`, () => {
      assert.throws(() => readObjectPage(page(content)), damaged);
    });
  }

  it("a list of uploads gives markers for the next page", () => {
    const upload =
      "<Upload><Key>a</Key><UploadId>u</UploadId><Initiated>2026-01-02T03:04:05Z</Initiated></Upload>";
    const list = (content: string): string =>
      `<ListMultipartUploadsResult>${content}</ListMultipartUploadsResult>`;
    const entries = [{ key: "a", uploadId: "u", startedAt: Date.UTC(2026, 0, 2, 3, 4, 5) }];
    assert.deepEqual(readUploadPage(list(upload)), { entries, next: undefined });
    const more =
      "<IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>";
    const { next } = readUploadPage(list(upload + more));
    assert.deepEqual(readUploadMarkers(next ?? ""), ["a", "u"]);
    assert.throws(() => readUploadPage(list("<IsTruncated>true</IsTruncated>")), damaged);
    assert.throws(() => readUploadPage(list("<Upload><Key>a</Key></Upload>")), damaged);
    for (const text of ["", "a", "[]", '["a"]', "[1,2]", '["a","b","c"]', "null"]) {
      assert.throws(() => readUploadMarkers(text), damaged);
    }
  });

  it("a completion with status 200 can be an error document", () => {
    const done =
      "<CompleteMultipartUploadResult><ETag>&quot;e-2&quot;</ETag></CompleteMultipartUploadResult>";
    assert.deepEqual(readCompletion(` \n${done}`), { etag: '"e-2"' });
    assert.deepEqual(readCompletion("<Error><Code>InternalError</Code></Error>"), {
      fault: { code: "InternalError", region: undefined },
    });
    assert.throws(() => readCompletion("<CompleteMultipartUploadResult/>"), damaged);
    assert.throws(
      () => readUploadId("<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>"),
      damaged,
    );
  });

  it("an error document gives only plain codes and regions", () => {
    const fault = readFault("<Error><Code>PermanentRedirect</Code><Region>eu-west-1</Region></Error>");
    assert.deepEqual(fault, { code: "PermanentRedirect", region: "eu-west-1" });
    assert.equal(
      readFault("<ErrorResponse><Error><Code>SlowDown</Code></Error></ErrorResponse>").code,
      "SlowDown",
    );
    assert.equal(readFault("<Error><Code>\u001b[31m red</Code></Error>").code, undefined);
    assert.equal(readFault(`<Error><Code>${"x".repeat(65)}</Code></Error>`).code, undefined);
    assert.equal(readFault("<Error><Code>A</Code><Code>B</Code></Error>").code, undefined);
  });

  it("no bytes make a reader fail in another way than damaged", () => {
    const parts = fc.constantFrom(
      "<",
      ">",
      "/",
      "&",
      ";",
      '"',
      "Key",
      "Contents",
      "ListBucketResult",
      "Error",
      "<Key>",
      "</Key>",
      "<![CDATA[",
      "]]>",
      "<!--",
      "<?",
      "\u0000",
      "é",
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(parts).map((each) => `<ListBucketResult>${each.join("")}`),
    );
    fc.assert(
      fc.property(text, (body) => {
        readFault(body);
        for (const read of [readObjectPage, readUploadPage, readUploadId, readCompletion]) {
          try {
            read(body);
          } catch (error) {
            assert.ok(error instanceof ObjectStoreError && error.code === "damaged", String(error));
          }
        }
      }),
      { seed: testSeed(), numRuns: 500 },
    );
  });
});

describe("headers of responses", () => {
  const headers = { etag: '"e"', "content-length": "7", "last-modified": "Fri, 02 Jan 2026 03:04:05 GMT" };

  it("ETag, length and time of an object are read", () => {
    const lastModified = Date.UTC(2026, 0, 2, 3, 4, 5);
    assert.deepEqual(readObjectInfo(headers), { etag: '"e"', length: 7, lastModified });
    assert.equal(readEtag({ etag: "e" }), '"e"');
    assert.equal(readEtag({ etag: 'W/"e"' }), 'W/"e"');
  });

  for (const [title, change] of Object.entries({
    "no ETag": { etag: undefined },
    "an empty ETag": { etag: "" },
    "an ETag with a space": { etag: '"a b"' },
    "two ETags": { etag: ['"a"', '"b"'] },
    "no length": { "content-length": undefined },
    "two lengths": { "content-length": ["1", "2"] },
    "a length that is not a number": { "content-length": "0x10" },
    "a negative length": { "content-length": "-1" },
  })) {
    it(`an object with ${title} is damaged`, () => {
      assert.throws(() => readObjectInfo({ ...headers, ...change }), damaged);
    });
  }

  it("a Content-Range is read, and everything else is damaged", () => {
    assert.deepEqual(readContentRange({ "content-range": "bytes 2-5/10" }), { first: 2, last: 5, total: 10 });
    for (const text of [
      "",
      "2-5/10",
      "bytes 5-2/10",
      "bytes 2-10/10",
      "bytes 2-5/*",
      "bytes */10",
      "bytes 2-5/10, 7-8/10",
      "bytes  2-5/10",
      "items 2-5/10",
    ]) {
      assert.throws(() => readContentRange({ "content-range": text }), damaged, text);
    }
    assert.throws(() => readContentRange({}), damaged);
    assert.throws(() => readContentRange({ "content-range": ["bytes 2-5/10", "bytes 2-5/10"] }), damaged);
  });

  it("a date that is not one of HTTP is ignored", () => {
    assert.equal(readHttpDate("Fri, 02 Jan 2026 03:04:05 GMT"), Date.UTC(2026, 0, 2, 3, 4, 5));
    for (const text of [
      "",
      "now",
      "2026-01-02T03:04:05Z",
      "Fri, 02 Jan 2026 03:04:05",
      "Fri, 99 Jan 2026 03:04:05 GMT",
      "Fri, 02 Foo 2026 03:04:05 GMT",
    ]) {
      assert.equal(readHttpDate(text), undefined, text);
    }
    assert.equal(readHttpDate(undefined), undefined);
  });
});
