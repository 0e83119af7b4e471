import { randomUUIDv7 } from "node:crypto";
import { join } from "node:path";
import { Secret, systemClock, type Clock } from "@devplat/base";
import { startPostgres, startVault, tempFolder } from "@devplat/testkit";
import { openStore, type DatabaseSettings } from "../../apps/svc/src/storage/open-store.ts";
import type { Store, TokenRecord } from "../../apps/svc/src/storage/store.ts";
import { createToken, tokenHash, tokenStart } from "../../apps/svc/src/credentials/token-format.ts";
import { TokenLookup } from "../../apps/svc/src/tokens/token-lookup.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { exactly, percentile, summarize } from "../lib/statistics.ts";

const TOKENS = 10_000;
/** Look-ups of one sample. */
const LOOK_UPS = 2000;
/** Maximum number of tokens on a page of the API. */
const PAGE = 1000;
/** Concurrent writes of tokens while the stores are filled. */
const WRITERS = 16;
/** Milliseconds that a look-up may add to a request at the median (the aim of the project). */
const LOOK_UP_TARGET_MS = 0.2;

const KEYS = async () => ({ current: new Secret("0f".repeat(32)), previous: undefined });

/** Time to look up one of 10,000 proxy tokens, and to list them all, on each database. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-tokens");
  const [postgres, vault] = await Promise.all([startPostgres(), startVault()]);
  const rows: Row[] = [];
  try {
    const places: Record<DatabaseSettings["driver"], Secret> = {
      sqlite: new Secret(join(folder.path, "svc.db")),
      postgres: new Secret(await postgres.createDatabase()),
      vault: new Secret(vault.address),
    };
    for (const driver of ["sqlite", "postgres", "vault"] as const) {
      const store = await openStore(
        {
          driver,
          dsn: places[driver],
          dataDir: folder.path,
          maxConnections: 10,
          vault: {
            namespace: undefined,
            mount: "kv",
            prefix: "svc",
            auth: { method: "token", token: new Secret(vault.rootToken) },
            caFile: undefined,
          },
        },
        KEYS,
        true,
      );
      const values = await fill(store);
      rows.push(...(await measure(driver, store, values, rounds)));
      await store.close();
    }
  } finally {
    await Promise.all([postgres.stop(), vault.stop()]);
    await folder.remove();
  }
  return {
    name: "svc-tokens",
    title: `Tokens of svc: ${TOKENS} of them, looked up and listed`,
    method: `In one process against real databases on the same machine, ${rounds} rounds of ${LOOK_UPS} look-ups each. "remembered" is what a request pays while the token was seen within the last second; "read" is the first request after that second. The reference is the aim that a look-up adds at most ${LOOK_UP_TARGET_MS} ms at the median; listing has none.`,
    rows,
  };
}

async function fill(store: Store): Promise<readonly string[]> {
  const user = await store.users.ensure("bench", randomUUIDv7(), 1);
  const tokens = Array.from({ length: TOKENS }, () => createToken("proxy"));
  const now = systemClock.now();
  const records = tokens.map((token, index): TokenRecord => ({
    id: randomUUIDv7(),
    type: "proxy",
    tokenHash: tokenHash(token.reveal()),
    tokenStart: tokenStart(token),
    userId: user.id,
    repositories: ["acme/widgets"],
    scopes: { contents: "read", metadata: "read" },
    description: undefined,
    sessionId: undefined,
    appId: undefined,
    installation: undefined,
    ipAllow: [],
    requestsPerMinute: undefined,
    mintedBy: undefined,
    createdAt: now + index,
    expiresAt: now + 3_600_000,
    revokedAt: undefined,
    lastUsedAt: undefined,
    lastIp: undefined,
    useCount: 0,
  }));
  for (let start = 0; start < TOKENS; start += WRITERS) {
    await Promise.all(records.slice(start, start + WRITERS).map(async (each) => store.tokens.insert(each)));
  }
  return tokens.map((token) => token.reveal());
}

async function measure(
  driver: string,
  store: Store,
  values: readonly string[],
  rounds: number,
): Promise<Row[]> {
  let shift = 0;
  // A second later for each look-up, where it is to be read again.
  const clock: Clock = { ...systemClock, monotonic: () => performance.now() + shift };
  const [remembered, read, readSlow, listed, page]: number[][] = [[], [], [], [], []];
  for (let round = 0; round < rounds; round++) {
    const lookup = new TokenLookup(store, clock);
    const value = values[round] ?? "";
    await lookup.find(value);
    remembered?.push(percentile(await timed(LOOK_UPS, async () => lookup.find(value)), 0.5));
    const times = await timed(LOOK_UPS, async (index) => {
      shift += 1001;
      await lookup.find(values[(round * LOOK_UPS + index) % values.length] ?? "");
    });
    read?.push(percentile(times, 0.5));
    readSlow?.push(percentile(times, 0.99));
    page?.push(percentile(await timed(5, async () => store.tokens.list({ limit: 100 })), 0.5));
    // Vault is asked once per token: once is enough.
    if (driver === "vault" && round > 0) continue;
    const begin = performance.now();
    let count = 0;
    let cursor: string | undefined;
    do {
      const found = await store.tokens.list({ limit: PAGE, cursor });
      count += found.records.length;
      cursor = found.next;
    } while (cursor !== undefined);
    listed?.push(performance.now() - begin);
    if (count !== TOKENS) throw new Error(`${driver} lists ${count} of ${TOKENS} tokens`);
  }
  const row = (what: string, samples: number[] | undefined, reference: number, target: boolean): Row => ({
    what: `${driver}: ${what}`,
    unit: "ms",
    ours: summarize(samples ?? []),
    reference: exactly(reference),
    referenceName: target ? "aimed at" : "for scale",
    ...(target ? { target: { atMost: 1 } } : {}),
  });
  return [
    row("look-up, remembered, p50", remembered, LOOK_UP_TARGET_MS, true),
    row("look-up, read, p50", read, LOOK_UP_TARGET_MS, false),
    row("look-up, read, p99", readSlow, LOOK_UP_TARGET_MS, false),
    row(`all ${TOKENS} in pages of ${PAGE}`, listed, 1000, false),
    row("the first 100", page, 100, false),
  ];
}

async function timed(times: number, action: (index: number) => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let index = 0; index < times; index++) {
    const begin = performance.now();
    await action(index);
    samples.push(performance.now() - begin);
  }
  return samples;
}
