import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import type { Stand } from "./svc-git-stand.ts";

/** Posts a fetch on a connection of its own. @returns the response, paused before its first byte */
export async function beginFetch(
  { url }: Pick<Stand, "url">,
  repository: string,
  body: Buffer,
): Promise<IncomingMessage> {
  const outgoing = request(`${url}/${repository}/git-upload-pack`, {
    method: "POST",
    agent: false,
    headers: { "Content-Type": "application/x-git-upload-pack-request", "Git-Protocol": "version=2" },
  });
  outgoing.end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.pause();
  return response;
}

/** Reads a paused response to its end, or until its connection breaks. */
export async function finishFetch(response: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  response.on("data", (chunk: Buffer) => parts.push(chunk));
  response.on("error", () => undefined);
  const closed = Promise.withResolvers<void>();
  response.once("close", closed.resolve);
  response.resume();
  await closed.promise;
  return Buffer.concat(parts);
}
