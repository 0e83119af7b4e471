import assert from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { run, startPostgres, type Postgres } from "@devplat/testkit";
import { sql } from "kysely";
import { credential, repositoryRecord, tokenRecord } from "../../apps/svc/src/storage/contract/records.ts";
import { storeContract } from "../../apps/svc/src/storage/contract/suite.ts";
import { openDatabase, openStore } from "../../apps/svc/src/storage/open-store.ts";
import { openPostgres } from "../../apps/svc/src/storage/postgres/open.ts";
import type { Store } from "../../apps/svc/src/storage/store.ts";

const KEYS = { current: new Secret("0f".repeat(32)), previous: undefined };
const NEXT_KEYS = { current: new Secret("1e".repeat(32)), previous: KEYS.current };

let server: Postgres;
before(async () => {
  server = await startPostgres();
});
after(async () => server.stop());

const settings = (dsn: string): Parameters<typeof openStore>[0] => ({
  driver: "postgres",
  dsn: new Secret(dsn),
  dataDir: "unused",
  maxConnections: 5,
  vault: {
    namespace: undefined,
    mount: "",
    prefix: "",
    auth: { method: "token", token: undefined },
    caFile: undefined,
  },
});
const openAt = async (dsn: string): Promise<Store> => openStore(settings(dsn), async () => KEYS, true);

storeContract("postgres", async () => openAt(await server.createDatabase()));

describe("postgres store", () => {
  it("database behind: an empty database refuses the start until migrate", async () => {
    const dsn = await server.createDatabase();
    await assert.rejects(
      openStore(settings(dsn), async () => KEYS, false),
      { code: "database_behind", hint: /svc migrate/ },
    );
    const database = await openDatabase(settings(dsn));
    const { pending } = await database.state();
    assert.ok(pending.length > 0);
    assert.deepEqual(await database.migrate(), pending);
    assert.deepEqual(await database.migrate(), []);
    assert.deepEqual(await database.state(), { applied: pending, pending: [], unknown: [] });
    await database.close();
  });

  it("database ahead: one with an unknown migration is refused, with its name", async () => {
    const dsn = await server.createDatabase();
    await (await openAt(dsn)).close();
    const db = await openPostgres({ dsn: new Secret(dsn), maxConnections: 1 });
    await sql`INSERT INTO kysely_migration (name, timestamp) VALUES ('9999_later', '2030-01-01')`.execute(db);
    await db.destroy();
    await assert.rejects(openAt(dsn), { code: "database_ahead", message: /9999_later/ });
  });

  it("instances that start concurrently migrate once", async () => {
    const dsn = await server.createDatabase();
    const databases = await Promise.all([1, 2, 3, 4].map(async () => openDatabase(settings(dsn))));
    const applied = await Promise.all(databases.map(async (each) => each.migrate()));
    assert.equal(applied.filter((names) => names.length > 0).length, 1);
    for (const each of databases) {
      assert.deepEqual((await each.state()).pending, []);
      await each.close();
    }
  });

  it("concurrent reports of two instances about the same tokens do not block", async () => {
    const dsn = await server.createDatabase();
    const [one, two] = [await openAt(dsn), await openAt(dsn)];
    const records = await Promise.all(Array.from({ length: 20 }, async () => tokenRecord(one)));
    for (const each of records) await one.tokens.insert(each);
    const uses = records.map(({ id }) => ({ id, uses: 1, lastUsedAt: 5, lastIp: "10.0.0.1" }));
    await Promise.all(
      Array.from({ length: 10 }, async (_, index) =>
        index % 2 === 0 ? one.tokens.recordUses(uses) : two.tokens.recordUses(uses.toReversed()),
      ),
    );
    for (const { id } of records) assert.equal((await two.tokens.get(id))?.useCount, 10);
    await one.close();
    await two.close();
  });

  it("rekey: the previous key is needed until the secrets are under the current one", async () => {
    const dsn = await server.createDatabase();
    const original = await openAt(dsn);
    const user = await original.users.ensure("alice", randomUUIDv7(), 1);
    await original.users.putCredential(user.id, credential("planted"), 1);
    await original.close();
    const without = { current: NEXT_KEYS.current, previous: undefined };
    await assert.rejects(
      openStore(settings(dsn), async () => without, false),
      { code: "encryption_key" },
    );
    const rotating = await openStore(settings(dsn), async () => NEXT_KEYS, false);
    assert.equal(await rotating.rekey(() => undefined), 1);
    assert.equal(await rotating.rekey(() => undefined), 0);
    await rotating.close();
    const rotated = await openStore(settings(dsn), async () => without, false);
    assert.equal((await rotated.users.credential(user.id))?.accessToken.reveal(), "planted");
    await rotated.close();
  });

  it("a server that cannot be used is named, and the password of the DSN is not", async () => {
    const { port } = new URL(server.dsn);
    const cases: [string, RegExp][] = [
      [`postgres://svc:planted-password@127.0.0.1:${port}/nowhere`, /127\.0\.0\.1/],
      [`postgres://postgres:planted-password@127.0.0.1:${port}/missing`, /"missing".*does not exist/],
      ["postgres://svc:planted-password@127.0.0.1:1/db", /nothing listens/],
      [
        `postgres://svc:planted-password@127.0.0.1:${port}/db?sslmode=require`,
        /does not speak TLS; sslmode=disable/,
      ],
      ["mysql://svc:planted-password@localhost/db", /expected postgres:\/\//],
      ["host=localhost password=planted-password", /expected postgres:\/\//],
      ["postgres://svc:planted-password%@localhost/db", /%25/],
      ["postgres://svc:planted-password@/db", /expected|no host/],
      ["postgres://svc:planted-password@h/db?sslmode=prefer", /sslmode must be/],
      [
        "postgres://svc:planted-password@h/db?sslmode=verify-full&sslrootcert=none.pem",
        /sslrootcert.*ENOENT/,
      ],
      ["postgres://svc:planted-password@h/db?sslcert=a", /./],
      ["postgres://svc:planted-password@h/db?target_session_attrs=any", /target_session_attrs/],
    ];
    for (const [dsn, message] of cases) {
      await assert.rejects(openAt(dsn), (error: Error) => {
        const everything = `${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`;
        assert.match(error.message, message, dsn);
        assert.doesNotMatch(everything, /planted-password/, dsn);
        return true;
      });
    }
  });

  it("a connection that ends in a transaction fails only that transaction", async () => {
    const dsn = await server.createDatabase();
    const db = await openPostgres({ dsn: new Secret(dsn), maxConnections: 2 });
    const broken = db.transaction().execute(async (transaction) => {
      const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(transaction);
      await sql`SELECT pg_terminate_backend(${rows[0]?.pid})`.execute(db);
      // Until the end of the connection has come through, while no statement waits for an answer.
      await new Promise((resolve) => setTimeout(resolve, 100));
      await sql`SELECT 1`.execute(transaction);
    });
    await assert.rejects(broken);
    await sql`SELECT 1`.execute(db);
    await db.destroy();
  });

  it("names are ordered by code point, with any collation of the database", async () => {
    const name = "of_words";
    const creation = `CREATE DATABASE ${name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`;
    const made = await run("psql", ["-X", "-q", "-c", creation, server.dsn]);
    assert.equal(made.code, 0, made.stderr);
    const store = await openAt(server.dsn.replace(/\/\w+$/, `/${name}`));
    const names = ["a/b-c", "a/b.c", "a/b_c", "a/bc", "a-b/a", "ab/a"];
    for (const each of names) {
      const [owner = "", repository = ""] = each.split("/");
      await store.cachedRepositories.insert(repositoryRecord({ owner, name: repository }));
      await store.users.ensure(each.replace("/", "-"), randomUUIDv7(), 1);
    }
    const listed = (await store.cachedRepositories.list()).map((each) => `${each.owner}/${each.name}`);
    assert.deepEqual(listed, names.toSorted());
    const logins = (await store.users.list()).map(({ login }) => login);
    assert.deepEqual(logins, logins.toSorted());
    await store.close();
  });

  it("closed connections are replaced, and a query during that is told to retry", async () => {
    const dsn = await server.createDatabase();
    const store = await openAt(dsn);
    await Promise.all([1, 2, 3].map(async () => store.ping()));
    const name = new URL(dsn).pathname.slice(1);
    const ended = await run("psql", [
      "-X",
      "-q",
      "-c",
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
      server.dsn,
    ]);
    assert.equal(ended.code, 0, ended.stderr);
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map(async () => store.ping()));
    for (const each of outcomes) {
      if (each.status === "rejected") {
        assert.equal((each.reason as { code: string }).code, "database_unavailable");
        assert.equal((each.reason as { remedy: string }).remedy, "retry");
      }
    }
    await store.ping();
    await store.close();
  });
});

describe("postgres over TLS", () => {
  let secure: Postgres;
  before(async () => {
    secure = await startPostgres({ tls: true });
  });
  after(async () => secure.stop());

  const cases: [parameters: (ca: string) => string, host: string, refused: RegExp | undefined][] = [
    [() => "sslmode=require", "127.0.0.1", undefined],
    [(ca) => `sslmode=verify-full&sslrootcert=${ca}`, "127.0.0.1", undefined],
    [(ca) => `sslmode=verify-ca&sslrootcert=${ca}`, "localhost", undefined],
    [
      (ca) => `sslmode=verify-full&sslrootcert=${ca}`,
      "localhost",
      /certificate is not trusted \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    ],
    [() => "sslmode=verify-full", "127.0.0.1", /certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/],
    [() => "sslmode=verify-ca", "127.0.0.1", /certificate is not trusted/],
  ];
  for (const [parameters, host, refused] of cases) {
    const title = parameters("CA");
    it(`${title} by ${host}: ${refused === undefined ? "encrypted" : "refused"}`, async () => {
      const dsn = `${secure.dsn.replace("127.0.0.1", host)}?${parameters(secure.caFile ?? "")}`;
      const opened = openPostgres({ dsn: new Secret(dsn), maxConnections: 1 });
      if (refused !== undefined) {
        await assert.rejects(opened, { code: "database_unavailable", message: refused });
        return;
      }
      const db = await opened;
      const { rows } = await sql<{ ssl: boolean }>`
        SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`.execute(db);
      assert.deepEqual(rows, [{ ssl: true }]);
      await db.destroy();
    });
  }
});
