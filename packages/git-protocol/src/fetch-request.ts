import type { CommandRequest } from "./command-request.ts";
import { isOid, type ObjectFormat } from "./object-format.ts";
import { finish, type Steps } from "./steps.ts";

/** Lines decoded or encoded between two pauses. They take less than a millisecond. */
const LINES_PER_STEP = 1024;

/** Arguments of `fetch` (gitprotocol-v2, "fetch"). Object ids are lower-case hexadecimal. */
export interface FetchRequest {
  /** Wanted object ids, without duplicates. */
  readonly wants: readonly string[];
  /** Object ids that the client has, with duplicates, because a server acknowledges each line. */
  readonly haves: readonly string[];
  /** Full ref names. The server resolves them. */
  readonly wantRefs: readonly string[];
  readonly shallows: readonly string[];
  /** Ref names or object ids, as in the request. */
  readonly deepenNots: readonly string[];
  readonly done: boolean;
  readonly thinPack: boolean;
  readonly noProgress: boolean;
  readonly includeTag: boolean;
  readonly ofsDelta: boolean;
  readonly deepenRelative: boolean;
  readonly sidebandAll: boolean;
  readonly waitForDone: boolean;
  /** Number of commits from each tip, at least 1. */
  readonly deepen: number | undefined;
  /** Seconds since the epoch. */
  readonly deepenSince: number | undefined;
  /** The filter specification, as in the request. */
  readonly filter: string | undefined;
  /** URI schemes for packs that the client accepts, separated by commas, as in the request. */
  readonly packfileUris: string | undefined;
  /** Arguments that are unknown, malformed, or repeat an argument that may occur once. As in the request, in order. */
  readonly unknown: readonly string[];
}

/** A request without arguments, as the default for object spread. */
export const EMPTY_FETCH: FetchRequest = {
  wants: [],
  haves: [],
  wantRefs: [],
  shallows: [],
  deepenNots: [],
  done: false,
  thinPack: false,
  noProgress: false,
  includeTag: false,
  ofsDelta: false,
  deepenRelative: false,
  sidebandAll: false,
  waitForDone: false,
  deepen: undefined,
  deepenSince: undefined,
  filter: undefined,
  packfileUris: undefined,
  unknown: [],
};

const FLAGS = {
  done: "done",
  "thin-pack": "thinPack",
  "no-progress": "noProgress",
  "include-tag": "includeTag",
  "ofs-delta": "ofsDelta",
  "deepen-relative": "deepenRelative",
  "sideband-all": "sidebandAll",
  "wait-for-done": "waitForDone",
} as const;
type Flag = (typeof FLAGS)[keyof typeof FLAGS];

const NUMBER = /^[0-9]{1,15}$/;

/**
 * Reads the arguments. Never fails: unknown and malformed arguments are kept in `unknown`,
 * so that the caller can forward the request, and the server reports the error.
 */
export function decodeFetchRequest(request: CommandRequest, format: ObjectFormat): FetchRequest {
  return finish(decodeFetchSteps(request.args, format));
}

/**
 * Reads arguments as {@link decodeFetchRequest} does, but pauses every {@link LINES_PER_STEP} of them, so that the caller
 * can let other work run.
 */
export function* decodeFetchSteps(args: Iterable<string>, format: ObjectFormat): Steps<FetchRequest> {
  // A set, so that a repeated want takes no more memory. A repeated have is acknowledged twice, so haves are a list.
  const wants = new Set<string>();
  const lists = { have: [] as string[], shallow: [] as string[] };
  const wantRefs: string[] = [];
  const deepenNots: string[] = [];
  const unknown: string[] = [];
  const flags = {} as Record<Flag, boolean>;
  for (const flag of Object.values(FLAGS)) flags[flag] = false;
  let deepen: number | undefined;
  let deepenSince: number | undefined;
  let filter: string | undefined;
  let packfileUris: string | undefined;
  let lines = 0;
  for (const arg of args) {
    if (++lines % LINES_PER_STEP === 0) yield;
    const space = arg.indexOf(" ");
    const name = space < 0 ? arg : arg.slice(0, space);
    const value = space < 0 ? undefined : arg.slice(space + 1);
    if (value === undefined) {
      if (Object.hasOwn(FLAGS, name)) flags[FLAGS[name as keyof typeof FLAGS]] = true;
      else unknown.push(arg);
    } else if (name === "want" && isOid(value, format)) {
      wants.add(value);
    } else if ((name === "have" || name === "shallow") && isOid(value, format)) {
      lists[name].push(value);
    } else if (name === "want-ref" && value !== "") wantRefs.push(value);
    else if (name === "deepen-not" && value !== "") deepenNots.push(value);
    else if (name === "deepen" && deepen === undefined && NUMBER.test(value)) deepen = Number(value);
    else if (name === "deepen-since" && deepenSince === undefined && NUMBER.test(value)) {
      deepenSince = Number(value);
    } else if (name === "filter" && filter === undefined) filter = value;
    else if (name === "packfile-uris" && packfileUris === undefined) packfileUris = value;
    else unknown.push(arg);
  }
  return {
    wants: [...wants],
    haves: lists.have,
    shallows: lists.shallow,
    wantRefs,
    deepenNots,
    ...flags,
    deepen,
    deepenSince,
    filter,
    packfileUris,
    unknown,
  };
}

/**
 * Arguments in canonical form: requests with the same meaning give the same lines. Lists are sorted and without
 * duplicates, because their order has no meaning. Unknown arguments keep their order, which may have one.
 */
export function canonicalFetchArgs(fetch: FetchRequest): string[] {
  return finish(canonicalFetchSteps(fetch));
}

/** As {@link canonicalFetchArgs}, but pauses every {@link LINES_PER_STEP} lines, so that the caller can let other work run. */
export function* canonicalFetchSteps(fetch: FetchRequest): Steps<string[]> {
  const args: string[] = [];
  for (const [word, flag] of Object.entries(FLAGS)) if (fetch[flag]) args.push(word);
  if (fetch.deepen !== undefined) args.push(`deepen ${fetch.deepen}`);
  if (fetch.deepenSince !== undefined) args.push(`deepen-since ${fetch.deepenSince}`);
  if (fetch.filter !== undefined) args.push(`filter ${fetch.filter}`);
  if (fetch.packfileUris !== undefined) args.push(`packfile-uris ${fetch.packfileUris}`);
  const lists: readonly (readonly [string, readonly string[]])[] = [
    ["deepen-not", fetch.deepenNots],
    ["want-ref", fetch.wantRefs],
    ["shallow", fetch.shallows],
    ["want", fetch.wants],
    ["have", fetch.haves],
  ];
  for (const [word, values] of lists) {
    let previous: string | undefined;
    for (const value of yield* sortSteps(values)) {
      if (value !== previous) args.push(`${word} ${value}`);
      previous = value;
      if (args.length % LINES_PER_STEP === 0) yield;
    }
  }
  for (const line of fetch.unknown) args.push(line);
  return args;
}

/** A merge sort that pauses every {@link LINES_PER_STEP} values. */
function* sortSteps(values: readonly string[]): Steps<readonly string[]> {
  let runs: (readonly string[])[] = [];
  for (let from = 0; from < values.length; from += LINES_PER_STEP) {
    runs.push(values.slice(from, from + LINES_PER_STEP).toSorted());
    yield;
  }
  while (runs.length > 1) {
    const merged: (readonly string[])[] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* mergeSteps(runs[at]!, runs[at + 1] ?? []));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeSteps(left: readonly string[], right: readonly string[]): Steps<readonly string[]> {
  if (right.length === 0) return left;
  const merged: string[] = [];
  for (let l = 0, r = 0; l < left.length || r < right.length;) {
    const takesLeft = r === right.length || (l < left.length && left[l]! <= right[r]!);
    merged.push(takesLeft ? left[l++]! : right[r++]!);
    if (merged.length % LINES_PER_STEP === 0) yield;
  }
  return merged;
}

/** The request with canonical arguments. */
export function encodeFetchRequest(fetch: FetchRequest, capabilities: readonly string[]): CommandRequest {
  return { command: "fetch", capabilities, args: canonicalFetchArgs(fetch) };
}
