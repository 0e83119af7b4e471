import { until, type Vault } from "@devplat/testkit";
import { AgentHome, writePolicies, type RunningDaemon } from "../agent-auth-stand.ts";
import { PlainBrowser } from "./plain-browser.ts";

/** What `agent status` and the API say of the store. */
export interface SeenStatus {
  readonly authenticated: boolean;
  readonly store: { readonly reachable: boolean; readonly last_error: string | null };
}

/** A daemon with pages, signed in by a token file, whose next cycle is a quarter of an hour away. */
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

  /** @param address where the daemon asks for the store. Default: the store's own */
  static async start(vault: Vault, address = vault.address): Promise<OutageSite> {
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
    const site = new OutageSite(home, daemon, url, token);
    await until(
      async () => (await home.read("out.yaml").catch(() => "")) === "token: stored-value\n",
      () => daemon.log(),
    );
    await until(async () => (await site.header()).includes("Connected"));
    return site;
  }

  /** The state that a page's header shows. */
  async header(path = "/ui/config/"): Promise<string> {
    return stateIn((await this.browser.get(path)).body);
  }

  /** The daemon's own word, from memory. */
  async status(): Promise<SeenStatus> {
    return JSON.parse((await this.browser.get("/api/v1/status")).body) as SeenStatus;
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
