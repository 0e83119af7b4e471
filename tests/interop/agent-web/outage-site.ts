import { until, type Vault } from "@devplat/testkit";
import { AgentHome, writePolicies, type RunningDaemon } from "../agent-auth-stand.ts";
import { PlainBrowser } from "./plain-browser.ts";

/** State of the store in `agent status` and the API. */
export interface SeenStatus {
  readonly authenticated: boolean;
  readonly store: { readonly reachable: boolean; readonly last_error: string | null };
  readonly sync: { readonly last_cycle_at: string | null; readonly next_cycle_at: string | null };
}

/** A daemon with pages, signed in by a token file, whose next cycle begins after a quarter of an hour. */
export class OutageSite implements AsyncDisposable {
  readonly home: AgentHome;
  readonly daemon: RunningDaemon;
  readonly url: string;
  readonly browser: PlainBrowser;
  /** The token that it is signed in with. */
  readonly token: string;

  private constructor(home: AgentHome, daemon: RunningDaemon, url: string, token: string) {
    this.home = home;
    this.daemon = daemon;
    this.url = url;
    this.token = token;
    this.browser = new PlainBrowser(url);
  }

  /** Signed in, with its rule in step. @param address where the daemon asks for the store. Default: the store's own */
  static async start(vault: Vault, address = vault.address): Promise<OutageSite> {
    const site = await OutageSite.begin(vault, address);
    await until(
      async () => (await site.home.read("out.yaml").catch(() => "")) === "token: stored-value\n",
      () => site.daemon.log(),
    );
    await until(async () => (await site.header()).includes("Connected"));
    return site;
  }

  /** With its port open, and no more. */
  static async begin(vault: Vault, address: string): Promise<OutageSite> {
    await writePolicies(vault);
    const token = await vault.createUserToken("ada", ["user"]);
    await vault.put("users/ada/tools/npm", { token: "stored-value" });
    const home = await AgentHome.create(
      { address, username: "ada", auth_method: "token" },
      `web: {enabled: true, listen: "127.0.0.1:0", editable_paths: [tools]}
sync: {interval: 15m}
rules: [{name: r, key: tools/npm, target: {path: ~/out.yaml, format: yaml}}]\n`,
    );
    await home.write(".daemon-token", token);
    const daemon = home.daemon();
    await daemon.logged(/^Web UI: http\S+\/$/m);
    const url = /^Web UI: (http\S+)\/$/m.exec(daemon.log())?.[1] ?? "";
    return new OutageSite(home, daemon, url, token);
  }

  /** The state that a page's header shows. */
  async header(path = "/ui/config/"): Promise<string> {
    return stateIn((await this.browser.get(path)).body);
  }

  /** The daemon's own word, from memory. */
  async status(): Promise<SeenStatus> {
    return JSON.parse((await this.browser.get("/api/v1/status")).body) as SeenStatus;
  }

  /** Response of the probe: status and word. */
  async ready(): Promise<string> {
    const { status, body } = await this.browser.get("/readyz");
    return `${status} ${(JSON.parse(body) as { status: string }).status}`;
  }

  /** Creates a secret over the JSON API. @param body JSON */
  async create(path: string, body: string): Promise<{ status: number; code: string; hint: string }> {
    const { token } = JSON.parse((await this.browser.get("/api/v1/csrf")).body) as { token: string };
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": token };
    const answer = await fetch(`${this.url}/api/v1/secrets/${path}`, { method: "POST", headers, body });
    const { code = "", hint = "" } = (await answer.json()) as { code?: string; hint?: string };
    return { status: answer.status, code, hint };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.daemon.stop();
    await this.home.remove();
  }
}

/** The words of the header's live part; empty without a header. */
export function stateIn(body: string): string {
  const part = /id="live-state" role="status">([^]*?)<\/div>/.exec(body)?.[1] ?? "";
  return part
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
