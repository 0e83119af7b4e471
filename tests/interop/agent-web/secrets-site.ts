import { after, before } from "node:test";
import { Secret, systemClock } from "@devplat/base";
import { openVaultStore, parseFields, printJson, userRoot, type SecretStore } from "@devplat/secret-store";
import { startVault, type Vault } from "@devplat/testkit";
import {
  startTestServer,
  type Answer,
  type TestServer,
} from "../../../apps/agent/src/surfaces/web/server.test-kit.ts";

/** Settings of the sites. */
export const EDITABLE = ["tools", "team/shared/"];
export const OWNED = ["tools/enrolled"];

/** Requests the pages of the agent, and posts their forms with the headers of a browser. */
export class Pages {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.server.send(`/ui/secrets/${path}`, { headers });
  }

  /** A browser sends line breaks of a form as CRLF. */
  post(
    path: string,
    form: Record<string, string>,
    origin: string | undefined = this.server.url,
  ): Promise<Answer> {
    const entries = Object.entries(form).map(([name, value]) => [name, value.replaceAll(/\r?\n/g, "\r\n")]);
    return this.server.send(`/ui/secrets/${path}`, {
      method: "POST",
      headers: {
        "Content-Type": "application/x-www-form-urlencoded",
        ...(origin !== undefined && { Origin: origin }),
      },
      body: new URLSearchParams(entries).toString(),
    });
  }

  save(path: string, version: number, field: string, name: string, text: string): Promise<Answer> {
    return this.post(path, {
      action: "save",
      version: String(version),
      field: JSON.stringify(field),
      name,
      text,
    });
  }
}

/** A store that the pages are tested with. */
export interface Stand {
  readonly name: string;
  open(): Promise<{ store: SecretStore | undefined; close(): Promise<void> }>;
}

export const STANDS: readonly Stand[] = [
  { name: "embedded", open: async () => ({ store: undefined, close: async () => undefined }) },
  {
    name: "Vault",
    open: async () => {
      const vault: Vault = await startVault();
      const store = openVaultStore({
        address: vault.address,
        root: userRoot({ mount: "kv", prefix: "users/", username: "ada" }),
        token: () => new Secret(vault.rootToken),
        clock: systemClock,
        tlsSkipVerify: false,
      });
      return {
        store,
        close: async () => {
          await store.close();
          await vault.stop();
        },
      };
    },
  },
];

/** The pages over one store, with secrets of the test. */
export class SecretsSite implements AsyncDisposable {
  readonly server: TestServer;
  readonly pages: Pages;
  readonly #close: () => Promise<void>;
  #count = 0;

  private constructor(server: TestServer, close: () => Promise<void>) {
    this.server = server;
    this.pages = new Pages(server);
    this.#close = close;
  }

  static async start(stand: Stand): Promise<SecretsSite> {
    const opened = await stand.open();
    const { store } = opened;
    const server = await startTestServer({
      editablePaths: EDITABLE,
      enrolmentKeys: OWNED,
      token: "s.token",
      ...(store !== undefined && { store }),
    });
    return new SecretsSite(server, () => opened.close());
  }

  /** Stores a new secret in an editable subtree. @returns its path */
  async put(json: string): Promise<string> {
    const path = `tools/s${++this.#count}`;
    await this.server.store.write(path, parseFields(json), { ifVersion: 0 });
    return path;
  }

  /** Fields of a secret as JSON. */
  async stored(path: string): Promise<string> {
    return printJson((await this.server.store.read(path)).fields);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
    await this.#close();
  }
}

/** A site that begins before the tests of a suite, and ends after them. */
export function siteOf(stand: Stand): Pick<SecretsSite, "server" | "pages" | "put" | "stored"> {
  let site: SecretsSite;
  before(async () => {
    site = await SecretsSite.start(stand);
  });
  after(() => site[Symbol.asyncDispose]());
  return {
    get server() {
      return site.server;
    },
    get pages() {
      return site.pages;
    },
    put: (json) => site.put(json),
    stored: (path) => site.stored(path),
  };
}
