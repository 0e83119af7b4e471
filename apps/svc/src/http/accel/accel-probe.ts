import { lstat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import type { RequestContext } from "../request/request-context.ts";
import { SANDBOX_HEADERS } from "../request/text-answer.ts";
import { ACCEL_LOCATION, type Accel } from "./accel.ts";
import { PROBE_MS, PROBE_NAME, PROBE_PATH, type ProbeResult } from "./probe-file.ts";

/** A path as the doctor asks, or as a web server that has no such internal location passes it on. */
const PROBE_REQUEST = new RegExp(`^(${PROBE_PATH}|${ACCEL_LOCATION})(${PROBE_NAME.source.slice(1, -1)})$`);

export interface AccelProbeParts {
  readonly accel: Pick<Accel, "refusal">;
  /** The folder from which the web server sends. */
  readonly folder: string;
}

/**
 * Hands a probe file to the web server in front, as it is done with stored responses, so that `svc doctor` can try the way of
 * the bytes. The name in the path is random, and the doctor has written a file with this name. Requests without such a file
 * are answered as any other path that does not exist.
 */
export class AccelProbe {
  readonly #parts: AccelProbeParts;

  constructor(parts: AccelProbeParts) {
    this.#parts = parts;
  }

  /** Whether a request has the form of a probe. */
  accepts({ method, url = "" }: IncomingMessage): boolean {
    return method === "GET" && PROBE_REQUEST.test(url);
  }

  /** @returns false if no doctor has written this file: nothing was sent. Never rejects */
  async answer(context: RequestContext): Promise<boolean> {
    const { request, response } = context;
    const [, path, name] = PROBE_REQUEST.exec(request.url ?? "") ?? [];
    if (name === undefined || !(await this.#isFresh(name))) return false;
    const refused = path === ACCEL_LOCATION ? "location" : this.#parts.accel.refusal(request);
    const head = { ...SANDBOX_HEADERS, "Cache-Control": "no-store", "X-Request-Id": context.id };
    if (refused === undefined) {
      const type = "application/octet-stream";
      response.writeHead(200, { ...head, "Content-Type": type, "X-Accel-Redirect": ACCEL_LOCATION + name });
      response.end();
      return true;
    }
    const result: ProbeResult = { refused };
    response.writeHead(200, { ...head, "Content-Type": "application/json" });
    response.end(JSON.stringify(result));
    return true;
  }

  async #isFresh(name: string): Promise<boolean> {
    const facts = await lstat(join(this.#parts.folder, name)).catch(() => undefined);
    return facts?.isFile() === true && Math.abs(Date.now() - facts.mtimeMs) < PROBE_MS;
  }
}
