import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { git } from "@devplat/testkit";
import { Repository } from "../repository/repository.ts";
import { createGitHandler, toNodeListener } from "./http.ts";

/** A repository behind a handler. */
export interface Served {
  readonly url: string;
  readonly folder: string;
  readonly errors: Error[];
  readonly repository: Repository;
}

/** Serves a bare repository until the end of `use`. */
export async function serving(
  path: string,
  folder: string,
  use: (served: Served) => Promise<void>,
): Promise<void> {
  const repository = await Repository.open(path);
  const errors: Error[] = [];
  const handler = createGitHandler({
    repository: () => repository,
    onError: (error) => errors.push(error as Error),
  });
  const server = createServer(toNodeListener(handler)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/demo`;
  try {
    await use({ url, folder, errors, repository });
  } finally {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
    repository.close();
  }
}

let clones = 0;

/** Clones with stock git, and returns what the clone has. */
export async function cloned(url: string, folder: string, version = 2): Promise<string> {
  const path = join(folder, `clone-${clones++}.git`);
  await git(["-c", `protocol.version=${version}`, "clone", "-q", "--mirror", url, path]);
  await git(["-C", path, "fsck", "--full", "--strict"]);
  return contentOf(path);
}

/** Refs, reachable objects and boundary of a repository. */
export async function contentOf(path: string): Promise<string> {
  const refs = await git(["-C", path, "for-each-ref", "--format=%(objectname) %(refname)"]);
  const objects = await git(["-C", path, "rev-list", "--objects", "--no-object-names", "--all"]);
  const shallow = join(path, "shallow");
  const cut = existsSync(shallow) ? readFileSync(shallow, "utf8").split("\n").toSorted().join("\n") : "";
  return [refs, objects.split("\n").toSorted().join("\n"), cut].join("\n\n");
}
