import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import {
  decodeCommandBody,
  decodeFetchRequest,
  decodeLsRefsRequest,
  encodeCapabilityAdvertisement,
} from "@devplat/git-protocol";
import type { ReachabilityIndex, Repository } from "@devplat/git-store";
import { uploadPackV2Fetch } from "@devplat/git-store/upload-pack";
import { lsRefsResponse } from "@devplat/git-store/ls-refs";

/** A git server of a few lines over one store: smart HTTP, protocol v2, fetches only. */
export interface StoreServer {
  readonly url: string;
  /** Commands so far, in order. */
  readonly commands: string[];
  stop(): Promise<void>;
}

export async function serveStore(repository: Repository, index: ReachabilityIndex): Promise<StoreServer> {
  const commands: string[] = [];
  const server = createServer((request, response) => {
    answer(repository, index, request, response, commands).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : new Error(String(error)));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/repository.git`,
    commands,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function answer(
  repository: Repository,
  index: ReachabilityIndex,
  request: IncomingMessage,
  response: ServerResponse,
  commands: string[],
): Promise<void> {
  if (request.method === "GET") {
    const capabilities = new Map<string, string | undefined>([
      ["agent", "test"],
      ["ls-refs", "unborn"],
      ["fetch", "shallow wait-for-done filter ref-in-want sideband-all"],
      ["object-format", repository.format],
    ]);
    response.setHeader("content-type", "application/x-git-upload-pack-advertisement");
    response.end(encodeCapabilityAdvertisement({ service: "git-upload-pack", capabilities }));
    return;
  }
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const raw = Buffer.concat(parts);
  const body = decodeCommandBody(request.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw);
  response.setHeader("content-type", "application/x-git-upload-pack-result");
  if (body.kind === "probe") {
    response.end();
    return;
  }
  const command = body.commands[0]!.request;
  commands.push(command.command);
  const refs = await repository.refs();
  if (command.command === "ls-refs") {
    response.end(lsRefsResponse(decodeLsRefsRequest(command), refs, await repository.head()));
    return;
  }
  const graph = index.acquire();
  try {
    const fetch = decodeFetchRequest(command, repository.format);
    const head = await repository.head();
    const headOid = "oid" in head ? head.oid : refs.get(head.ref)?.oid;
    for await (const chunk of uploadPackV2Fetch(graph, fetch, { refs, head: headOid })) {
      if (!response.write(chunk)) await once(response, "drain");
    }
    response.end();
  } finally {
    graph.release();
  }
}
