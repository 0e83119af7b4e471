import type { FileHandle } from "node:fs/promises";
import type { Clock } from "@devplat/base";
import { decodeLsRefsResponse, type ObjectFormat } from "@devplat/git-protocol";
import type { StoredSeed } from "@devplat/git-mirror";
import { SURVEY_PREFIXES } from "../../access/authorization.ts";
import type { Decision, Refusal } from "../../access/access-request.ts";
import type { CachedRepository } from "../../cache/cached-repository.ts";
import type { CachePolicy } from "../../cache/policy.ts";
import type { Seeds, SeedVisibility } from "../../cache/seeds/seeds.ts";
import { shownTips, type ShownTips } from "../../cache/seeds/shown-tips.ts";
import type { FileSender } from "../../http/send-file/file-sender.ts";
import type { Problem } from "../../http/request/problem.ts";
import type { RequestContext } from "../../http/request/request-context.ts";
import { SANDBOX_HEADERS, answerProblem } from "../../http/request/text-answer.ts";
import type { RepositoryTail, SeedExtension } from "../../http/routing/target.ts";
import type { Late } from "../../late.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { isRefusal } from "../../upstream/response-status.ts";
import type { UpstreamResponse } from "../../upstream/upstream.ts";
import { ClientSink } from "../client-sink.ts";
import { MAX_WAIT_SECONDS } from "../ensure/ensure-body.ts";
import { ensureObjects, type EnsureObjectsParts } from "../ensure/ensure-objects.ts";
import { answerOfRefusal, askForRefs, lsRefsOf, type RefusalAnswer } from "../ensure/own-refs.ts";
import type { CachedRequest, RepositoryRequest } from "../git-request.ts";
import { relay } from "../relay.ts";
import { bundleHeader, bundleTag } from "./bundle.ts";
import { requestedPart } from "./byte-range.ts";
import { encodeManifest } from "./manifest.ts";
import { sendPart, type FilePart } from "./send-part.ts";

/** Refs that a fetch asks for when it has no `ls-refs`. */
const FETCH_PREFIXES = ["HEAD"];
/** Seconds after which a client may ask again for a seed that is being made. */
const RETRY_AFTER_SECONDS = "60";
/** Seconds after which a client may ask again for a file, when it is not known yet whether it may have it. */
const RETRY_SOON_SECONDS = "5";
/**
 * CPU seconds of `git index-pack` for each byte of a pack, without those of copying and hashing a seed. Measured with packs of
 * 10 to 385 MB: 66 to 80 ns (bench/results/seed.md).
 */
const INDEX_SECONDS_PER_BYTE = 75e-9;
/** Milliseconds that a request waits for objects which decide whether it may have the seed. */
const ENSURE_MS = 20_000;

type SeedFileTail = Extract<RepositoryTail, { kind: "seed_file" }>;

export interface SeedCommandParts extends EnsureObjectsParts {
  readonly seeds: () => Promise<Seeds>;
  readonly files: Late<FileSender>;
  /** `cache.strict_lsrefs`: each fetch needs an `ls-refs` of the client, and these requests have none. */
  readonly strict: boolean;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** A file that is open. */
interface FileAnswer {
  readonly kind: "file";
  readonly seed: StoredSeed;
  readonly extension: SeedExtension;
  readonly file: FileHandle;
}

/** The response to a request for a seed. */
export type SeedAnswer =
  | { readonly kind: "manifest"; readonly seed: StoredSeed }
  | { readonly kind: "problem"; readonly outcome: "miss" | "rejected" | "error"; readonly problem: Problem }
  | { readonly kind: "relay"; readonly response: UpstreamResponse };

type Answer = SeedAnswer | FileAnswer;

/** The refs that the code host showed to the caller. */
interface Survey {
  readonly request: CachedRequest;
  readonly format: ObjectFormat;
  readonly shown: ShownTips;
  readonly sentAt: number;
}

/**
 * Answers `GET …/svc/seed` and the requests for files of seeds. A client that takes these files as they are needs no pack
 * made for it, and does not index one. The code host decides who may have a seed: only a caller to whom its refs show all
 * objects of it. A bundle is a seed too, for git. A caller that it refuses learns nothing of the cache, not even whether the
 * repository is listed.
 */
export class SeedCommand {
  readonly #parts: SeedCommandParts;

  constructor(parts: SeedCommandParts) {
    this.#parts = parts;
  }

  /** @throws GitError */
  async handle(request: RepositoryRequest): Promise<void> {
    const { context, target } = request;
    const { tail } = target;
    const answer = this.#parts.strict
      ? noSeed("Seeds are off, because cache.strict_lsrefs is on")
      : tail.kind === "seed_file"
        ? await this.#file(request, tail)
        : await this.find(request, "sha1");
    switch (answer.kind) {
      case "manifest":
        sendManifest(request, answer.seed);
        return;
      case "file":
        await this.#send(request, answer);
        return;
      case "problem":
        context.concludeCache(answer.outcome);
        answerProblem(context, answer.problem);
        return;
      case "relay":
        context.concludeCache(isRefusal(answer.response.status) ? "rejected" : "error");
        await relay(context, answer.response, request.relay);
    }
  }

  /**
   * The newest seed that the caller may have.
   *
   * @param supposed the object format, unless the code host tells another one
   * @throws GitError
   */
  async find(given: RepositoryRequest, supposed: ObjectFormat): Promise<SeedAnswer> {
    const survey = await this.#survey(given, supposed);
    if ("kind" in survey) return survey;
    const { request, shown, format, sentAt } = survey;
    const { access } = this.#parts;
    const repository = this.#repositoryOf(request);
    const seeds = await this.#parts.seeds();
    let last: "none" | "hidden" | "shown" = "none";
    for (const seed of await seeds.list(repository)) {
      if (seed.format !== format) continue;
      const { kind } = await this.#decide(survey, seed);
      if (last === "none") last = kind === "unknown" ? "shown" : kind;
      if (kind !== "shown") continue;
      seeds.consider(repository, shown, last);
      const confirmed = await access.confirm(request, lsRefsOf(format), FETCH_PREFIXES, sentAt);
      return confirmed.kind === "refused" ? this.#refused(confirmed) : { kind: "manifest", seed };
    }
    seeds.consider(repository, shown, last);
    return later("There is no seed of this repository yet. One is made when the service has its objects");
  }

  async #file(given: RepositoryRequest, { pack, extension }: SeedFileTail): Promise<Answer> {
    const format = pack.length > "pack-".length + 40 ? "sha256" : "sha1";
    const permitted = await this.#permitted(given, format);
    if ("kind" in permitted) return permitted;
    const { request } = permitted;
    if (extension === "bundle" && !request.policy.bundles) return noSeed(NO_BUNDLES);
    let { sentAt } = permitted;
    const repository = this.#repositoryOf(request);
    const seeds = await this.#parts.seeds();
    const seed = (await seeds.list(repository)).find(({ name }) => name === pack);
    if (seed === undefined) return noSeed("There is no seed with this file. Ask for the seed again");
    if (!(await seeds.isShownRecently(repository, seed))) {
      const survey = await this.#survey(request, format);
      if ("kind" in survey) return survey;
      const { kind } = await this.#decide(survey, seed);
      if (kind === "hidden") return notShown();
      if (kind === "unknown") return unknown();
      ({ sentAt } = survey);
    }
    const { access } = this.#parts;
    const confirmed = await access.confirm(request, lsRefsOf(format), FETCH_PREFIXES, sentAt);
    if (confirmed.kind === "refused") return this.#refused(confirmed);
    const file = await seeds.open(repository, seed, extension === "bundle" ? "pack" : extension);
    return file === undefined
      ? noSeed("The file of the seed is gone. Ask for the seed again")
      : { kind: "file", seed, extension, file };
  }

  /** The access check of a fetch. */
  async #permitted(
    given: RepositoryRequest,
    format: ObjectFormat,
  ): Promise<{ readonly request: CachedRequest; readonly sentAt: number } | SeedAnswer> {
    const { policy } = given;
    if (policy?.enabled !== true) {
      // The code host is asked all the same: a caller without access must not learn that it is not listed.
      const survey = await this.#survey(given, format);
      return "kind" in survey ? survey : noSeed(notCached(policy));
    }
    const askedAt = performance.now();
    const { access } = this.#parts;
    const decide = async (authorization: string | undefined): Promise<Decision> =>
      access.authorize(
        { ...given, authorization, policy: { timeoutSeconds: MAX_WAIT_SECONDS } },
        lsRefsOf(format),
        FETCH_PREFIXES,
      );
    let { authorization } = given;
    let decision = await decide(authorization);
    if (decision.kind === "refused" && decision.response.status === 401) {
      const renewed = await given.renew?.();
      if (renewed !== undefined) decision = await decide((authorization = renewed));
    }
    given.context.stage("gate", askedAt);
    if (decision.kind === "refused") return this.#refused(decision);
    if (!policy.seed) return noSeed(SWITCHED_OFF);
    return { request: { ...given, policy, authorization }, sentAt: decision.sentAt };
  }

  /** Asks the code host for HEAD, branches and tags with the caller's credential. */
  async #survey(given: RepositoryRequest, supposed: ObjectFormat): Promise<Survey | SeedAnswer> {
    const { access } = this.#parts;
    const { policy } = given;
    const { refs, format, authorization } = await askForRefs(access, given, {
      format: supposed,
      prefixes: SURVEY_PREFIXES,
      symrefs: true,
      // One limit for all repositories: how long a caller waits must not tell whether a repository is listed.
      timeoutSeconds: MAX_WAIT_SECONDS,
    });
    if (refs.kind === "refused") return this.#refused(refs);
    if (policy?.enabled !== true) return noSeed(notCached(policy));
    if (!policy.seed) return noSeed(SWITCHED_OFF);
    const request = { ...given, policy, authorization };
    const { body, sentAt } = refs;
    if (body === undefined) return noSeed("The code host shows too many refs for a seed");
    // The client asked for the refs, as git does before a fetch. Its requests for files need not ask again immediately.
    await access.recordAuthorization(request, sentAt, SURVEY_PREFIXES, body);
    return { request, format, shown: shownTips(decodeLsRefsResponse(body)), sentAt };
  }

  /** Whether the refs that the caller sees reach all tips of a seed. Brings newer commits here if they decide about it. */
  async #decide({ request, shown, sentAt }: Survey, seed: StoredSeed): Promise<SeedVisibility> {
    const seeds = await this.#parts.seeds();
    const repository = this.#repositoryOf(request);
    const first = await seeds.visibility(repository, seed, shown);
    if (first.kind !== "unknown" || first.missing.length === 0) return first;
    const wanted = { format: seed.format, oids: first.missing, sentAt };
    const { result } = await ensureObjects(this.#parts, request, wanted, ENSURE_MS);
    if (result.kind === "refused") result.response.cancel();
    return result.kind === "ready" ? await seeds.visibility(repository, seed, shown) : first;
  }

  async #send(request: RepositoryRequest, { seed, extension, file }: FileAnswer): Promise<void> {
    const { context } = request;
    try {
      const { head, size, sha256 } = contentOf(seed, extension);
      const etag = `"${sha256}"`;
      const part = requestedPart(context.request.headers, size, etag);
      context.concludeCache("hit");
      const isPart = part.kind === "part";
      const { start, end } = isPart ? part : { start: 0, end: part.kind === "whole" ? size : 0 };
      context.response.writeHead(STATUS[part.kind], {
        ...headOf(context),
        "Accept-Ranges": "bytes",
        ETag: etag,
        ...(part.kind === "unchanged" ? {} : { "Content-Length": end - start }),
        ...(part.kind === "unsatisfiable" ? { "Content-Range": `bytes */${size}` } : {}),
        ...(isPart ? { "Content-Range": `bytes ${start}-${end - 1}/${size}` } : {}),
        "Content-Type": "application/octet-stream",
      });
      if (start === end || context.request.method === "HEAD") context.response.end();
      else await this.#sendPart(request, file, { start, end, head, isPack: extension === "pack" });
    } finally {
      await file.close();
    }
  }

  async #sendPart(
    request: RepositoryRequest,
    file: FileHandle,
    part: FilePart & { readonly isPack: boolean },
  ): Promise<void> {
    const { files, metrics, clock } = this.#parts;
    const sink = new ClientSink(request.context.response);
    request.context.countAlso(() => sink.fileBytes, "sendfile");
    const repository = this.#repositoryOf(request);
    repository.lastFetchAt = clock.now();
    await sendPart(sink, files, file, part, (bytes) => {
      repository.bytesSaved += bytes;
      metrics.bytesSent("seed", bytes);
      if (!part.isPack) return;
      const seconds = bytes * INDEX_SECONDS_PER_BYTE;
      repository.secondsSaved += seconds;
      metrics.seeds.saved(seconds);
    });
  }

  #refused(refusal: Refusal): RefusalAnswer {
    return answerOfRefusal(refusal, this.#parts.upstream.name);
  }

  #repositoryOf({ target: { owner, name } }: RepositoryRequest): CachedRepository {
    return this.#parts.cache.repository(owner, name);
  }
}

/** Bytes before a file of a seed, the size of both, and their tag. */
function contentOf(
  seed: StoredSeed,
  extension: SeedExtension,
): { readonly head: Buffer; readonly size: number; readonly sha256: string } {
  if (extension !== "bundle") return { head: Buffer.alloc(0), ...seed.files[extension] };
  const head = bundleHeader(seed);
  const { size, sha256 } = seed.files.pack;
  return { head, size: head.length + size, sha256: bundleTag(head, sha256) };
}

const STATUS = { whole: 200, part: 206, unsatisfiable: 416, unchanged: 304 } as const;

/** Headers of all responses. */
function headOf(context: RequestContext): Record<string, string> {
  return {
    ...SANDBOX_HEADERS,
    "Cache-Control": "no-store",
    "X-Request-Id": context.id,
    "Server-Timing": context.serverTiming,
  };
}

function sendManifest({ context }: RepositoryRequest, seed: StoredSeed): void {
  const body = encodeManifest(seed);
  context.concludeCache("hit");
  context.response.writeHead(200, {
    ...headOf(context),
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
  });
  context.response.end(context.request.method === "HEAD" ? undefined : body);
}

const NO_BUNDLES = "Bundles of this repository are switched off";

const SWITCHED_OFF = "Seeds of this repository are switched off";

/** Why a repository is not cached, for a caller who may read it. */
function notCached(policy: CachePolicy | undefined): string {
  return policy === undefined
    ? "This repository is not in the list of cached repositories"
    : "Caching of this repository is disabled";
}

/** The response where there is no seed to send. The caller is not refused, so the outcome is not `rejected`. */
function noSeed(detail: string): SeedAnswer {
  return { kind: "problem", outcome: "miss", problem: { code: "no_seed", detail } };
}

function later(detail: string): SeedAnswer {
  const headers = { "Retry-After": RETRY_AFTER_SECONDS };
  return { kind: "problem", outcome: "miss", problem: { code: "no_seed", detail, headers } };
}

function notShown(): SeedAnswer {
  const detail = "The code host does not show all history of this seed any more";
  return { kind: "problem", outcome: "rejected", problem: { code: "not_shown", detail } };
}

function unknown(): SeedAnswer {
  const detail =
    "The service does not have the newest commits yet, which decide whether this seed may be sent";
  const headers = { "Retry-After": RETRY_SOON_SECONDS };
  return { kind: "problem", outcome: "error", problem: { code: "busy", detail, headers } };
}
