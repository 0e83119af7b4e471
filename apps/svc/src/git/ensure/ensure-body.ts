import { isRefName } from "@devplat/git-store";
import { z } from "zod";
import type { RequestContext } from "../../http/request/request-context.ts";
import { parseJson, requireType } from "../../http/request/request-body.ts";
import { validateBody } from "../../http/request/validation.ts";
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

const name = z
  .string()
  .max(MAX_NAME)
  .refine((value) => isRefName(value), "must be HEAD or a full ref name, such as refs/heads/main");
const oid = z
  .string()
  .regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, "must be an object id of 40 or 64 lower-case hexadecimal digits");

/** Body of `POST …/svc/ensure`. */
const schema = z.strictObject({
  refs: z.record(z.string(), oid).superRefine((refs, context) => {
    const names = Object.keys(refs);
    const fault = (message: string, path: string[] = []): void =>
      context.addIssue({ code: "custom", message, path });
    if (names.length === 0) fault("must not be empty");
    if (names.length > MAX_REFS) fault(`must have at most ${MAX_REFS} entries`);
    for (const each of names) {
      const { error } = name.safeParse(each);
      if (error !== undefined) fault(error.issues[0]?.message ?? "is not a ref name", [each]);
    }
    if (new Set(Object.values(refs).map(({ length }) => length)).size > 1) {
      fault("must have object ids of one length");
    }
  }),
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
      const entries = new Map(Object.entries(refs));
      const [first = ""] = entries.values();
      const format = first.length === 64 ? "sha256" : "sha1";
      return { refs: entries, format, waitMs: timeout * 1000 };
    } finally {
      body.release();
    }
  }
}
