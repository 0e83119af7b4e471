/**
 * Protocol v0 of fetches over smart HTTP (gitprotocol-pack, gitprotocol-http): the messages that differ from v2. v1 is v0 with one line
 * in front, which a server need not send. The pack and all that is selected for it are those of v2.
 */
import {
  decodeFetchRequest,
  encodePktLine,
  FLUSH_PKT,
  lineText,
  PktLineReader,
  ProtocolError,
  type FetchRequest,
  type ObjectFormat,
} from "@devplat/git-protocol";
import { encodeRefAdvertisement } from "@devplat/git-protocol/receive-pack";
import { GitStoreError } from "../errors.ts";
import type { Oid } from "../oid.ts";
import type { ObjectGraph } from "../reachability/object-graph.ts";
import type { FetchContext } from "../serve/fetch-context.ts";
import { negotiate } from "../serve/negotiate.ts";
import { shallowHistory } from "../serve/shallow-history.ts";
import { uploadPackV2Fetch, whyNotServableSteps } from "../serve/upload-pack.ts";
import { finishInSlices } from "../slices.ts";
import { headOid, sortedNames, type RefsNow } from "./refs-now.ts";

/** Flags of a v0 request and the arguments of v2 that they become. `side-band-64k` is how v2 always sends. */
const FLAGS: ReadonlySet<string> = new Set([
  "thin-pack",
  "ofs-delta",
  "no-progress",
  "include-tag",
  "deepen-relative",
]);
const CAPABILITIES = (
  "multi_ack_detailed no-done side-band-64k thin-pack ofs-delta no-progress include-tag shallow deepen-since deepen-not " +
  "deepen-relative allow-tip-sha1-in-want allow-reachable-sha1-in-want filter"
).split(" ");

/**
 * The advertisement of refs (gitprotocol-http, "Smart Server Response").
 *
 * @param shallow commits whose parents the repository does not have
 */
export function encodeAdvertisementV0(
  now: RefsNow,
  shallow: ReadonlySet<Oid>,
  format: ObjectFormat,
  agent: string,
): Buffer {
  const { refs, head } = now;
  const symref = "ref" in head && refs.has(head.ref) ? [`symref=HEAD:${head.ref}`] : [];
  const capabilities = [...CAPABILITIES, ...symref, `object-format=${format}`, `agent=${agent}`];
  const target = headOid(now);
  const listed = target === undefined ? [] : [{ oid: target, name: "HEAD" }];
  for (const name of sortedNames(refs.keys())) {
    const { oid, peeled } = refs.get(name)!;
    listed.push({ oid, name });
    if (peeled !== undefined) listed.push({ oid: peeled, name: `${name}^{}` });
  }
  return encodeRefAdvertisement(
    { service: "git-upload-pack", refs: listed, capabilities, shallows: [...shallow] },
    format,
  );
}

/** The body of a `git-upload-pack` POST. */
export interface RequestV0 {
  /** The same request in v2. */
  readonly fetch: FetchRequest;
  readonly capabilities: ReadonlySet<string>;
  /** Whether it asks for a depth: the response then begins with a section about shallow commits. */
  readonly deepens: boolean;
  /** Whether anything follows the wants. A client that asks for a depth first reads the shallow commits only. */
  readonly negotiates: boolean;
}

/**
 * Decodes a body. All lines become the arguments of v2's `fetch`, which has the same ones.
 *
 * @returns undefined for a body without wants, which has no response
 * @throws ProtocolError `bad_line` without `side-band-64k`, `truncated`, and the errors of framing
 */
export function decodeRequestV0(body: Buffer, format: ObjectFormat): RequestV0 | undefined {
  const reader = new PktLineReader();
  reader.push(body);
  const args: string[] = [];
  let capabilities: ReadonlySet<string> | undefined;
  let wantsEnd: number | undefined;
  while (reader.pending > 0) {
    const decoding = reader.next();
    if (decoding.state === "error") throw decoding.error;
    if (decoding.state === "incomplete")
      throw new ProtocolError("truncated", "request: it ends within a packet");
    if (decoding.line.kind === "flush") {
      wantsEnd ??= reader.consumed;
      continue;
    }
    if (decoding.line.kind !== "data") {
      throw new ProtocolError("unexpected_packet", `request: unexpected ${decoding.line.kind} packet`);
    }
    let text = lineText(decoding.line.payload);
    if (capabilities === undefined) {
      const [want = "", oid = "", ...more] = text.split(" ");
      capabilities = new Set(more);
      text = `${want} ${oid}`;
    }
    args.push(text);
  }
  if (capabilities === undefined) return undefined;
  if (!capabilities.has("side-band-64k")) {
    throw new ProtocolError("bad_line", "request: this server responds only with side-band-64k");
  }
  args.push(...[...capabilities].filter((capability) => FLAGS.has(capability)));
  const fetch = decodeFetchRequest({ command: "fetch", capabilities: [], args }, format);
  const deepens =
    fetch.deepen !== undefined || fetch.deepenSince !== undefined || fetch.deepenNots.length > 0;
  return { fetch, capabilities, deepens, negotiates: wantsEnd !== undefined && wantsEnd < body.length };
}

/**
 * Responds as `git upload-pack --stateless-rpc` does: shallow commits, acknowledgments, and the pack once the client is done.
 *
 * @throws {GitStoreError} as {@link uploadPackV2Fetch}
 */
export async function* uploadPackV0(
  graph: ObjectGraph,
  { fetch, capabilities, deepens, negotiates }: RequestV0,
  context: FetchContext,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { signal } = context;
  const why = await finishInSlices(whyNotServableSteps(graph, fetch, context), signal);
  if (why !== undefined) throw new GitStoreError("unservable", `serve a fetch: ${why}`);
  const wants = fetch.wants.map((oid) => graph.numbers.numberOfOid(oid));
  if (deepens) {
    const { shallow, unshallow } = await shallowHistory(graph, fetch, wants, context);
    yield Buffer.concat([
      ...shallow.map((number) => encodePktLine(`shallow ${graph.numbers.oidOf(number)}\n`)),
      ...unshallow.map((number) => encodePktLine(`unshallow ${graph.numbers.oidOf(number)}\n`)),
      FLUSH_PKT,
    ]);
  }
  if (!negotiates) return;
  const { lines, sendsPack } = acknowledge(graph, fetch, wants, capabilities);
  yield lines;
  if (!sendsPack) return;
  const response = uploadPackV2Fetch(graph, { ...fetch, done: true }, context);
  // Its first chunk has the sections of v2 before the pack.
  await response.next();
  yield* response;
}

/** The acknowledgments (git: upload-pack.c, get_common_commits), and whether the pack follows them. */
function acknowledge(
  graph: ObjectGraph,
  { haves, done }: FetchRequest,
  wants: readonly number[],
  capabilities: ReadonlySet<string>,
): { readonly lines: Buffer; readonly sendsPack: boolean } {
  const isDetailed = capabilities.has("multi_ack_detailed");
  const { common, ready } = negotiate(graph, wants, haves);
  const last = common.at(-1);
  const lines: string[] = [];
  if (isDetailed) lines.push(...common.map((oid) => `ACK ${oid} common`));
  else if (common[0] !== undefined) lines.push(`ACK ${common[0]}`);
  const isReady = isDetailed && ready && !done;
  if (isReady) lines.push(`ACK ${last} ready`);
  const endsNow = isReady && capabilities.has("no-done");
  if (last === undefined || (isDetailed && !done)) lines.push("NAK");
  if (last !== undefined && isDetailed && (done || endsNow)) lines.push(`ACK ${last}`);
  return {
    lines: Buffer.concat(lines.map((line) => encodePktLine(`${line}\n`))),
    sendsPack: done || endsNow,
  };
}
