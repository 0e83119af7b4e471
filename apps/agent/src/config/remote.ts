import { AppError, systemCode, writeAtomically, type Clock } from "@devplat/base";
import { ConfigError } from "@devplat/config";
import { boundedRequest } from "@devplat/http-client";
import { createHash, verify } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { parseRemote, type RemoteDocument } from "./overlay.ts";
import { ensureFolder } from "../agent-files/places.ts";
import { ed25519Key, type RemoteSection } from "./sections/remote-section.ts";
import { expandHome } from "./sections/rule.ts";

/** From connecting to the last byte, in milliseconds. */
const FETCH_TIMEOUT_MS = 10_000;
/** Largest document, in bytes. */
const MAX_BYTES = 1024 * 1024;
/** The last line of a signed document: an Ed25519 signature (RFC 8032) of every byte before it. */
const SIGNATURE_LINE = /^# signature: ([A-Za-z0-9+/]{86}==)\n?$/;

const cacheSchema = z.object({
  url: z.string(),
  etag: z.string().nullable(),
  text: z.string(),
  serial: z.int().nullable(),
});
type Cache = z.infer<typeof cacheSchema>;

/** Result of loading: a new document, else the cached one, else none. */
export interface RemoteOutcome {
  readonly document: RemoteDocument | undefined;
  readonly from: "fresh" | "cached" | "none";
  /** Why it is not fresh; for status and log. */
  readonly problem: string | undefined;
}

export interface RemoteConfigParts {
  /** The cache folder. */
  readonly cache: string;
  readonly home: string;
  readonly clock: Clock;
  /** Says which proxy to use. */
  readonly environment: NodeJS.ProcessEnv;
}

/** The document of `remote_config.url`, with its cache. A document that fails a check counts as none at all. */
export class RemoteConfig {
  readonly #parts: RemoteConfigParts;

  constructor(parts: RemoteConfigParts) {
    this.#parts = parts;
  }

  /** The cached document. Sends no request and writes nothing. */
  async cached(section: RemoteSection): Promise<RemoteOutcome> {
    const cache = await this.#readCache(section);
    return cache === undefined
      ? { document: undefined, from: "none", problem: undefined }
      : this.#accept(section, cache);
  }

  /** A fresh document if it can be had and passes every check, else the cached one, else none. Never throws. */
  async refresh(section: RemoteSection, signal?: AbortSignal): Promise<RemoteOutcome> {
    const cache = await this.#readCache(section);
    let problem: string;
    try {
      const response = await this.#fetch(section, cache?.etag ?? null, signal);
      if (response === "unchanged" && cache !== undefined)
        return { ...this.#accept(section, cache), from: "fresh" };
      if (response === "unchanged") throw new Fault("the server says 304 to a first request");
      const checked = this.#check(section, response.text);
      const serial = checked.serial ?? null;
      const seen = cache?.serial ?? -1;
      if (serial !== null && serial < seen) {
        throw new Fault(`serial ${serial} is older than ${seen}, which was seen before`);
      }
      await ensureFolder(this.#parts.cache);
      const entry: Cache = { url: section.url, etag: response.etag, text: response.text, serial };
      await writeAtomically(this.#file(section), JSON.stringify(entry));
      return { document: checked, from: "fresh", problem: undefined };
    } catch (error) {
      problem = describe(error);
    }
    if (cache === undefined) return { document: undefined, from: "none", problem };
    const accepted = this.#accept(section, cache);
    return {
      ...accepted,
      problem: accepted.problem === undefined ? problem : `${problem}; ${accepted.problem}`,
    };
  }

  #accept(section: RemoteSection, cache: Cache): RemoteOutcome {
    try {
      return { document: this.#check(section, cache.text), from: "cached", problem: undefined };
    } catch (error) {
      return { document: undefined, from: "none", problem: `the cached document: ${describe(error)}` };
    }
  }

  /** @throws Fault | ConfigError */
  #check(section: RemoteSection, text: string): RemoteDocument {
    if (section.public_key !== undefined) verifySignature(section.public_key, text);
    const document = parseRemote(section.url, text, section.trust);
    if (section.public_key === undefined) return document;
    if (document.serial === undefined) throw new Fault("a signed document must carry serial");
    if (document.expires === undefined) throw new Fault("a signed document must carry expires");
    if (Date.parse(document.expires) <= this.#parts.clock.now()) {
      throw new Fault(`the document has expired (${document.expires})`);
    }
    return document;
  }

  async #fetch(
    section: RemoteSection,
    etag: string | null,
    signal: AbortSignal | undefined,
  ): Promise<{ text: string; etag: string | null } | "unchanged"> {
    const ca = section.ca_cert === undefined ? undefined : await this.#readAuthority(section.ca_cert);
    const { status, headers, body } = await boundedRequest(section.url, {
      headers: { ...section.headers, ...(etag !== null && { "if-none-match": etag }) },
      timeoutMs: FETCH_TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      environment: this.#parts.environment,
      ...(ca !== undefined && { tls: { ca } }),
      ...(signal !== undefined && { signal }),
    });
    if (status === 304) return "unchanged";
    if (status !== 200) throw new Fault(`the server answers ${status}`);
    const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    return { text, etag: typeof headers["etag"] === "string" ? headers["etag"] : null };
  }

  async #readAuthority(path: string): Promise<string> {
    try {
      return await readFile(expandHome(path, this.#parts.home), "utf8");
    } catch (error) {
      throw new Fault(
        `remote_config.ca_cert ${path} cannot be read (${systemCode(error) ?? "unknown error"})`,
      );
    }
  }

  async #readCache(section: RemoteSection): Promise<Cache | undefined> {
    try {
      const value: unknown = JSON.parse(await readFile(this.#file(section), "utf8"));
      const cache = cacheSchema.safeParse(value).data;
      return cache?.url === section.url ? cache : undefined;
    } catch {
      return undefined;
    }
  }

  #file(section: RemoteSection): string {
    const name = createHash("sha256").update(section.url).digest("hex").slice(0, 16);
    return join(this.#parts.cache, `remote-${name}.json`);
  }
}

/** Why a document is not used; the text is ours. */
class Fault extends Error {}

/** @throws Fault */
function verifySignature(publicKey: string, text: string): void {
  const start = text.trimEnd().lastIndexOf("\n") + 1;
  const signature = SIGNATURE_LINE.exec(text.slice(start))?.[1];
  if (signature === undefined) throw new Fault("the document's last line is not its signature");
  const key = ed25519Key(publicKey);
  const signed = Buffer.from(text.slice(0, start));
  if (key === undefined || !verify(null, signed, key, Buffer.from(signature, "base64"))) {
    throw new Fault("the signature is not of remote_config.public_key");
  }
}

/** The fault in our own words: messages of the network layer may quote addresses with credentials. */
function describe(error: unknown): string {
  if (error instanceof Fault || error instanceof ConfigError) return error.message;
  if (error instanceof TypeError) return "not UTF-8 text";
  if (!(error instanceof AppError)) return "the server cannot be reached (unknown error)";
  if (error.code === "too_large") return `larger than ${MAX_BYTES} bytes`;
  return `the server cannot be reached (${error.message})`;
}
