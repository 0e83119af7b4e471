import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { append, linear } from "../repositories/repositories.ts";
import { tempFolder } from "../temp-folder.ts";
import { Access, type Visibility } from "./access.ts";
import { API_PREFIX } from "./api.ts";
import { AppSide, type CodeHostApps } from "./apps.ts";
import type { Call } from "./calls.ts";
import { Faults, type Fault, type FaultMatch } from "./faults.ts";
import { OauthSide, type CodeHostOauth } from "./oauth.ts";
import { createCodeHostServer } from "./server.ts";

export interface AddRepositoryOptions {
  /** Default false. */
  readonly private?: boolean;
  /** Fills the folder, which does not exist yet, with a bare repository. Default: a short linear history. */
  readonly build?: (dir: string) => Promise<void> | void;
}

export interface CodeHostOptions {
  /** The port of 127.0.0.1. Default: a free one. */
  readonly port?: number;
  /**
   * Whether fetches may name refs instead of ids. Default true. GitHub does not offer it, and git before 2.41 cannot
   * read its own server's answer to a shallow fetch that does.
   */
  readonly refInWant?: boolean;
  /** Program that serves repositories. Default: the installed git. */
  readonly git?: string;
}

/**
 * A code host on loopback: stock `git http-backend` behind HTTP, for protocol v0, v1, v2, dumb HTTP and push, with
 * GitHub's answers for who may see what. Names are case-insensitive, `.git` is optional.
 */
export interface CodeHost {
  /** `http://127.0.0.1:PORT`; a repository is at `{url}/{owner}/{name}.git`. */
  readonly url: string;
  /** Address of the REST API, which has GitHub's form. */
  readonly apiUrl: string;
  /** `127.0.0.1:PORT` */
  readonly host: string;
  /** The folder of the repositories. */
  readonly root: string;
  /** Logins by OAuth. */
  readonly oauth: CodeHostOauth;
  /** Apps, their installations and tokens. */
  readonly apps: CodeHostApps;
  addRepository(
    owner: string,
    name: string,
    options?: AddRepositoryOptions,
  ): Promise<{ path: string; url: string }>;
  /** Adds commits to a branch, as a push from elsewhere would. */
  push(owner: string, name: string, options?: { branch?: string; commits?: number }): Promise<void>;
  /** A login with its token, which is accepted as Basic (either field), Bearer and token. */
  addUser(login: string, token: string, options?: { repositories?: readonly string[] }): void;
  revoke(token: string): void;
  /** The account keeps its number and its tokens; the old login may be taken by another. */
  renameUser(login: string, newLogin: string): void;
  setVisibility(owner: string, name: string, visibility: Visibility): void;
  /** The old name answers 301 from then on. */
  rename(owner: string, name: string, newOwner: string, newName: string): void;
  /** Removes a repository and its data; the name may be added again. */
  remove(owner: string, name: string): Promise<void>;
  /** Every request so far, in the order of arrival. */
  readonly calls: readonly Call[];
  resetCalls(): void;
  inject(match: FaultMatch, fault: Fault): void;
  clearFaults(): void;
  /** Drops all connections and removes the repositories. */
  stop(): Promise<void>;
}

export async function startCodeHost(options: CodeHostOptions = {}): Promise<CodeHost> {
  const folder = await tempFolder("code-host");
  const access = new Access();
  const faults = new Faults();
  const oauth = new OauthSide(access);
  const apps = new AppSide(access, API_PREFIX);
  const calls: Call[] = [];
  let url = "";
  const server = createCodeHostServer({
    access,
    faults,
    oauth,
    apps,
    record: (call) => calls.push(call),
    refInWant: options.refInWant ?? true,
    git: options.git ?? "git",
    base: () => url,
  });
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("a TCP server has a port");
  const host = `127.0.0.1:${address.port}`;
  url = `http://${host}`;
  let added = 0;
  return {
    url,
    apiUrl: url + API_PREFIX,
    host,
    root: folder.path,
    oauth,
    apps,
    calls,
    async addRepository(owner, name, { private: hidden = false, build = (dir: string) => linear(dir) } = {}) {
      // Numbered, so that a name can be removed and used again while git still reads the old folder.
      const parent = join(folder.path, String(++added), owner);
      await mkdir(parent, { recursive: true });
      const path = join(parent, `${name}.git`);
      await build(path);
      access.add(owner, name, path, hidden ? "private" : "public");
      return { path, url: `${url}/${owner}/${name}.git` };
    },
    push: (owner, name, change) => append(access.get(owner, name).path, change),
    addUser: (login, token, { repositories } = {}) => access.addUser(login, token, repositories),
    revoke: (token) => access.revoke(token),
    renameUser: (login, newLogin) => access.renameUser(login, newLogin),
    setVisibility: (owner, name, visibility) => access.setVisibility(owner, name, visibility),
    rename: (owner, name, newOwner, newName) => access.rename(owner, name, newOwner, newName),
    remove: (owner, name) => rm(access.remove(owner, name).path, { recursive: true, force: true }),
    resetCalls: () => void calls.splice(0),
    inject: (match, fault) => faults.inject(match, fault),
    clearFaults: () => faults.clear(),
    async stop() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, "close");
      await folder.remove();
    },
  };
}
