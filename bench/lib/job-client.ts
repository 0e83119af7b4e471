import { Agent, request } from "node:http";
import { decodeLsRefsResponse, encodeCommandRequest, encodeLsRefsRequest } from "@devplat/git-protocol";
import type { Kind } from "../simulate/model/kinds.ts";
import { HEADERS } from "./raw-fetch.ts";

/** Cost of one request. */
export interface Answer {
  readonly seconds: number;
  readonly bytes: number;
}

/** Sends the three requests of a CI job, as a git client does, over kept connections. Bodies of fetches are discarded. */
export class JobClient {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 512 });

  /** `info/refs`, `ls-refs`, and the `fetch` of a kind. @param behind commit that the client has, for the kind `behind` */
  async job(url: string, kind: Kind, behind: string): Promise<Answer> {
    const info = await this.info(url);
    const { tip, refs, ...listed } = await this.lsRefs(url);
    const fetched = await this.fetch(url, kind, { tip, refs, behind });
    return {
      seconds: info.seconds + listed.seconds + fetched.seconds,
      bytes: info.bytes + listed.bytes + fetched.bytes,
    };
  }

  async info(url: string): Promise<Answer> {
    const { seconds, bytes } = await this.#send(`${url}/info/refs?service=git-upload-pack`, undefined, false);
    return { seconds, bytes };
  }

  /** All refs. `tip` is the head of the default branch. */
  async lsRefs(url: string): Promise<Answer & { readonly tip: string; readonly refs: readonly string[] }> {
    const query = { symrefs: true, peel: false, unborn: false, refPrefixes: [], unknown: [] };
    const body = encodeCommandRequest(encodeLsRefsRequest(query, ["object-format=sha1"]));
    const { seconds, bytes, text } = await this.#send(`${url}/git-upload-pack`, body, true);
    const listed = decodeLsRefsResponse(text);
    const refs = [...new Set(listed.flatMap(({ oid }) => oid ?? []))];
    const tip = listed.find(({ name }) => name === "HEAD")?.oid;
    if (tip === undefined) throw new Error(`${url} has no HEAD`);
    return { seconds, bytes, tip, refs };
  }

  /** A `fetch`. Requests of one kind for the same refs are equal, so that their response can be stored. */
  async fetch(
    url: string,
    kind: Kind,
    {
      tip,
      refs,
      behind,
    }: { readonly tip: string; readonly refs: readonly string[]; readonly behind: string },
  ): Promise<Answer> {
    const wants = kind === "full" ? refs : [tip];
    const args = [
      ...wants.map((oid) => `want ${oid}`),
      ...(kind === "behind" ? [`have ${behind}`] : []),
      ...(kind === "shallow" ? ["deepen 1"] : []),
      ...(kind === "blobless" ? ["filter blob:none"] : []),
      "thin-pack",
      "ofs-delta",
      "include-tag",
      "no-progress",
      "done",
    ];
    const body = encodeCommandRequest({ command: "fetch", capabilities: ["object-format=sha1"], args });
    const { seconds, bytes } = await this.#send(`${url}/git-upload-pack`, body, false);
    return { seconds, bytes };
  }

  close(): void {
    this.#agent.destroy();
  }

  /** @param keep whether the body is returned */
  async #send(
    url: string,
    body: Buffer | undefined,
    keep: boolean,
  ): Promise<Answer & { readonly text: Buffer }> {
    const headers = Object.fromEntries(HEADERS.map((header) => header.split(": ") as [string, string]));
    const startedAt = performance.now();
    const { promise, resolve, reject } = Promise.withResolvers<Answer & { readonly text: Buffer }>();
    const method = body === undefined ? "GET" : "POST";
    const length = body === undefined ? {} : { "Content-Length": body.length };
    const sent = request(
      url,
      { method, agent: this.#agent, headers: { ...headers, ...length } },
      (response) => {
        const kept: Buffer[] = [];
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (keep) kept.push(chunk);
        });
        response.on("error", reject);
        response.on("end", () => {
          if (response.statusCode !== 200) {
            reject(new Error(`${url} answered ${response.statusCode}`));
            return;
          }
          resolve({ seconds: (performance.now() - startedAt) / 1000, bytes, text: Buffer.concat(kept) });
        });
      },
    );
    sent.on("error", reject);
    sent.end(body);
    return promise;
  }
}
