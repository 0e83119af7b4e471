import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  DELIM_PKT,
  FETCH_SECTIONS,
  FLUSH_PKT,
  FetchResponseWalker,
  LsRefsFraming,
  MAX_COMMANDS_PER_BODY,
  MAX_PAYLOAD_BYTES,
  PktLineReader,
  ProtocolError,
  RESPONSE_END_PKT,
  SIDE_BAND,
  EMPTY_FETCH,
  canonicalFetchArgs,
  commandArgs,
  decodeCapabilityAdvertisement,
  decodeCommandBody,
  decodeCommandBodySteps,
  decodeCommandHead,
  decodeFetchRequest,
  decodeLsRefsRequest,
  decodeLsRefsResponse,
  decodePktLine,
  decodeSideBand,
  encodeCapabilityAdvertisement,
  encodeCommandRequest,
  encodeErrorLine,
  encodeFetchRequest,
  encodeFetchResponse,
  encodeLsRefsRequest,
  encodeLsRefsResponse,
  encodePktLine,
  encodeSideBand,
  encodeSideBandError,
  finish,
  requestObjectFormat,
  requestedProtocolVersion,
  type CommandRequest,
  type EncodedCommand,
  type ProtocolErrorCode,
} from "./index.ts";

/** Plain objects, so that deepEqual can compare them with the results of the decoders. */
const record = <T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true });

const latin1 = (options: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength: 40, ...options }).map((bytes) => Buffer.from(bytes).toString("latin1"));
/** Text of a line, without a final line feed, because decoding drops it. */
const line = latin1({ minLength: 1 }).filter((text) => !text.endsWith("\n"));
const word = fc.stringMatching(/^[a-z0-9/._-]{1,20}$/);
const oid = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes) => Buffer.from(bytes).toString("hex"));

const assertThrowsCode = (action: () => unknown, code: ProtocolErrorCode): void => {
  assert.throws(action, (error: unknown) => error instanceof ProtocolError && error.code === code);
};

/** Cuts bytes at random places. */
const chunksOf = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
};

test("decodePktLine reads the output of encodePktLine, at any chunk borders", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (payloads, cuts) => {
        const bytes = Buffer.concat(payloads.map((payload) => encodePktLine(payload)));
        const reader = new PktLineReader();
        const found: Buffer[] = [];
        for (const chunk of chunksOf(bytes, cuts)) {
          reader.push(chunk);
          for (let next = reader.next(); next.state === "complete"; next = reader.next()) {
            assert.equal(next.line.kind, "data");
            if (next.line.kind === "data") found.push(Buffer.from(next.line.payload));
          }
        }
        assert.deepEqual(
          found,
          payloads.map((payload) => Buffer.from(payload)),
        );
        assert.equal(reader.pending, 0);
        assert.equal(reader.consumed, bytes.length);
      },
    ),
  );
});

test("decodePktLine distinguishes flush, delim, response-end, empty and incomplete", () => {
  const kinds = ["0000", "0001", "0002", "0004"].map((text) => {
    const decoding = decodePktLine(Buffer.from(text));
    return decoding.state === "complete" ? decoding.line.kind : decoding.state;
  });
  assert.deepEqual(kinds, ["flush", "delim", "response-end", "data"]);
  assert.deepEqual(decodePktLine(Buffer.from("00")), { state: "incomplete", missing: 2 });
  assert.deepEqual(decodePktLine(Buffer.from("0008ab")), { state: "incomplete", missing: 2 });
});

test("decodePktLine refuses malformed lengths", () => {
  const table: readonly [string, ProtocolErrorCode][] = [
    ["0003", "bad_length"],
    ["zzzz", "bad_length"],
    ["-001", "bad_length"],
    ["0x10", "bad_length"],
    [" 010", "bad_length"],
    ["fff1", "oversized"],
    ["ffff", "oversized"],
  ];
  for (const [text, code] of table) {
    const decoding = decodePktLine(Buffer.from(`${text}aaaa`));
    assert.equal(decoding.state === "error" ? decoding.error.code : decoding.state, code, text);
  }
});

test("encodePktLine accepts the longest payload and refuses one byte more", () => {
  assert.equal(encodePktLine(Buffer.alloc(MAX_PAYLOAD_BYTES)).toString("latin1", 0, 4), "fff0");
  assertThrowsCode(() => encodePktLine(Buffer.alloc(MAX_PAYLOAD_BYTES + 1)), "oversized");
});

test("side-band data of any length is decoded completely, from packets of valid size", () => {
  for (const length of [1, 65_515, 65_516, 200_000]) {
    const data = Buffer.alloc(length, "x");
    const reader = new PktLineReader();
    reader.push(encodeSideBand(SIDE_BAND.pack, data));
    const parts: Buffer[] = [];
    for (let next = reader.next(); next.state === "complete"; next = reader.next()) {
      assert.ok(next.line.kind === "data");
      const packet = decodeSideBand(next.line.payload);
      assert.equal(packet.channel, SIDE_BAND.pack);
      parts.push(packet.data);
    }
    assert.deepEqual(Buffer.concat(parts), data);
  }
  assertThrowsCode(() => decodeSideBand(Buffer.alloc(0)), "bad_side_band");
  assertThrowsCode(() => decodeSideBand(Buffer.from([4])), "bad_side_band");
});

const commandRequest = record({
  command: word,
  capabilities: fc.array(
    line.filter((text) => !text.startsWith("command=")),
    { maxLength: 4 },
  ),
  args: fc.array(line, { maxLength: 6 }),
});

test("decodeCommandBody splits a body into exactly the requests that were encoded", () => {
  fc.assert(
    fc.property(
      fc.array(commandRequest, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      (requests, endFlush) => {
        const encoded = requests.map((request) => encodeCommandRequest(request));
        const body = decodeCommandBody(Buffer.concat([...encoded, ...(endFlush ? [FLUSH_PKT] : [])]));
        assert.ok(body.kind === "commands");
        assert.deepEqual(
          body.commands.map((command) => command.request),
          requests,
        );
        assert.deepEqual(
          body.commands.map((command) => Buffer.from(command.bytes)),
          encoded,
        );
      },
    ),
  );
});

test("decodeCommandBody reads a leading flush-pkt as a probe, before any other bytes", () => {
  const request = encodeCommandRequest({ command: "fetch", capabilities: [], args: [] });
  assert.equal(decodeCommandBody(FLUSH_PKT).kind, "probe");
  assert.equal(decodeCommandBody(Buffer.concat([FLUSH_PKT, request])).kind, "probe");
});

test("decodeCommandBody refuses malformed bodies", () => {
  const fetch = encodeCommandRequest({ command: "fetch", capabilities: [], args: ["done"] });
  const command = encodePktLine("command=fetch\n");
  const table: readonly [string, Buffer, ProtocolErrorCode][] = [
    ["empty", Buffer.alloc(0), "truncated"],
    ["no flush-pkt", fetch.subarray(0, -4), "truncated"],
    ["cut in a length", fetch.subarray(0, 2), "truncated"],
    ["cut in a payload", fetch.subarray(0, 10), "truncated"],
    ["no pkt-line", Buffer.from("GET / HTTP/1.1"), "bad_length"],
    ["no command", Buffer.concat([encodePktLine("agent=x"), FLUSH_PKT]), "bad_command"],
    ["empty command", Buffer.concat([encodePktLine("command=\n"), FLUSH_PKT]), "bad_command"],
    ["two commands in one", Buffer.concat([command, command, FLUSH_PKT]), "bad_command"],
    ["two delims", Buffer.concat([command, DELIM_PKT, DELIM_PKT, FLUSH_PKT]), "unexpected_packet"],
    ["response-end", Buffer.concat([command, RESPONSE_END_PKT, FLUSH_PKT]), "unexpected_packet"],
    ["bytes after the end", Buffer.concat([fetch, FLUSH_PKT, fetch]), "unexpected_packet"],
    ["oversized", Buffer.concat([command, Buffer.from("ffff")]), "oversized"],
    ["too many", Buffer.concat(Array(MAX_COMMANDS_PER_BODY + 1).fill(fetch)), "too_many_commands"],
  ];
  for (const [name, body, code] of table) {
    assert.throws(
      () => decodeCommandBody(body),
      (error: unknown) => error instanceof ProtocolError && error.code === code,
      name,
    );
  }
});

test("decodeCommandBodySteps equals decodeCommandBody, also at each read of args", () => {
  const args = Array.from({ length: 5000 }, (_, at) => `have ${at.toString(16).padStart(40, "0")}`);
  const request = { command: "fetch", capabilities: ["agent=x", "object-format=sha1"], args };
  const body = Buffer.concat([encodeCommandRequest({ ...request, args: [] }), encodeCommandRequest(request)]);
  const whole = decodeCommandBody(body);
  const steps = decodeCommandBodySteps(body);
  assert.equal(steps.next().done, false, "it pauses");
  const sliced = finish(steps);
  assert.ok(whole.kind === "commands" && sliced.kind === "commands");
  for (const [at, command] of sliced.commands.entries()) {
    const expected: EncodedCommand | undefined = whole.commands[at];
    assert.ok(expected !== undefined);
    assert.deepEqual([...commandArgs(command)], expected.request.args);
    assert.deepEqual(command.request.args, expected.request.args);
    assert.equal(command.request.command, expected.request.command);
    assert.deepEqual(command.request.capabilities, expected.request.capabilities);
    assert.deepEqual(command.bytes, expected.bytes);
  }
  const broken = Buffer.concat([body.subarray(0, -4), Buffer.from("zzzz")]);
  assert.throws(() => finish(decodeCommandBodySteps(broken)), { code: "bad_length" });
});

test("decodeCommandHead gives command and capabilities as soon as they are complete", () => {
  const request = { command: "fetch", capabilities: ["agent=x", "server-option=y"], args: ["done"] };
  const body = encodeCommandRequest(request);
  const known = body.indexOf(DELIM_PKT) + DELIM_PKT.length;
  for (let length = 0; length <= body.length; length++) {
    const head = decodeCommandHead(body.subarray(0, length));
    assert.equal(head.kind, length < known ? "incomplete" : "request", `${length}`);
    if (head.kind === "request") {
      assert.equal(head.request.command, "fetch");
      assert.deepEqual(head.request.capabilities, request.capabilities);
    }
  }
  assert.equal(decodeCommandHead(FLUSH_PKT).kind, "probe");
  assert.equal(decodeCommandHead(Buffer.from("0014command=ls-refs\n0000")).kind, "request");
  assert.throws(() => decodeCommandHead(Buffer.from("zzzz")), { code: "bad_length" });
  assert.throws(() => decodeCommandHead(Buffer.from("000cagent=x\n0001")), { code: "bad_command" });
});

test("decodeCommandBody never throws anything but a ProtocolError", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        decodeCommandBody(Buffer.from(bytes));
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    }),
  );
});

test("requestObjectFormat is SHA-1 by default, and undefined if unknown or ambiguous", () => {
  const of = (...capabilities: string[]): CommandRequest => ({ command: "fetch", capabilities, args: [] });
  assert.equal(requestObjectFormat(of("agent=git/2")), "sha1");
  assert.equal(requestObjectFormat(of("object-format=sha256")), "sha256");
  assert.equal(requestObjectFormat(of("object-format=sha512")), undefined);
  assert.equal(requestObjectFormat(of("object-format=sha1", "object-format=sha256")), undefined);
});

test("an encoded ls-refs request is decoded to the same request", () => {
  const request = record({
    symrefs: fc.boolean(),
    peel: fc.boolean(),
    unborn: fc.boolean(),
    refPrefixes: fc.array(word),
    unknown: fc.array(word.map((text) => `x-${text}`)),
  });
  fc.assert(
    fc.property(request, (refs) => {
      const encoded = encodeLsRefsRequest(refs, ["object-format=sha1"]);
      assert.deepEqual(decodeLsRefsRequest(encoded), refs);
    }),
  );
});

test("an encoded ls-refs response decodes equal, and is complete at its last byte", () => {
  const ref = record({
    oid: fc.option(oid, { nil: undefined }),
    name: word,
    symrefTarget: fc.option(word, { nil: undefined }),
    peeled: fc.option(oid, { nil: undefined }),
    unknown: fc.constant([]),
  });
  fc.assert(
    fc.property(fc.array(ref, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 6 }), (refs, cuts) => {
      const bytes = encodeLsRefsResponse(refs);
      assert.deepEqual(decodeLsRefsResponse(bytes), refs);
      const framing = new LsRefsFraming();
      for (const chunk of chunksOf(bytes.subarray(0, -1), cuts)) framing.push(chunk);
      assert.equal(framing.complete, false);
      framing.push(bytes.subarray(-1));
      assert.equal(framing.complete, true);
    }),
  );
});

test("an ls-refs response with ERR, invalid bytes, or trailing bytes is refused", () => {
  const whole = encodeLsRefsResponse([]);
  const table: readonly [Buffer, ProtocolErrorCode][] = [
    [encodeErrorLine("no"), "remote_error"],
    [Buffer.from("<html>not git</html>"), "bad_length"],
    [Buffer.concat([whole, whole]), "trailing_data"],
    [Buffer.concat([DELIM_PKT, whole]), "unexpected_packet"],
  ];
  for (const [bytes, code] of table) {
    assertThrowsCode(() => new LsRefsFraming().push(bytes), code);
    assertThrowsCode(() => decodeLsRefsResponse(bytes), code);
  }
  assertThrowsCode(() => decodeLsRefsResponse(Buffer.alloc(0)), "truncated");
  assertThrowsCode(
    () => decodeLsRefsResponse(Buffer.concat([encodePktLine("nonsense"), FLUSH_PKT])),
    "bad_line",
  );
});

const fetchRequest = record({
  wants: fc.uniqueArray(oid, { maxLength: 4 }).map((oids) => oids.toSorted()),
  haves: fc.uniqueArray(oid, { maxLength: 4 }).map((oids) => oids.toSorted()),
  shallows: fc.uniqueArray(oid, { maxLength: 2 }).map((oids) => oids.toSorted()),
  wantRefs: fc.uniqueArray(word, { maxLength: 2 }).map((names) => names.toSorted()),
  deepenNots: fc.uniqueArray(word, { maxLength: 2 }).map((names) => names.toSorted()),
  done: fc.boolean(),
  thinPack: fc.boolean(),
  noProgress: fc.boolean(),
  includeTag: fc.boolean(),
  ofsDelta: fc.boolean(),
  deepenRelative: fc.boolean(),
  sidebandAll: fc.boolean(),
  waitForDone: fc.boolean(),
  deepen: fc.option(fc.nat(), { nil: undefined }),
  deepenSince: fc.option(fc.nat(), { nil: undefined }),
  filter: fc.option(word, { nil: undefined }),
  packfileUris: fc.option(word, { nil: undefined }),
  unknown: fc.array(word.map((text) => `x-${text} y`)),
});

test("an encoded fetch request is decoded to the same request", () => {
  fc.assert(
    fc.property(fetchRequest, (fetch) => {
      assert.deepEqual(decodeFetchRequest(encodeFetchRequest(fetch, []), "sha1"), fetch);
    }),
  );
});

test("canonicalFetchArgs ignores the order of known arguments, and duplicates", () => {
  fc.assert(
    fc.property(fetchRequest, fc.infiniteStream(fc.nat()), (fetch, random) => {
      const known = canonicalFetchArgs({ ...fetch, unknown: [] });
      const lists = known.filter((arg) => /^(?:want|have|shallow|done|thin-pack)\b/.test(arg));
      const shuffled = [...known, ...lists]
        .map((arg) => ({ arg, rank: Number(random.next().value) }))
        .toSorted((a, b) => a.rank - b.rank)
        .map(({ arg }) => arg);
      const again = decodeFetchRequest({ command: "fetch", capabilities: [], args: shuffled }, "sha1");
      assert.deepEqual(canonicalFetchArgs(again), known);
    }),
  );
});

test("canonicalFetchArgs sorts long lists, without duplicates", () => {
  const oids = Array.from({ length: 5000 }, (_, at) => ((at * 7919) % 4999).toString(16).padStart(40, "0"));
  const lines = canonicalFetchArgs({ ...EMPTY_FETCH, wants: oids });
  assert.deepEqual(
    lines,
    [...new Set(oids)].toSorted().map((each) => `want ${each}`),
  );
  const decoded = decodeFetchRequest(
    { command: "fetch", capabilities: [], args: [...lines, ...lines] },
    "sha1",
  );
  assert.equal(decoded.wants.length, lines.length);
});

test("decodeFetchRequest keeps malformed and repeated arguments in unknown, in order", () => {
  const args = ["want HEAD", "deepen 1", "deepen 2", "deepen -1", "want", "toString", "done x"];
  const fetch = decodeFetchRequest({ command: "fetch", capabilities: [], args }, "sha1");
  assert.deepEqual(fetch.unknown, ["want HEAD", "deepen 2", "deepen -1", "want", "toString", "done x"]);
  assert.equal(fetch.deepen, 1);
  assert.deepEqual(fetch.wants, []);
});

test("FetchResponseWalker gives sections, lines and pack bytes at any chunk borders", () => {
  const pack = Buffer.concat([Buffer.from("PACK"), Buffer.alloc(70_000, "p")]);
  const bytes = encodeFetchResponse([
    { name: "acknowledgments", lines: ["NAK", "ready"] },
    { name: "shallow-info", lines: [`shallow ${"a".repeat(40)}`] },
    {
      name: "packfile",
      packets: Buffer.concat([
        encodeSideBand(SIDE_BAND.progress, Buffer.from("counting\n")),
        encodeSideBand(SIDE_BAND.pack, pack),
      ]),
    },
  ]);
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 12 }), (cuts) => {
      const lines: string[] = [];
      const parts: Buffer[] = [];
      const walker = new FetchResponseWalker({
        line: (section, text) => void lines.push(`${section}:${text}`),
        pack: (part) => void parts.push(Buffer.from(part)),
      });
      let pushed = 0;
      for (const chunk of chunksOf(bytes, cuts)) {
        walker.push(chunk);
        pushed += chunk.length;
        assert.ok(walker.boundary <= pushed);
      }
      assert.ok(walker.complete);
      assert.equal(walker.boundary, bytes.length);
      assert.deepEqual(lines, [
        "acknowledgments:NAK",
        "acknowledgments:ready",
        `shallow-info:shallow ${"a".repeat(40)}`,
      ]);
      assert.deepEqual(Buffer.concat(parts), pack);
      assert.deepEqual([...walker.sections], ["acknowledgments", "shallow-info", "packfile"]);
    }),
    { numRuns: 40 },
  );
});

test("FetchResponseWalker refuses in-band errors, unknown sections, misplaced packets", () => {
  const packfile = encodePktLine("packfile\n");
  const table: readonly [string, Buffer, ProtocolErrorCode][] = [
    ["ERR", encodeErrorLine("upload-pack: not our ref"), "remote_error"],
    ["side-band 3", Buffer.concat([packfile, encodeSideBandError("out of memory")]), "remote_error"],
    ["channel 4", Buffer.concat([packfile, encodePktLine(Buffer.from([4, 1]))]), "bad_side_band"],
    ["empty side-band", Buffer.concat([packfile, Buffer.from("0004")]), "bad_side_band"],
    ["unknown section", encodePktLine("surprise\n"), "bad_line"],
    ["HTML", Buffer.from("<html>"), "bad_length"],
    ["delim first", DELIM_PKT, "unexpected_packet"],
    ["delim in the pack", Buffer.concat([packfile, DELIM_PKT]), "unexpected_packet"],
    ["response-end", RESPONSE_END_PKT, "unexpected_packet"],
    ["bytes after the end", Buffer.concat([packfile, FLUSH_PKT, FLUSH_PKT]), "trailing_data"],
  ];
  for (const [name, bytes, code] of table) {
    const walker = new FetchResponseWalker();
    assert.throws(
      () => walker.push(bytes),
      (error: unknown) => error instanceof ProtocolError && error.code === code,
      name,
    );
  }
  assert.equal(FETCH_SECTIONS.length, 5);
});

test("an encoded capability advertisement is decoded to the same advertisement", () => {
  const capabilities: fc.Arbitrary<[string, string | undefined][]> = fc.uniqueArray(
    fc.tuple(fc.stringMatching(/^[a-z-]{1,12}$/), fc.option(word, { nil: undefined })),
    {
      selector: ([name]) => name,
    },
  );
  fc.assert(
    fc.property(fc.option(word, { nil: undefined }), capabilities, (service, entries) => {
      const advertisement = { service, capabilities: new Map<string, string | undefined>(entries) };
      assert.deepEqual(
        decodeCapabilityAdvertisement(encodeCapabilityAdvertisement(advertisement)),
        advertisement,
      );
    }),
  );
  assertThrowsCode(
    () => decodeCapabilityAdvertisement(Buffer.concat([encodePktLine("version 1"), FLUSH_PKT])),
    "bad_line",
  );
  assertThrowsCode(() => decodeCapabilityAdvertisement(encodePktLine("version 2")), "truncated");
});

test("requestedProtocolVersion takes the highest version of a colon-separated list", () => {
  const table: readonly [string | undefined, number][] = [
    [undefined, 0],
    ["", 0],
    ["version=2", 2],
    ["version=1:version=2", 2],
    ["version=2:version=1", 2],
    ["foo:version=1", 1],
    ["version=22", 0],
    ["xversion=2", 0],
  ];
  for (const [header, version] of table) {
    assert.equal(requestedProtocolVersion(header), version, `header ${header}`);
  }
});
