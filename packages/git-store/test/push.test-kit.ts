import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { git, gitEnvironment, run, type Finished } from "@devplat/testkit";
import { createGitHandler, toNodeListener, type GitHandlerOptions } from "../src/http/http.ts";

/** A handler behind `node:http`. */
export async function serve(options: GitHandlerOptions): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer(toNodeListener(createGitHandler(options)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Runs stock git, and returns its result also after a failure. */
export async function tryGit(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  return run("git", args, { env: { ...gitEnvironment(), ...env } });
}

/** Refs of a repository, as stock git lists them. */
export async function refsOf(path: string): Promise<string> {
  return git(["-C", path, "for-each-ref", "--format=%(objectname) %(refname)"]);
}
