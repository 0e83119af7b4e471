import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@devplat/base";
import {
  gitEnvironment,
  launchChromium,
  repositories,
  run,
  startCodeHost,
  startSvc,
  SVC_LAUNCHER,
  tempFolder,
  type Browser,
  type CodeHost,
  type Page,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { engineFor } from "../../apps/agent/src/enrol/engines.ts";

describe("svc in production mode, with logins at a code host", { timeout: 480_000 }, () => {
  let host: CodeHost;
  let svc: Svc;
  let browser: Browser;
  let folder: TempFolder;

  before(async () => {
    host = await startCodeHost();
    await host.addRepository("acme", "secret", { private: true, build: repositories.linear });
    host.addUser("ada", "unused-token", { repositories: ["acme/secret"] });
    host.oauth.settings.consent = "form";
    folder = await tempFolder("svc-login");
    [svc, browser] = await Promise.all([
      startSvc({
        codeHost: host,
        env: {
          SVC_DEV_MODE: undefined,
          SVC_ENCRYPTION_KEY: "0123456789abcdef".repeat(4),
          SVC_ADMINS: "root",
          SVC_HOST_CLIENT_ID: host.oauth.clientId,
          SVC_HOST_CLIENT_SECRET: host.oauth.clientSecret,
        },
      }),
      launchChromium(),
    ]);
  });
  after(async () => {
    await browser.close();
    await svc.stop();
    await host.stop();
    await folder.remove();
  });

  const signIn = async (page: Page, login: string, path = "/ui"): Promise<void> => {
    page.setDefaultTimeout(60_000);
    await page.goto(svc.url + path);
    await page.getByRole("link", { name: /^Sign in with 127\.0\.0\.1/ }).click();
    await page.getByLabel("Login").fill(login);
    await page.getByRole("button", { name: "Authorize" }).click();
    await page.waitForURL(`${svc.url}/**`);
  };
  /** The program with a configuration folder of its own. */
  const environment = (more: Record<string, string> = {}): NodeJS.ProcessEnv => ({
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"))),
    XDG_CONFIG_HOME: join(folder.path, "config"),
    XDG_CACHE_HOME: join(folder.path, "cache"),
    ...more,
  });
  const command = async (...args: string[]) =>
    run(SVC_LAUNCHER, args, { cwd: folder.path, env: environment() });
  const clone = async (userinfo: string, path: string) => {
    const url = `${svc.url.replace("://", `://${userinfo}@`)}/acme/secret.git`;
    return run("git", ["clone", "--quiet", url, join(folder.path, path)], { env: gitEnvironment() });
  };

  it("a person signs in in a browser, mints a token that clones, and signs out [svc 7.8]", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await signIn(page, "ada", "/admin/tokens");
    assert.equal(page.url(), `${svc.url}/admin/tokens`);
    await page.getByLabel("Repository").fill("acme/secret");
    await page.getByRole("button", { name: "Create token" }).click();
    const token = await page.getByTestId("token").innerText();
    assert.equal((await clone(`x:${token}`, "one")).code, 0);

    await page.goto(`${svc.url}/ui`);
    await page.getByText("Connected", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Disconnect" }).click();
    await page.getByText("Not connected", { exact: true }).waitFor();
    const refused = await clone(`x:${token}`, "two");
    assert.notEqual(refused.code, 0);
    await page.getByRole("link", { name: /^Connect with/ }).click();
    await page.getByLabel("Login").fill("ada");
    await page.getByRole("button", { name: "Authorize" }).click();
    await page.getByText("Connected", { exact: true }).waitFor();
    assert.equal((await clone(`x:${token}`, "three")).code, 0);

    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await context.close();
  });

  it("svc auth login: a code, approved in a browser; status, other commands, logout", async () => {
    const anonymous = await command("auth", "status");
    assert.deepEqual([anonymous.code, anonymous.stdout], [2, ""]);
    const login = spawn(SVC_LAUNCHER, ["auth", "login", "--url", svc.url], {
      env: environment(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    // It may end before the page says so.
    const ended = once(login, "close");
    const printed = output(login);
    const code = await untilPrinted(printed, /type the code (\S+)/);
    const context = await browser.newContext();
    const page = await context.newPage();
    await signIn(page, "ada", "/auth/device");
    await page.getByLabel("Code").fill(code.toLowerCase());
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("heading", { name: "Connect svc-cli?" }).waitFor();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("status").filter({ hasText: "svc-cli is signed in" }).waitFor();
    await ended;
    assert.equal(login.exitCode, 0, printed.text);
    assert.match(printed.text, new RegExp(`signed in to ${svc.url} as ada, until 20`));
    assert.doesNotMatch(printed.text, /svcr_/);

    const file = join(folder.path, "config", "svc", "credentials.json");
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    const session = (
      JSON.parse(await readFile(file, "utf8")) as { services: Record<string, { token: string }> }
    ).services[svc.url]?.token;
    const status = await command("auth", "status", "--json");
    assert.deepEqual(JSON.parse(status.stdout), {
      url: svc.url,
      username: "ada",
      role: "user",
      account: "connected",
      source: file,
    });
    const elsewhere = await command("auth", "status", "--url", "http://127.0.0.1:1");
    assert.deepEqual(
      [elsewhere.code, elsewhere.stderr.split("\n")[0]],
      [2, "svc: Not signed in to http://127.0.0.1:1"],
    );
    const token = await command(
      "token",
      "create",
      "acme/secret",
      "--scopes",
      "contents:read",
      "--duration",
      "1h",
    );
    assert.equal((await clone(`x:${token.stdout.trim()}`, "four")).code, 0);
    await page.goto(`${svc.url}/ui`);
    await page.getByText("svc-cli").first().waitFor();
    assert.match((await command("auth", "logout")).stdout, /^signed out of/);
    const gone = await fetch(`${svc.url}/api/session`, {
      headers: { authorization: `Bearer ${session ?? ""}` },
    });
    assert.equal(gone.status, 401);
    assert.match((await command("auth", "logout")).stdout, /^not signed in/);
    await context.close();
  });

  it("the daemon's svc engine enrols against it", async () => {
    const engine = engineFor(
      { engine: "svc", url: svc.url, client_id: "agent", scopes: ["contents"] } as Parameters<
        typeof engineFor
      >[0],
      {
        store: undefined as never,
        username: "ada",
        clock: { ...systemClock, sleep: async (ms, signal) => systemClock.sleep(Math.min(ms, 200), signal) },
      },
    );
    const context = await browser.newContext();
    const page = await context.newPage();
    const visited = Promise.withResolvers<{ url: string; code?: string | undefined }>();
    const running = engine.run(
      { visit: (step: { url: string; code?: string }) => visited.resolve(step) } as unknown as Parameters<
        typeof engine.run
      >[0],
      AbortSignal.timeout(60_000),
    );
    const { url, code } = await visited.promise;
    assert.equal(url, `${svc.url}/auth/device`);
    await signIn(page, "ada", "/auth/device");
    await page.getByLabel("Code").fill(code ?? "");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("button", { name: "Approve" }).click();
    const fields = await running;
    const me = await fetch(`${svc.url}/api/session`, {
      headers: { authorization: `Bearer ${fields.get("access_token") as string}` },
    });
    assert.equal(((await me.json()) as { username: string }).username, "ada");
    assert.notEqual(fields.get("expires_at"), undefined);
    await context.close();
  });

  it("an agent token clones by an app's installation, and not after its revocation", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await signIn(page, "root", "/admin/apps");
    await page.getByLabel("Name", { exact: true }).fill("svc of the tests");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("button", { name: /^Create the app at/ }).click();
    await page.getByRole("status").filter({ hasText: "was created and registered" }).waitFor();
    const cookie = (await context.cookies()).find(({ name }) => name === "svc_session")?.value ?? "";
    const api = async (method: string, path: string, body?: unknown) => {
      const answer = await fetch(svc.url + path, {
        method,
        headers: { authorization: `Bearer ${cookie}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return {
        status: answer.status,
        body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>,
      };
    };
    const request = { repository: "acme/secret", scopes: "contents:read", duration: "1h", type: "agent" };
    const refused = await api("POST", "/api/tokens", request);
    assert.equal(refused.status, 422);
    assert.match(String(refused.body["detail"]), /is not installed on acme: install it at/);
    const [listed] = (await api("GET", "/api/apps")).body as unknown as { app_id: string }[];
    const made = { id: Number(listed?.app_id), slug: "", privateKey: "", webhookSecret: "" };
    host.apps.install(made, "acme", ["secret"]);
    const minted = await api("POST", "/api/tokens", request);
    assert.equal(minted.status, 201, JSON.stringify(minted.body));
    const token = String(minted.body["token"]);
    assert.equal((await clone(`x:${token}`, "five")).code, 0);
    const asRoot = async (...args: string[]) =>
      run(SVC_LAUNCHER, args, {
        cwd: folder.path,
        env: environment({ SVC_URL: svc.url, SVC_TOKEN: cookie }),
      });
    assert.match((await asRoot("app", "list")).stdout, /^APP ID[^]*svc of the tests +acme +yes +manifest/);
    const checked = await asRoot("app", "check", listed?.app_id ?? "");
    assert.match(checked.stdout, /its key works\nmay     contents:write\n[^]*on      acme: selected\n/);
    assert.equal((await asRoot("app", "remove", "none")).code, 1);

    const issued = host.apps.issued.at(-1);
    assert.deepEqual(
      [issued?.repositories, issued?.permissions],
      [["secret"], { contents: "read", metadata: "read" }],
    );
    assert.equal((await api("DELETE", `/api/tokens/${String(minted.body["id"])}`)).status, 204);
    assert.equal(host.apps.revoked.has(issued?.token ?? ""), true);
    assert.notEqual((await clone(`x:${token}`, "six")).code, 0);

    // Warming uses the same app.
    const cached = await api("POST", "/api/cached-repos", { owner: "acme", name: "secret" });
    assert.equal((await api("POST", `/api/cached-repos/${String(cached.body["id"])}/warm`)).status, 202);
    const warmed = async (): Promise<boolean> =>
      /svc_cache_warm_total\{result="success"\} [1-9]/.test(await (await fetch(svc.metricsUrl)).text());
    for (let round = 0; round < 3000 && !(await warmed()); round++) await sleep(20);
    assert.equal(await warmed(), true);
    assert.deepEqual(host.apps.issued.at(-1)?.permissions, { contents: "read", metadata: "read" });

    const key = join(folder.path, "app.pem");
    const other = host.apps.addApp("second");
    await writeFile(key, other.privateKey);
    assert.match(
      (await asRoot("app", "add", String(other.id), "--key", key)).stdout,
      /^registered second \(\d+\)\n$/,
    );
    assert.match((await asRoot("app", "set", "second", "--default")).stdout, /, the default\n$/);
    assert.match((await asRoot("app", "remove", "second")).stdout, /^removed second\n$/);
    await context.close();
  });

  it("none of the secrets that went through it is in its log", () => {
    assert.doesNotMatch(svc.log(), /planted|svcr_[0-9A-Za-z]{20}|BEGIN|client-secret/);
  });
});

interface Output {
  text: string;
}

function output(child: ChildProcess): Output {
  const printed: Output = { text: "" };
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => (printed.text += chunk.toString("utf8")));
  }
  return printed;
}

async function untilPrinted(printed: Output, wanted: RegExp): Promise<string> {
  for (let round = 0; round < 3000; round++) {
    const found = wanted.exec(printed.text)?.[1];
    if (found !== undefined) return found;
    await sleep(20);
  }
  throw new Error(`not printed: ${String(wanted)}; but ${printed.text}`);
}
