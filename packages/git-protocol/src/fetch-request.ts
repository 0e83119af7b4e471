import type { CommandRequest } from "./command-request.ts";
import { isOid, type ObjectFormat } from "./object-format.ts";

/** The arguments of `fetch` (gitprotocol-v2, "fetch"). Object ids are lower-case hexadecimal. */
export interface FetchRequest {
  readonly wants: readonly string[];
  readonly haves: readonly string[];
  /** Full ref names that the server resolves. */
  readonly wantRefs: readonly string[];
  readonly shallows: readonly string[];
  /** Ref names or ids, as the client wrote them. */
  readonly deepenNots: readonly string[];
  readonly done: boolean;
  readonly thinPack: boolean;
  readonly noProgress: boolean;
  readonly includeTag: boolean;
  readonly ofsDelta: boolean;
  readonly deepenRelative: boolean;
  readonly sidebandAll: boolean;
  readonly waitForDone: boolean;
  /** Commits from each tip, at least 1. */
  readonly deepen: number | undefined;
  /** Seconds since the epoch. */
  readonly deepenSince: number | undefined;
  /** The filter specification, as it came. */
  readonly filter: string | undefined;
  /** Schemes that the client would download packs from, by comma, as they came. */
  readonly packfileUris: string | undefined;
  /** Arguments that are none of the above, are malformed, or repeat a single one; as they came, in order. */
  readonly unknown: readonly string[];
}

/** A request that asks for nothing: what a caller does not set, spread under what it does. */
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
 * Reads the arguments. Never fails: an argument that it does not know, or that is malformed, is kept in `unknown`,
 * so that the request can still be forwarded and the code host gives its own error.
 */
export function decodeFetchRequest(request: CommandRequest, format: ObjectFormat): FetchRequest {
  const lists = { want: [], have: [], shallow: [] } as Record<"want" | "have" | "shallow", string[]>;
  const wantRefs: string[] = [];
  const deepenNots: string[] = [];
  const unknown: string[] = [];
  const flags = {} as Record<Flag, boolean>;
  for (const flag of Object.values(FLAGS)) flags[flag] = false;
  let deepen: number | undefined;
  let deepenSince: number | undefined;
  let filter: string | undefined;
  let packfileUris: string | undefined;
  for (const arg of request.args) {
    const space = arg.indexOf(" ");
    const name = space < 0 ? arg : arg.slice(0, space);
    const value = space < 0 ? undefined : arg.slice(space + 1);
    if (value === undefined) {
      if (Object.hasOwn(FLAGS, name)) flags[FLAGS[name as keyof typeof FLAGS]] = true;
      else unknown.push(arg);
    } else if ((name === "want" || name === "have" || name === "shallow") && isOid(value, format)) {
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
    wants: lists.want,
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
 * The arguments in canonical form: two requests that mean the same give the same lines. Lists are sorted and without
 * duplicates (their order says nothing); unknown arguments keep their order (theirs might).
 */
export function canonicalFetchArgs(fetch: FetchRequest): string[] {
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
    for (const value of [...new Set(values)].toSorted()) args.push(`${word} ${value}`);
  }
  return [...args, ...fetch.unknown];
}

/** The request with canonical arguments. */
export function encodeFetchRequest(fetch: FetchRequest, capabilities: readonly string[]): CommandRequest {
  return { command: "fetch", capabilities, args: canonicalFetchArgs(fetch) };
}
