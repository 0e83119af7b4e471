/** A request that cannot be served, with the status and the text of its response. */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/**
 * The body of a request, inflated if it is compressed with gzip.
 *
 * @throws HttpError 415 for another compression
 */
export function inflatedBody(request: Request): ReadableStream<Uint8Array> | undefined {
  const encoding = encodingOf(request);
  if (!["identity", "gzip", "x-gzip"].includes(encoding)) {
    throw new HttpError(
      415,
      `the body is compressed with ${JSON.stringify(encoding)}; send it plain or with gzip`,
    );
  }
  if (request.body === null) return undefined;
  return encoding === "identity" ? request.body : request.body.pipeThrough(new DecompressionStream("gzip"));
}

/**
 * Reads the next chunk of {@link inflatedBody}.
 *
 * @throws HttpError 400 if the body does not inflate
 */
export async function nextChunk(
  request: Request,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<Uint8Array | undefined> {
  try {
    return (await reader.read()).value;
  } catch (error) {
    const isCompressed = encodingOf(request) !== "identity";
    if (isCompressed && error instanceof TypeError) throw new HttpError(400, "the body does not inflate");
    throw error;
  }
}

function encodingOf(request: Request): string {
  return request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
}

/**
 * Reads the whole body of a request, and inflates it if it is compressed with gzip.
 *
 * @param limit bytes after inflating
 * @throws HttpError 400 if it does not inflate, 413 above the limit, 415 for another compression
 */
export async function readBody(request: Request, limit: number): Promise<Buffer> {
  const stream = inflatedBody(request);
  if (stream === undefined) return Buffer.alloc(0);
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const value = await nextChunk(request, reader);
    if (value === undefined) return Buffer.concat(chunks);
    bytes += value.length;
    if (bytes > limit) {
      await reader.cancel().catch(() => undefined);
      throw new HttpError(413, `the body has more than ${limit} bytes`);
    }
    chunks.push(value);
  }
}
