import assert from "node:assert/strict";
import { appendFile, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLogger, type Secret } from "@devplat/base";
import { LoopMonitor } from "@devplat/base/loop-monitor";
import { SecretStoreError, type SecretChange, type SecretStore, type TokenInfo } from "@devplat/secret-store";
import { testSeed } from "@devplat/testkit";
import { TokenFile } from "../auth/token/token-file.ts";
import { tokenInfo } from "../auth/token/token-info.test-kit.ts";
import { TokenKeeper } from "../auth/token-keeper.ts";
import { TokenSignIn, type TokenApi } from "../auth/sign-in.ts";
import { ObservedStore } from "../secrets/observed-store.ts";
import { StoreHealth } from "../secrets/store-health.ts";
import { StoreWatch } from "./store-watch.ts";
import { assembleLoop } from "../assemble/loop.ts";
import { HandClock } from "./clock.test-kit.ts";
import { workspace, type Workspace } from "./workspace.test-kit.ts";
import { NO_BOOTSTRAP } from "./status-report.ts";

const WITHOUT_ENROLMENTS = {
  bootstrap: () => NO_BOOTSTRAP,
  enrolments: { list: () => [], onChange: () => undefined, wake: () => undefined },
};

const MINUTE = 60_000;
const DAY_MINUTES = 24 * 60;
/** The day goes by in steps of two minutes, of which the clock makes four. */
const STEP_MINUTES = 2;
const STEP_PARTS = 4;
const INTERVAL_MS = 5 * MINUTE;
/** A token's life; twice it is its greatest, after which it cannot be renewed. */
const TOKEN_MS = 60 * MINUTE;
const RULES = [
  { name: "yaml", key: "k", target: { path: "~/app.yaml", format: "yaml" } },
  { name: "json", key: "k", target: { path: "~/app.json", format: "json" } },
  { name: "text", key: "k", target: { path: "~/app.txt", format: "text", template: "{{ .token }}\n" } },
];

/** A central store as a day brings it: tokens that end, outages, events that get lost. */
class CentralStore {
  readonly tokens = new Map<string, { expiresAt: number; made: number }>();
  isDown = false;
  eventsWork = true;
  readonly api: TokenApi;
  readonly store: SecretStore;
  readonly #clock: HandClock;
  #token: () => Secret | undefined = () => undefined;
  #notify = (): void => undefined;

  constructor(real: SecretStore, clock: HandClock) {
    this.#clock = clock;
    this.api = {
      lookup: async (token) => this.#info(token),
      renew: async (token) => {
        const known = this.#known(token);
        known.expiresAt = Math.min(known.made + 2 * TOKEN_MS, clock.monotonic() + TOKEN_MS);
      },
    };
    const guarded = async <T>(action: () => Promise<T>): Promise<T> => {
      const token = this.#token();
      if (token === undefined) throw new SecretStoreError("unauthenticated", "no token");
      this.#known(token);
      return action();
    };
    this.store = {
      ...real,
      driver: "vault",
      metadata: (path) => guarded(() => real.metadata(path)),
      read: (path) => guarded(() => real.read(path)),
      watch: (signal, opened) => this.#watch(signal, opened),
    };
  }

  use(token: () => Secret | undefined): void {
    this.#token = token;
  }

  issue(name: string): void {
    const made = this.#clock.monotonic();
    this.tokens.set(name, { made, expiresAt: made + TOKEN_MS });
  }

  changed(): void {
    if (this.eventsWork && !this.isDown) this.#notify();
  }

  #known(token: Secret): { expiresAt: number; made: number } {
    if (this.isDown) throw new SecretStoreError("unavailable", "down", { remedy: "retry" });
    const known = this.tokens.get(token.reveal());
    if (known === undefined || known.expiresAt <= this.#clock.monotonic()) {
      throw new SecretStoreError("unauthenticated", "no such token");
    }
    return known;
  }

  #info(token: Secret): TokenInfo {
    const { expiresAt } = this.#known(token);
    const ttlMs = expiresAt - this.#clock.monotonic();
    return tokenInfo({
      entityId: "ada",
      displayName: "ada",
      ttlSeconds: ttlMs / 1000,
      creationTtlSeconds: TOKEN_MS / 1000,
      expiresAt: this.#clock.now() + ttlMs,
      renewable: true,
    });
  }

  async *#watch(signal: AbortSignal, opened?: () => void): AsyncIterable<SecretChange> {
    if (this.isDown) throw new SecretStoreError("unavailable", "down", { remedy: "retry" });
    opened?.();
    yield { path: "", kind: "written" };
    while (!signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      if (!signal.aborted) yield { path: "k", kind: "written" };
    }
  }
}

describe("a day of token expiries, outages, edits, sleep and restarts", () => {
  let w: Workspace;
  before(async () => {
    w = await workspace();
  });
  after(() => w.remove());

  it("leaves no wrong file, loses no edit, and is up to date while the store is usable [agent 1.6]", async () => {
    const seed = testSeed();
    let state = seed >>> 0;
    const random = (): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) / 2 ** 32;
    const clock = new HandClock();
    const central = new CentralStore(w.store, clock);
    const tokenPath = join(w.home, ".daemon-token");
    const yaml = join(w.home, "app.yaml");

    let value = 0;
    let logins = 0;
    const edits: string[] = [];
    const put = async (): Promise<void> => {
      await w.put("k", { token: `value-${++value}` });
      central.changed();
    };
    const login = async (): Promise<void> => {
      central.issue(`token-${++logins}`);
      await writeFile(tokenPath, `token-${logins}`, { mode: 0o600 });
    };
    await writeFile(yaml, "# by hand\ntoken: value-0\n", { mode: 0o600 });
    await put();
    await login();

    let run = await start();
    async function start() {
      const stop = new AbortController();
      const tokenFile = new TokenFile(tokenPath);
      const signIn = new TokenSignIn({
        environment: {},
        tokenFile,
        pin: { check: () => Promise.resolve(), adopt: () => Promise.resolve() },
        api: central.api,
        borrow: async function* () {},
        automatic: undefined,
        renewal: true,
        clock,
        logger: silentLogger,
      });
      central.use(() => signIn.token());
      const health = new StoreHealth();
      const store = new ObservedStore({ store: central.store, health, signIn });
      const { engine, state: file } = await w.engine(RULES, { clock, store });
      const facts = {
        version: "0",
        authMethod: "token",
        driver: "vault",
        address: "",
        kvMount: "kv",
        userPrefix: "users/",
        mountpoint: "~/.daemon",
        username: "tester",
        sources: [],
        problems: [],
      } as const;
      const parts = { engine, state: file, signIn, clock, facts, store, health, logger: silentLogger };
      const daemon = assembleLoop({
        ...parts,
        ...WITHOUT_ENROLMENTS,
        loops: new LoopMonitor(clock),
        watch: new StoreWatch(parts),
        intervalMs: INTERVAL_MS,
      });
      const onWake = (): void => daemon.wake();
      const keeper = new TokenKeeper({
        signIn,
        tokenFile,
        peers: { retryInMs: () => undefined },
        maintain: async () => undefined,
        onWake,
        clock,
        logger: silentLogger,
      });
      const running = Promise.all([daemon.run(stop.signal), keeper.run(stop.signal)]);
      return {
        daemon,
        end: async () => {
          stop.abort();
          await running;
        },
      };
    }

    /** Lets what is due happen: files are real, and a cycle takes as long as it takes. */
    const settle = async (): Promise<void> => {
      for (let calm = 0; calm < 8;) {
        await turn();
        calm = run.daemon.status().sync.state === "running" ? 0 : calm + 1;
      }
    };
    const check = async (fresh: boolean, minute: number): Promise<void> => {
      const what = `seed ${seed}, minute ${minute}`;
      const content = await readFile(yaml, "utf8").catch(() => undefined);
      if (content !== undefined) {
        const held = /^token: "?value-(\d+)"?$/m.exec(content)?.[1];
        assert.ok(held !== undefined && Number(held) <= value, `${what}: ${content.slice(0, 200)}`);
        for (const edit of edits) assert.ok(content.includes(edit), `${what}: lost ${edit}`);
      }
      if (!fresh) return;
      assert.match(content ?? "", new RegExp(`^token: value-${value}$`, "m"), what);
      assert.deepEqual(
        JSON.parse(await readFile(join(w.home, "app.json"), "utf8")),
        { token: `value-${value}` },
        what,
      );
      assert.equal(await readFile(join(w.home, "app.txt"), "utf8"), `value-${value}\n`, what);
    };

    let downUntil = -1;
    let lastTrouble = 0;
    let signedOutSince = -1;
    const seen = { outages: 0, logins: 0, restarts: 0, edits: 0, sleeps: 0, fresh: 0 };
    for (let minute = 0; minute < DAY_MINUTES; minute += STEP_MINUTES) {
      /** By chance, and at these hours: one day in a hundred would have none. */
      const comes = (chance: number, ...hours: readonly number[]): boolean =>
        random() < chance || hours.includes(minute / 60);
      if (central.isDown && minute >= downUntil) central.isDown = false;
      else if (!central.isDown && comes(0.012, 5, 15)) {
        central.isDown = true;
        downUntil = minute + 1 + Math.floor(random() * 30);
        seen.outages += 1;
      }
      if (random() < 0.1) await put();
      if (random() < 0.06) {
        // In place, or as editors do it; also over our own key.
        const line = `# edit ${edits.length}\n`;
        const text = await readFile(yaml, "utf8");
        if (random() < 0.5) await appendFile(yaml, line);
        else {
          await writeFile(`${yaml}.swp`, text.replace(/^token: .*$/m, "token: value-0") + line, {
            mode: 0o600,
          });
          await rename(`${yaml}.swp`, yaml);
        }
        edits.push(line);
        seen.edits += 1;
      }
      if (random() < 0.01) await rm(join(w.home, "app.txt"), { force: true });
      if (comes(0.008, 3, 10, 18)) central.tokens.clear();
      if (random() < 0.04) central.eventsWork = !central.eventsWork;
      if (comes(0.008, 12)) {
        clock.jump((random() - 0.3) * 3 * 60 * MINUTE);
        seen.sleeps += 1;
      }
      if (comes(0.008, 8)) {
        await run.end();
        run = await start();
        seen.restarts += 1;
      }
      // The user signs in some minutes after the status says so.
      const { authenticated } = run.daemon.status();
      if (authenticated) signedOutSince = -1;
      else if (signedOutSince < 0) signedOutSince = minute;
      if (signedOutSince >= 0 && !central.isDown && minute - signedOutSince > 10) {
        await login();
        seen.logins += 1;
      }
      for (let part = 0; part < STEP_PARTS; part++) {
        clock.advance((STEP_MINUTES * MINUTE) / STEP_PARTS);
        await settle();
      }
      if (central.isDown || !run.daemon.status().authenticated) lastTrouble = minute;
      // Two polls and a failed rule's longest wait after the last trouble at the latest; after a change, one poll.
      const fresh = minute - lastTrouble > 12 && minute % 14 === 0;
      if (fresh) {
        for (let step = 0; step < 7; step++) {
          clock.advance(MINUTE);
          await settle();
        }
        seen.fresh += 1;
      }
      await check(fresh && run.daemon.status().authenticated, minute);
    }
    await run.end();
    assert.ok(
      seen.outages > 1 &&
        seen.logins > 1 &&
        seen.restarts > 0 &&
        seen.edits > 10 &&
        seen.sleeps > 0 &&
        seen.fresh > 20,
      JSON.stringify(seen),
    );
  });
});
