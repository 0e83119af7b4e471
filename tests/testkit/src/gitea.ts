import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TestkitError } from "./errors.ts";
import { freePort } from "./free-port.ts";
import { giteaProgram } from "./peer-programs.ts";
import { answers, startPeer } from "./peer.ts";
import { run } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** A real Gitea on loopback, on a database of its own, without SSH. */
export interface Gitea {
  readonly url: string;
  /** Address of its REST API. */
  readonly apiUrl: string;
  /** Calls the API as the administrator. `path` is below `/api/v1`. Rejects for a status of 400 and above. */
  request(method: string, path: string, body?: unknown): Promise<unknown>;
  /** Makes a user with a token that has all rights. The password is {@link GITEA_PASSWORD}. */
  createUser(login: string): Promise<{ readonly token: string }>;
  /** A repository with a README in it. */
  createRepository(owner: string, name: string, options?: { readonly private?: boolean }): Promise<void>;
  /** An OAuth application, confidential. */
  createApplication(
    redirectUri: string,
  ): Promise<{ readonly clientId: string; readonly clientSecret: string }>;
  /**
   * Does what a person does in a browser: visits the address, signs in, and allows the application. Resolves with the
   * address outside of Gitea that the browser is sent to in the end, which is not visited.
   */
  visit(url: string, login: string): Promise<URL>;
  stop(): Promise<void>;
}

export const GITEA_PASSWORD = "a-Password-0f-the-tests";
const ADMINISTRATOR = "administrator";
/** More redirects and forms than a login has. */
const MAX_STEPS = 20;

export async function startGitea(): Promise<Gitea> {
  const { gitea, staticFolder } = giteaProgram();
  const folder = await tempFolder("gitea");
  const configuration = join(folder.path, "app.ini");
  const env = { PATH: process.env["PATH"], HOME: folder.path, USER: process.env["USER"] };
  const perform = async (...args: string[]): Promise<string> => {
    const done = await run(gitea, [...args, "--config", configuration], { env });
    if (done.code === 0) return done.stdout;
    throw TestkitError.failed("Gitea", `${args[0]} ended with ${done.code}: ${done.stderr.slice(-500)}`);
  };
  let url = "";
  let token = "";
  const peer = await startPeer("Gitea", async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    await writeFile(configuration, settings(folder.path, staticFolder, port), { mode: 0o600 });
    if (token === "") {
      await perform("migrate");
      const user = [
        "--username",
        ADMINISTRATOR,
        "--password",
        GITEA_PASSWORD,
        "--must-change-password=false",
      ];
      const mail = ["--email", "administrator@tests.example"];
      const made = await perform("admin", "user", "create", "--admin", "--access-token", ...user, ...mail);
      token = /created\.\.\. ([0-9a-f]{40})/.exec(made)?.[1] ?? "";
    }
    return {
      command: gitea,
      args: ["web", "--config", configuration],
      options: { env },
      isReady: () => answers(`${url}/api/healthz`),
    };
  });

  const request = async (method: string, path: string, body?: unknown, as?: string): Promise<unknown> => {
    const basic = `Basic ${Buffer.from(`${as ?? ""}:${GITEA_PASSWORD}`).toString("base64")}`;
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        authorization: as === undefined ? `token ${token}` : basic,
        "content-type": "application/json",
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (answer.ok) return text === "" ? undefined : JSON.parse(text);
    throw new TestkitError(
      "command_failed",
      `Gitea answered ${method} ${path} with ${answer.status}: ${text}`,
    );
  };

  return {
    url,
    apiUrl: `${url}/api/v1`,
    request: (method, path, body) => request(method, path, body),
    async createUser(login) {
      await request("POST", "/admin/users", {
        username: login,
        email: `${login}@tests.example`,
        password: GITEA_PASSWORD,
        must_change_password: false,
      });
      const made = await request("POST", `/users/${login}/tokens`, { name: "tests", scopes: ["all"] }, login);
      return { token: (made as { sha1: string }).sha1 };
    },
    async createRepository(owner, name, options = {}) {
      await request("POST", `/admin/users/${owner}/repos`, {
        name,
        private: options.private ?? false,
        auto_init: true,
        default_branch: "main",
      });
    },
    async createApplication(redirectUri) {
      const made = (await request("POST", "/user/applications/oauth2", {
        name: "svc",
        redirect_uris: [redirectUri],
        confidential_client: true,
      })) as { client_id: string; client_secret: string };
      return { clientId: made.client_id, clientSecret: made.client_secret };
    },
    visit: (start, login) => visit(url, start, login),
    async stop() {
      await peer.stop();
      await folder.remove();
    },
  };
}

async function visit(base: string, start: string, login: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(start);
  let form: URLSearchParams | undefined;
  for (let step = 0; step < MAX_STEPS; step++) {
    if (url.origin !== base) return url;
    const response = await fetch(url, {
      method: form === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: { cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join("; ") },
      ...(form === undefined ? {} : { body: form }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, key = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(key, value);
    }
    const text = await response.text();
    const location = response.headers.get("location");
    form = undefined;
    if (location !== null) {
      url = new URL(location, url);
      continue;
    }
    const found = [...text.matchAll(/<form[^>]*\saction="([^"]*)"[^>]*>([^]*?)<\/form>/g)].find(
      ([, action = ""]) => ["/user/login", "/login/oauth/grant"].some((path) => action.endsWith(path)),
    );
    if (found === undefined) {
      throw new TestkitError(
        "command_failed",
        `Gitea shows no form at ${url.pathname}: ${text.slice(0, 300)}`,
      );
    }
    url = new URL(found[1] ?? "", url);
    form = new URLSearchParams(
      [...(found[2] ?? "").matchAll(/<input[^>]*type="hidden"[^>]*>/g)].map(([input]) => [
        /name="([^"]*)"/.exec(input)?.[1] ?? "",
        (/value="([^"]*)"/.exec(input)?.[1] ?? "").replaceAll("&amp;", "&"),
      ]),
    );
    if (url.pathname.endsWith("/grant")) form.set("granted", "true");
    else {
      form.set("user_name", login);
      form.set("password", GITEA_PASSWORD);
    }
  }
  throw new TestkitError("command_failed", "the login at Gitea did not come to an end");
}

function settings(folder: string, staticFolder: string, port: number): string {
  return `
RUN_MODE = prod
WORK_PATH = ${folder}
; Test machines run as root; it listens on loopback, for the time of a test.
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${port}
ROOT_URL = http://127.0.0.1:${port}/
STATIC_ROOT_PATH = ${staticFolder}
APP_DATA_PATH = ${join(folder, "data")}
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = ${join(folder, "gitea.db")}
[repository]
ROOT = ${join(folder, "repositories")}
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2_v2
[service]
DISABLE_REGISTRATION = true
[indexer]
ISSUE_INDEXER_TYPE = db
[webhook]
ALLOWED_HOST_LIST = loopback
[actions]
ENABLED = false
[log]
MODE = console
LEVEL = Warn
`;
}
