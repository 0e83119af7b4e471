import { isRefName } from "@devplat/git-store";
import { z } from "zod";
import type { RequestContext } from "../../http/request/request-context.ts";
import { parseJson, requireType } from "../../http/request/request-body.ts";
import { MISSING, validateBody } from "../../http/request/validation.ts";
import { BodyReaders } from "../body/body-reader.ts";

/** Maximum bytes of a body: as much as is read of any body before the code host has authorized the caller. */
const MAX_BODY_BYTES = 64 * 1024;
/** Maximum refs of a request. Git compares each of its refs with each name. */
const MAX_REFS = 256;
/** Characters of a ref name that git can store as a file, with its folders. */
const MAX_NAME = 1000;
/** Maximum seconds to wait (spec/svc-scale.md section 5): many proxies end a silent response after 60. */
export const MAX_WAIT_SECONDS = 60;
/** Seconds to wait by default: half of it, because the access check takes time too. */
const DEFAULT_WAIT_SECONDS = 30;

const OID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** Refs and object ids. A record of zod would leave out the key `__proto__` without a word. */
const refsSchema = z.unknown().transform((value, context): ReadonlyMap<string, string> => {
  const found = new Map<string, string>();
  const fault = (message: string, path: string[] = []): void =>
    context.addIssue({ code: "custom", message, path });
  if (value === undefined) fault(MISSING);
  else if (typeof value !== "object" || value === null || Array.isArray(value)) fault("must be an object");
  else {
    const entries = Object.entries(value);
    if (entries.length === 0) fault("must not be empty");
    if (entries.length > MAX_REFS) fault(`must have at most ${MAX_REFS} entries`);
    for (const [name, oid] of entries) {
      if (name.length > MAX_NAME) fault(`the name must have at most ${MAX_NAME} characters`, [name]);
      else if (!isRefName(name)) {
        fault("the name must be HEAD or a full ref name, such as refs/heads/main", [name]);
      } else if (typeof oid !== "string" || !OID.test(oid)) {
        fault("the value must be an object id of 40 or 64 lower-case hexadecimal digits", [name]);
      } else found.set(name, oid);
    }
    if (new Set([...found.values()].map(({ length }) => length)).size > 1) {
      fault("must have object ids of one length");
    }
  }
  return found;
});

/** Body of `POST …/svc/ensure`. */
const schema = z.strictObject({
  refs: refsSchema,
  timeout: z.int().min(0).max(MAX_WAIT_SECONDS).default(DEFAULT_WAIT_SECONDS),
});

/** Objects that must be here: each is the target of a ref, or of the tag that a ref names. */
export interface EnsureRequest {
  readonly refs: ReadonlyMap<string, string>;
  readonly format: "sha1" | "sha256";
  readonly waitMs: number;
}

/** Reads the bodies of requests to ensure objects. */
export class EnsureBodies {
  readonly #bodies: BodyReaders;

  /** @param idleMs milliseconds of silence in a body */
  constructor(idleMs: number) {
    this.#bodies = new BodyReaders({ maxBytes: MAX_BODY_BYTES, idleMs });
  }

  /** @throws GitError, ProblemError, FieldError */
  async read(context: RequestContext): Promise<EnsureRequest> {
    requireType(context.request.headers["content-type"], "application/json");
    context.continue();
    const body = await this.#bodies.read(context.request, context.remoteAddress);
    try {
      const { refs, timeout } = validateBody(schema, parseJson(body.bytes));
      const [first = ""] = refs.values();
      const format = first.length === 64 ? "sha256" : "sha1";
      return { refs, format, waitMs: timeout * 1000 };
    } finally {
      body.release();
    }
  }
}
