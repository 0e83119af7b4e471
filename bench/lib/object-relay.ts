import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Secret } from "@devplat/base";
import { fixedCredentials } from "@devplat/object-store";
import { openS3Store } from "@devplat/object-store/s3";
import { cpuSecondsOf, type S3Server } from "@devplat/testkit";

/** A bare Node program that sends an object of a bucket while it hashes and stores it, in a process of its own. */
export interface ObjectRelay {
  /** @param key of the object */
  urlOf(key: string): string;
  readonly cpuSeconds: () => number;
  stop(): Promise<void>;
}

type Place = Pick<S3Server, "endpoint" | "bucket" | "region" | "accessKeyId" | "secretAccessKey">;

/** @param folder for the stored objects */
export async function startObjectRelay(server: S3Server, folder: string): Promise<ObjectRelay> {
  const child = fork(import.meta.filename, [], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const { endpoint, bucket, region, accessKeyId, secretAccessKey } = server;
  child.send({ place: { endpoint, bucket, region, accessKeyId, secretAccessKey }, folder });
  const [{ port }] = (await once(child, "message")) as [{ port: number }];
  const pid = child.pid ?? 0;
  return {
    urlOf: (key) => `http://127.0.0.1:${port}/${encodeURIComponent(key)}`,
    cpuSeconds: () => cpuSecondsOf(pid).own,
    stop: async () => {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}

/** Runs the relay in this process. */
function serve({ place, folder }: { readonly place: Place; readonly folder: string }): void {
  const credentials = fixedCredentials(place.accessKeyId, new Secret(place.secretAccessKey));
  const store = openS3Store({ ...place, credentials });
  let count = 0;
  const relay = async (key: string, response: ServerResponse): Promise<void> => {
    const found = await store.get(key);
    if (!found.modified) throw new Error("the store sends nothing");
    const file = await open(join(folder, `relayed-${++count}`), "w");
    const sha256 = createHash("sha256");
    response.writeHead(200, { "Content-Length": found.bodyLength });
    let position = 0;
    for await (const chunk of found.body as AsyncIterable<Buffer>) {
      sha256.update(chunk);
      const written = file.write(chunk, 0, chunk.length, position);
      position += chunk.length;
      if (!response.write(chunk)) await once(response, "drain");
      await written;
    }
    sha256.digest();
    await file.sync();
    await file.close();
    response.end();
  };
  const listener = createServer((request, response) => {
    relay(decodeURIComponent((request.url ?? "/").slice(1)), response).catch(() => response.destroy());
  });
  listener.listen(0, "127.0.0.1", () => process.send?.({ port: (listener.address() as AddressInfo).port }));
}

if (process.argv[1] === import.meta.filename) process.once("message", serve);
