import { fieldPath } from "../../field-path.ts";
import { ProblemError } from "./problem.ts";
import { pointerTo, repeatedKey } from "./repeated-key.ts";

/** Largest JSON body (spec/svc.md section 3). */
const MAX_JSON_BYTES = 1024 * 1024;
/** Largest form of a page: a few fields. */
const MAX_FORM_BYTES = 64 * 1024;
/** Milliseconds for a whole body: these are small, and who sends them slower than that holds a connection for nothing. */
const READ_TIMEOUT_MS = 30_000;

/** A JSON body in which no object has a key twice. @throws ProblemError 400, 408, 413, 415 */
export async function readJson(request: Request): Promise<unknown> {
  requireType(request.headers.get("content-type"), "application/json");
  return parseJson(await readBytes(request, MAX_JSON_BYTES));
}

/** The value of a JSON body in which no object has a key twice. @throws ProblemError 400 */
export function parseJson(bytes: Buffer): unknown {
  const text = decoded(bytes);
  const value = parsed(text);
  const pointer = repeatedKey(text);
  if (pointer !== undefined) throw repeatedFields(pointer);
  return value;
}

/** A form in which no field is there twice. @throws ProblemError 400, 408, 413, 415 */
export async function readForm(request: Request): Promise<URLSearchParams> {
  requireType(request.headers.get("content-type"), "application/x-www-form-urlencoded");
  const form = new URLSearchParams(decoded(await readBytes(request, MAX_FORM_BYTES)));
  const names = new Set<string>();
  for (const name of form.keys()) {
    if (names.has(name)) throw repeatedFields(pointerTo([name]));
    names.add(name);
  }
  return form;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's message quotes its input, which may be a secret.
    throw new ProblemError({ code: "malformed_body", detail: "The body is not valid JSON" });
  }
}

function repeatedFields(pointer: string): ProblemError {
  return new ProblemError({
    code: "repeated_field",
    detail: `Field "${fieldPath(pointer)}": given more than once`,
    errors: [{ pointer, message: "given more than once" }],
  });
}

/** @param given the `Content-Type` of a request. @throws ProblemError 415 */
export function requireType(given: string | null | undefined, wanted: string): void {
  const type = (given ?? "").split(";")[0]?.trim().toLowerCase();
  if (type === wanted) return;
  throw new ProblemError({
    code: "not_json",
    detail: `Send the body as Content-Type: ${wanted}`,
  });
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ProblemError({ code: "malformed_body", detail: "The body is not UTF-8" });
  }
}

/**
 * @param options.timeoutMs milliseconds for all of it; 30 seconds if not given
 * @param options.signal broken off by it, as if it had come too late
 * @throws ProblemError 400, 408, 413
 */
export async function readBytes(
  request: Request,
  limit: number,
  {
    timeoutMs = READ_TIMEOUT_MS,
    signal,
  }: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
): Promise<Buffer> {
  const tooLarge = new ProblemError({
    code: "body_too_large",
    detail: `The body is larger than ${limit} bytes`,
    headers: { Connection: "close" },
  });
  if (Number(request.headers.get("content-length") ?? 0) > limit) throw tooLarge;
  if (request.body === null) return Buffer.alloc(0);
  const reader = request.body.getReader();
  const late = Promise.withResolvers<never>();
  const giveUp = (): void =>
    late.reject(
      new ProblemError({
        code: "request_timeout",
        detail: "The body did not arrive in time",
        headers: { Connection: "close" },
      }),
    );
  const timer = setTimeout(giveUp, timeoutMs);
  signal?.addEventListener("abort", giveUp, { once: true });
  late.promise.catch(() => undefined);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late.promise]);
      if (done) break;
      size += value.byteLength;
      if (size > limit) throw tooLarge;
      chunks.push(value);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    void reader.cancel().catch(() => undefined);
    if (error instanceof ProblemError) throw error;
    throw new ProblemError({
      code: "malformed_body",
      detail: "The body broke off",
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
  }
}
