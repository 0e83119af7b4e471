import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  startCodeHost,
  startPostgres,
  startSvc,
  type CodeHost,
  type Postgres,
  type Svc,
} from "@devplat/testkit";

const HOST_TOKEN = "ghp_plantedHostToken";
const MINUTE_MS = 60_000;
const LIMIT = 60;
/** Requests that an instance may admit beyond the budget (docs/svc/tokens.md, "Limits over several instances"). */
const SLACK = LIMIT / 20;
/** Tries to stay within one minute of the clock. */
const TRIES = 4;

/** Two real processes on one database, which limit a token together. */
function suite(name: string, environment: () => Promise<Record<string, string>>): void {
  describe(`requests_per_minute over two processes on one ${name}`, { timeout: 240_000 }, () => {
    let host: CodeHost;
    let one: Svc;
    let two: Svc;
    let admin: string;

    before(async () => {
      host = await startCodeHost();
      host.addUser("alice", HOST_TOKEN);
      await host.addRepository("acme", "widgets", { private: true });
      const env = {
        SVC_CACHE_ENABLED: "false",
        SVC_ENCRYPTION_KEY: "5a".repeat(32),
        SVC_DEV_HOST_TOKEN: HOST_TOKEN,
        ...(await environment()),
      };
      one = await startSvc({ codeHost: host, env });
      two = await startSvc({ codeHost: host, env, dataDir: one.dataDir });
      admin = await one.signIn({ username: "alice", role: "admin", host_token: HOST_TOKEN });
    });
    after(async () => {
      await two?.stop();
      await one?.stop();
      await host?.stop();
    });

    const mint = (): Promise<string> =>
      one.mintToken(admin, {
        repository: "acme/widgets",
        scopes: "metadata:read",
        requests_per_minute: LIMIT,
      });
    const ask = async (svc: Svc, token: string): Promise<Response> => {
      const answer = await fetch(`${svc.url}/api/v3/rate_limit`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await answer.arrayBuffer();
      return answer;
    };

    it("admits the limit in total, and refusals name the end of the minute [svc 11.5]", async () => {
      for (let tries = 1; ; tries++) {
        const token = await mint();
        const begun = Date.now();
        // Six at a time at both: enough that their questions to the database meet.
        const answers: Response[] = [];
        for (let round = 0; round < 10; round++) {
          const batch = [one, two].flatMap((svc) => Array.from({ length: 6 }, async () => ask(svc, token)));
          answers.push(...(await Promise.all(batch)));
        }
        const ended = Date.now();
        if (Math.floor(begun / MINUTE_MS) !== Math.floor(ended / MINUTE_MS) && tries < TRIES) continue;
        const admitted = answers.filter(({ status }) => status === 200).length;
        const refused = answers.filter(({ status }) => status === 429);
        assert.equal(admitted + refused.length, answers.length);
        assert.ok(admitted >= LIMIT - 2 * SLACK && admitted <= LIMIT + 2 * SLACK, String(admitted));
        for (const { headers } of refused) {
          const wait = Number(headers.get("retry-after")) * 1000;
          const end = (Math.floor(begun / MINUTE_MS) + 1) * MINUTE_MS;
          assert.ok(
            wait >= end - ended && wait <= end - begun + 1000,
            `${wait}: ${end - ended} to ${end - begun}`,
          );
        }
        break;
      }
    });
  });
}

let postgres: Postgres | undefined;
after(async () => postgres?.stop());
suite("Postgres", async () => {
  postgres = await startPostgres();
  const dsn = (await postgres.createDatabase()).replace("//postgres@", "//postgres:plantedPassword@");
  return { SVC_DATABASE_DRIVER: "postgres", SVC_DATABASE_DSN: dsn };
});
suite("SQLite file", async () => ({}));
