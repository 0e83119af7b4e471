import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { encodePktLine, FLUSH_PKT, ProtocolError, type ObjectFormat } from "../index.ts";
import {
  decodePushCertificate,
  decodeRefAdvertisement,
  decodeReportStatus,
  encodePushCertificate,
  encodeReceivePackRequest,
  encodeRefAdvertisement,
  encodeReportStatus,
  hasCapability,
  ReceivePackRequestDecoder,
  type PushReport,
  type ReceivePackRequest,
  type RefAdvertisement,
} from "./receive-pack.ts";

const A = "a".repeat(40);
const ZERO = "0".repeat(40);

const record = <T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true });
const word = fc.stringMatching(/^[a-z0-9/._=-]{1,20}$/);
/** Any Latin-1 text without the characters that end a line or a name. */
const text = fc.uint8Array({ minLength: 1, maxLength: 30 }).map((bytes) =>
  Buffer.from(bytes)
    .toString("latin1")
    .replaceAll(/[\0\n\r]/g, "x"),
);
const name = text.map((rest) => `refs/heads/${rest}`);
const format = fc.constantFrom<ObjectFormat>("sha1", "sha256");
const oidOf = (of: ObjectFormat): fc.Arbitrary<string> => {
  const length = of === "sha1" ? 20 : 32;
  return fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes) => Buffer.from(bytes).toString("hex"))
    .filter((oid) => !/^0+$/.test(oid));
};
const commandsOf = (of: ObjectFormat): fc.Arbitrary<ReceivePackRequest["commands"]> => {
  const value = fc.option(oidOf(of), { nil: undefined });
  return fc.array(record({ name, oldOid: value, newOid: value }), { minLength: 1, maxLength: 5 });
};

const certificateOf = (of: ObjectFormat): fc.Arbitrary<Buffer> =>
  record({
    pusher: text,
    pushee: fc.option(word, { nil: undefined }),
    nonce: fc.option(word, { nil: undefined }),
    pushOptions: fc.array(text, { maxLength: 2 }),
    commands: commandsOf(of),
    signature: fc.constantFrom("", "-----BEGIN SSH SIGNATURE-----\nabc\n-----END SSH SIGNATURE-----\n"),
  }).map((certificate) => {
    const encoded = encodePushCertificate(certificate, of);
    assert.deepEqual(decodePushCertificate(encoded), certificate);
    return encoded;
  });

const requestOf = (of: ObjectFormat): fc.Arbitrary<ReceivePackRequest> =>
  fc
    .record({
      commands: commandsOf(of),
      capabilities: fc.uniqueArray(word, { maxLength: 4 }),
      shallows: fc.array(oidOf(of), { maxLength: 3 }),
      pushOptions: fc.array(text, { maxLength: 3 }),
      certificate: fc.option(certificateOf(of), { nil: undefined }),
    })
    .map((made) => ({
      ...made,
      commands:
        made.certificate === undefined ? made.commands : decodePushCertificate(made.certificate).commands,
      capabilities: made.pushOptions.length > 0 ? [...made.capabilities, "push-options"] : made.capabilities,
    }));

function decode(bytes: Buffer, cuts: readonly number[] = [], maxBytes?: number) {
  const decoder = new ReceivePackRequestDecoder(maxBytes === undefined ? {} : { maxBytes });
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  for (const [at, start] of places.entries()) decoder.push(bytes.subarray(start, places[at + 1] ?? start));
  return decoder.end();
}

/** The packets of these payloads; an empty one is a flush-pkt. */
function packets(...payloads: readonly string[]): Buffer {
  return Buffer.concat(payloads.map((payload) => (payload === "" ? FLUSH_PKT : encodePktLine(payload))));
}

function codeOf(action: () => unknown): string {
  try {
    action();
    return "none";
  } catch (error) {
    assert.ok(error instanceof ProtocolError, String(error));
    return error.code;
  }
}

describe("ReceivePackRequestDecoder", () => {
  it("reads the output of the encoder at any chunk borders, and leaves the pack", () => {
    const parts = format.chain((of) =>
      fc.tuple(fc.constant(of), requestOf(of), fc.uint8Array(), fc.array(fc.nat(), { maxLength: 6 })),
    );
    fc.assert(
      fc.property(parts, ([of, request, pack, cuts]) => {
        const bytes = Buffer.concat([encodeReceivePackRequest(request, of), pack]);
        const found = decode(bytes, cuts);
        assert.deepEqual(found.request, request);
        assert.deepEqual(found.rest, Buffer.from(pack));
      }),
    );
  });

  it("reads a request of git 2.39, and a probe", () => {
    const { request } = decode(
      packets(
        `${ZERO} ${A} refs/heads/main\0 report-status-v2 side-band-64k object-format=sha1 agent=git/2.39.5`,
        "",
      ),
    );
    assert.deepEqual(request.commands, [{ name: "refs/heads/main", oldOid: undefined, newOid: A }]);
    assert.ok(hasCapability(request, "agent") && hasCapability(request, "side-band-64k"));
    assert.ok(!hasCapability(request, "report-status"));
    assert.deepEqual(decode(FLUSH_PKT).request.commands, []);
  });

  it("refuses malformed requests", () => {
    const command = `${ZERO} ${A} refs/heads/main`;
    const certified = [
      "push-cert\0 atomic",
      "certificate version 0.1\n",
      "pusher me\n",
      "\n",
      `${command}\n`,
    ];
    const rows: [string, Buffer, string][] = [
      ["nothing", Buffer.alloc(0), "truncated"],
      ["no flush-pkt", packets(command), "truncated"],
      ["half a packet", packets(command, "").subarray(0, 30), "truncated"],
      ["no end of the push options", packets(`${command}\0push-options`, "", "x"), "truncated"],
      ["a delim-pkt", Buffer.from("0001"), "unexpected_packet"],
      ["no length", Buffer.from("zzzz"), "bad_length"],
      ["one id", packets(`${A} refs/heads/main`, ""), "bad_line"],
      ["no name", packets(`${ZERO} ${A} `, ""), "bad_line"],
      ["no space", packets(`${ZERO} ${A}`, ""), "bad_line"],
      ["an id of capitals", packets(`${ZERO} ${A.toUpperCase()} refs/heads/x`, ""), "bad_line"],
      ["ids of two formats", packets(`${ZERO} ${"a".repeat(64)} refs/heads/x`, ""), "bad_line"],
      ["a short id", packets(`${ZERO} abc refs/heads/x`, ""), "bad_line"],
      ["capabilities twice", packets(`${command}\0 atomic`, `${command}\0 atomic`, ""), "bad_line"],
      ["a shallow line without an id", packets("shallow x", ""), "bad_line"],
      ["an empty line", packets("\n", ""), "bad_line"],
      ["an open certificate", packets(...certified, ""), "unexpected_packet"],
      [
        "a command besides a certificate",
        packets(...certified, "push-cert-end\n", command, ""),
        "bad_command",
      ],
      [
        "a certificate besides a command",
        packets(command, ...certified, "push-cert-end\n", ""),
        "bad_command",
      ],
      ["two certificates", packets(...certified, "push-cert-end", "push-cert", ""), "bad_command"],
      [
        "another certificate",
        packets("push-cert", "certificate version 9\n", "\n", "push-cert-end", ""),
        "bad_line",
      ],
      [
        "a certificate of nobody",
        packets("push-cert", "certificate version 0.1\n", "\n", "push-cert-end", ""),
        "bad_line",
      ],
      [
        "a certificate without an end of its header",
        packets("push-cert", "certificate version 0.1\n", "push-cert-end", ""),
        "bad_line",
      ],
    ];
    for (const [what, bytes, code] of rows)
      assert.equal(
        codeOf(() => decode(bytes)),
        code,
        what,
      );
  });

  it("refuses a request above its limit, also one without an end", () => {
    const line = encodePktLine(`${ZERO} ${A} refs/heads/main`);
    const many = Buffer.concat(Array.from({ length: 100 }, () => line));
    assert.equal(
      codeOf(() => decode(many, [], 99 * line.length)),
      "oversized",
    );
    assert.equal(
      codeOf(() => decode(many, [], 100 * line.length)),
      "truncated",
    );
  });

  it("fails with a ProtocolError only, for any damaged byte", () => {
    fc.assert(
      fc.property(
        format.chain((of) => fc.tuple(fc.constant(of), requestOf(of))),
        fc.nat(),
        fc.nat(255),
        ([of, request], at, byte) => {
          const bytes = encodeReceivePackRequest(request, of);
          bytes[at % bytes.length] = byte;
          codeOf(() => decode(bytes));
        },
      ),
    );
  });
});

describe("report-status", () => {
  const reportOf = (of: ObjectFormat): fc.Arbitrary<PushReport> => {
    const id = fc.oneof(oidOf(of), fc.constant(null));
    const words = text.map((each) => each.trim()).filter((each) => each !== "" && each !== "ok");
    const changed = fc.record(
      { name, oldOid: id, newOid: id, forced: fc.constant(true) },
      { requiredKeys: ["newOid"], noNullPrototype: true },
    );
    return record<PushReport>({
      unpackError: fc.option(words, { nil: undefined }),
      refs: fc.array(
        fc.oneof(
          record({ name }),
          record({ name: word.map((each) => `refs/${each}`), error: words }),
          record({ name, changed }),
        ),
        { maxLength: 5 },
      ),
    });
  };

  it("decodes to the report that was encoded, in both versions", () => {
    fc.assert(
      fc.property(
        format.chain((of) => fc.tuple(fc.constant(of), reportOf(of))),
        ([of, report]) => {
          assert.deepEqual(decodeReportStatus(encodeReportStatus(report, of)), report);
          const refs = report.refs.map((each) =>
            each.error === undefined ? { name: each.name } : { name: each.name, error: each.error },
          );
          assert.deepEqual(decodeReportStatus(encodeReportStatus(report, of, 1)), { ...report, refs });
        },
      ),
    );
  });

  it("keeps a reason on one line of a packet", () => {
    const error = `two\nlines ${"x".repeat(100_000)}`;
    const bytes = encodeReportStatus(
      { unpackError: undefined, refs: [{ name: "refs/heads/a", error }] },
      "sha1",
    );
    assert.match(decodeReportStatus(bytes).refs[0]!.error!, /^two lines x+$/);
  });

  it("refuses malformed reports", () => {
    const rows: [string, Buffer, string][] = [
      ["nothing", Buffer.alloc(0), "truncated"],
      ["no flush-pkt", packets("unpack ok\n"), "truncated"],
      ["no unpack line", packets("ok refs/heads/a\n", ""), "bad_line"],
      ["an empty report", packets(""), "bad_line"],
      ["a refusal without a reason", packets("unpack ok", "ng refs/heads/a", ""), "bad_line"],
      ["another word", packets("unpack ok", "maybe refs/heads/a", ""), "bad_line"],
      ["an option of nothing", packets("unpack ok", "option refname refs/heads/a", ""), "bad_line"],
      [
        "an option of a refusal",
        packets("unpack ok", "ng refs/heads/a no", "option forced-update", ""),
        "bad_line",
      ],
      [
        "an option without an id",
        packets("unpack ok", "ok refs/heads/a", "option new-oid x", ""),
        "bad_line",
      ],
      ["more bytes", Buffer.concat([packets("unpack ok", ""), Buffer.from("0000")]), "trailing_data"],
      ["a delim-pkt", Buffer.concat([packets("unpack ok"), Buffer.from("0001")]), "unexpected_packet"],
    ];
    for (const [what, bytes, code] of rows)
      assert.equal(
        codeOf(() => decodeReportStatus(bytes)),
        code,
        what,
      );
  });
});

describe("RefAdvertisement", () => {
  const advertisementOf = (of: ObjectFormat): fc.Arbitrary<RefAdvertisement> =>
    record<RefAdvertisement>({
      service: fc.option(fc.constant("git-receive-pack"), { nil: undefined }),
      refs: fc.array(record({ name, oid: oidOf(of) }), { maxLength: 4 }),
      capabilities: fc.array(word, { maxLength: 4 }),
      shallows: fc.array(oidOf(of), { maxLength: 2 }),
    });

  it("decodes to what was encoded", () => {
    fc.assert(
      fc.property(
        format.chain((of) => fc.tuple(fc.constant(of), advertisementOf(of))),
        ([of, advertisement]) => {
          assert.deepEqual(decodeRefAdvertisement(encodeRefAdvertisement(advertisement, of)), advertisement);
        },
      ),
    );
  });

  it("reads protocol v1, and refuses malformed advertisements", () => {
    const first = `${A} refs/heads/main\0atomic ofs-delta`;
    assert.deepEqual(decodeRefAdvertisement(packets("version 1", first, "")), {
      service: undefined,
      refs: [{ oid: A, name: "refs/heads/main" }],
      capabilities: ["atomic", "ofs-delta"],
      shallows: [],
    });
    const rows: [string, Buffer, string][] = [
      ["nothing", Buffer.alloc(0), "truncated"],
      ["no flush-pkt", packets(first), "truncated"],
      ["no flush-pkt after the service", packets("# service=x", first, ""), "unexpected_packet"],
      ["protocol v2", packets("version 2", "agent=x", ""), "bad_line"],
      ["no id", packets(first, "x refs/heads/a", ""), "bad_line"],
      ["no name", packets(first, `${A} `, ""), "bad_line"],
      ["capabilities twice", packets(first, first, ""), "bad_line"],
      ["an error", packets("ERR no"), "remote_error"],
      ["more bytes", packets(first, "", ""), "trailing_data"],
    ];
    for (const [what, bytes, code] of rows)
      assert.equal(
        codeOf(() => decodeRefAdvertisement(bytes)),
        code,
        what,
      );
  });
});
