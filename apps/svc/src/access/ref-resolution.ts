import { decodeLsRefsResponse, type FetchRequest } from "@devplat/git-protocol";
import { digestOf } from "./body-digest.ts";

/** Maximum number of names that a probe requests one by one. */
const MAX_ASKED_NAMES = 64;

/** Ref names of a request that the server resolves, with their current objects. */
export interface Resolution {
  readonly wantedRefs: ReadonlyMap<string, string>;
  /** Lines that go into the key. */
  readonly lines: readonly string[];
}

export const NOTHING_TO_RESOLVE: Resolution = { wantedRefs: new Map(), lines: [] };

interface Question {
  readonly names: readonly string[];
  readonly prefixes: readonly string[];
  /** The latest resolution, and the digest of the response that gave it. */
  latest?: { readonly digest: string; readonly resolution: Resolution };
}

/**
 * Resolves the names of fetches by responses of the code host. Clones of one repository share a decoded fetch, and a clone of
 * 60,000 branches can name each of them: equal responses to the same fetch give one resolution.
 */
export class RefResolver {
  readonly #questions = new WeakMap<FetchRequest, Question>();

  /** The prefixes of the refs to ask the code host for; undefined: the fetch has no names. */
  prefixesFor(fetch: FetchRequest): readonly string[] | undefined {
    const { wantRefs, deepenNots } = fetch;
    return wantRefs.length === 0 && deepenNots.length === 0 ? undefined : this.#questionOf(fetch).prefixes;
  }

  /**
   * Resolves the names by the code host's response to the caller.
   *
   * @param body the whole response, to a request with the prefixes of {@link prefixesFor}
   * @throws ProtocolError if its lines are not refs
   */
  resolve(fetch: FetchRequest, body: Buffer): Resolution {
    const question = this.#questionOf(fetch);
    const digest = digestOf(body);
    if (question.latest?.digest === digest) return question.latest.resolution;
    const resolution = resolutionOf(fetch, question.names, body);
    question.latest = { digest, resolution };
    return resolution;
  }

  #questionOf(fetch: FetchRequest): Question {
    let question = this.#questions.get(fetch);
    if (question === undefined) {
      const names = [...fetch.wantRefs, ...fetch.deepenNots.flatMap((name) => candidates(name))];
      question = { names: [...new Set(names)].toSorted(), prefixes: fewPrefixes(names) };
      this.#questions.set(fetch, question);
    }
    return question;
  }
}

/** @param names sorted, without duplicates */
function resolutionOf({ wantRefs }: FetchRequest, names: readonly string[], body: Buffer): Resolution {
  const refs = new Map(decodeLsRefsResponse(body).map((ref) => [ref.name, ref.oid]));
  const wantedRefs = new Map<string, string>();
  for (const name of wantRefs) {
    const oid = refs.get(name);
    if (oid !== undefined) wantedRefs.set(name, oid);
  }
  return { wantedRefs, lines: names.map((name) => `${refs.get(name) ?? "-"} ${name}`) };
}

/**
 * Prefixes that cover these names: the names themselves, or their top folders if there are many. No prefix covers all
 * names. Git compares each ref with each prefix: with 60,000 of both that takes half a minute.
 */
function fewPrefixes(names: readonly string[]): readonly string[] {
  if (names.length <= MAX_ASKED_NAMES) return names;
  const folders = new Set(names.map((name) => /^refs\/[^/]+\//u.exec(name)?.[0] ?? name));
  return folders.size <= MAX_ASKED_NAMES ? [...folders] : [];
}

/** The full names that a short one may mean (gitrevisions, "<refname>"). */
function candidates(name: string): string[] {
  return [name, `refs/${name}`, `refs/tags/${name}`, `refs/heads/${name}`, `refs/remotes/${name}`];
}
