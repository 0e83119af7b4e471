import {
  callJson,
  type CodeHost,
  type CodeHostOptions,
  type Finished,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startSvc,
  type Svc,
  type SvcOptions,
  type TempFolder,
  tempFolder,
} from "@devplat/testkit";

export const HOST_TOKEN = "ghp_planted0HostToken";

export interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** A code host with a private repository, the real service in front of it, and what callers of both need. */
export interface AdminStand {
  readonly host: CodeHost;
  readonly svc: Svc;
  /** An admin's session token; the admin's stored credential opens the code host. */
  readonly admin: string;
  /** A JSON request to the administration. */
  call(method: string, path: string, body?: unknown, token?: string): Promise<Answer>;
  /** A proxy token of the admin. */
  mint(repository: string, scopes: string): Promise<{ readonly token: string; readonly id: string }>;
  /** Clones `owner/name` into a new folder, with credentials in the address or without. */
  clone(
    repository: string,
    userinfo?: string,
    args?: readonly string[],
  ): Promise<Finished & { readonly path: string }>;
  stop(): Promise<void>;
}

export async function startAdminStand(
  options: SvcOptions = {},
  hostOptions: CodeHostOptions = {},
): Promise<AdminStand> {
  const host = await startCodeHost(hostOptions);
  const folder: TempFolder = await tempFolder("svc-admin");
  host.addUser("alice", HOST_TOKEN);
  await host.addRepository("acme", "widgets", { private: true, build: repositories.linear });
  await host.addRepository("acme", "other", { private: true, build: repositories.linear });
  const svc = await startSvc({
    ...options,
    codeHost: host,
    env: { SVC_DEV_HOST_TOKEN: HOST_TOKEN, ...options.env },
  });
  let clones = 0;
  const call = async (method: string, path: string, body?: unknown, token = admin): Promise<Answer> =>
    callJson(svc.url + path, { method, token, body });
  let admin = "";
  admin = String(
    (await call("POST", "/auth/test-login", { username: "root", role: "admin" })).body["session_token"],
  );
  return {
    host,
    svc,
    admin,
    call,
    async mint(repository, scopes) {
      const { status, body } = await call("POST", "/api/tokens", { repository, scopes, duration: "1h" });
      if (status !== 201) throw new Error(`minting was answered with ${status}: ${String(body["message"])}`);
      return { token: String(body["token"]), id: String(body["id"]) };
    },
    async clone(repository, userinfo = "", args = []) {
      const path = `${folder.path}/clone-${++clones}`;
      const url = `${svc.url.replace("://", userinfo === "" ? "://" : `://${userinfo}@`)}/${repository}.git`;
      const finished = await run("git", [...args, "clone", "--quiet", url, path], { env: gitEnvironment() });
      return { ...finished, path };
    },
    async stop() {
      await svc.stop();
      await host.stop();
      await folder.remove();
    },
  };
}
