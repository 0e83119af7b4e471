import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readlink, stat } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  freePort,
  repositories,
  startCodeHost,
  startPostgres,
  SVC_LAUNCHER,
  tempFolder,
  until,
  type CodeHost,
  type Postgres,
  type TempFolder,
} from "@devplat/testkit";
import {
  call,
  HOST_TOKEN,
  mint,
  PASSPHRASE,
  postgresKind,
  psql,
  signIn,
  sqliteKind,
  start,
  svc,
  type DatabaseKind,
} from "./svc-backup-stand.ts";

/** Audit records of the backup: to write them takes about a second, in which the restore is held. */
const RECORDS = 40_000;
/** Size of SQLite's log when the rows of a restore are written to it. That of a migrated database is far below. */
const WRITING_BYTES = 1_000_000;

let folder: TempFolder;
let host: CodeHost;
let postgres: Postgres;
/** It has {@link RECORDS} audit records, a user, and a session of the user. */
let backup: string;
let sessionOfBackup: string;

/** A kind of database, with a look at what a restore does to it. */
interface WatchedKind {
  readonly name: string;
  readonly kind: () => DatabaseKind;
  /** Whether a restore has begun to replace rows, and has not ended. */
  readonly isReplacing: (target: Record<string, string>) => Promise<boolean>;
  /** Whether another program waits for a restore, or is about to. */
  readonly isWaiting: (target: Record<string, string>) => Promise<boolean>;
  readonly rows: (target: Record<string, string>, query: string) => Promise<string>;
  /** SQL of the clock of the database in milliseconds. */
  readonly now: string;
  /** Text of a true value. */
  readonly yes: string;
}

const KINDS: readonly WatchedKind[] = [
  {
    name: "SQLite",
    now: "CAST(unixepoch('subsec') * 1000 AS integer)",
    yes: "1",
    kind: () => sqliteKind(folder.path),
    isReplacing: async ({ SVC_DATA_DIR: data = "" }) =>
      (await stat(join(data, "svc.db-wal"))).size > WRITING_BYTES,
    isWaiting: async ({ SVC_DATA_DIR: data = "" }) => (await openers(join(data, "svc.db"))) > 1,
    rows: async ({ SVC_DATA_DIR: data = "" }, query) => {
      const db = new DatabaseSync(join(data, "svc.db"), { readOnly: true });
      try {
        const rows = db.prepare(query).all();
        return rows.map((row) => Object.values(row).join("|")).join("\n");
      } finally {
        db.close();
      }
    },
  },
  {
    name: "Postgres",
    now: "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
    yes: "t",
    kind: () => postgresKind(folder.path, postgres),
    isReplacing: async ({ SVC_DATABASE_DSN: dsn = "" }) => {
      const query = `SELECT count(*) FROM pg_locks
        WHERE mode = 'ExclusiveLock' AND granted AND relation = to_regclass('audit')`;
      return (await psql(dsn, query)).trim() !== "0";
    },
    isWaiting: async ({ SVC_DATABASE_DSN: dsn = "" }) =>
      (await psql(dsn, "SELECT count(*) FROM pg_locks WHERE NOT granted")).trim() !== "0",
    rows: async ({ SVC_DATABASE_DSN: dsn = "" }, query) => (await psql(dsn, query)).trim(),
  },
];

async function command(args: readonly string[], target: Record<string, string>): Promise<void> {
  const { code, stderr } = await svc(args, { SVC_BACKUP_PASSPHRASE: PASSPHRASE, ...target }, folder.path);
  assert.equal(code, 0, stderr);
}

before(async () => {
  [folder, host, postgres] = await Promise.all([
    tempFolder("svc-backup-start"),
    startCodeHost(),
    startPostgres(),
  ]);
  host.addUser("root", HOST_TOKEN);
  await host.addRepository("acme", "widgets", { private: true, build: repositories.linear });
  const source = await sqliteKind(folder.path).create();
  const service = await start(host, source);
  sessionOfBackup = await signIn(service);
  await service.stop();
  const db = new DatabaseSync(join(source["SVC_DATA_DIR"] ?? "", "svc.db"));
  db.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${RECORDS})
    INSERT INTO audit (id, at, action, outcome, actor_kind, details)
    SELECT 'record-' || i, ${Date.now()} - i, 'git.fetch', 'allowed', 'system', '{"note":"' || hex(randomblob(60)) || '"}' FROM n`);
  db.close();
  backup = join(folder.path, "source.age");
  await command(["backup", "-o", backup], source);
});
after(async () => {
  await host?.stop();
  await postgres?.stop();
  await folder?.remove();
});

/** A restore that is stopped (SIGSTOP) when it has replaced a part of the rows. */
async function heldRestore(
  target: Record<string, string>,
  isReplacing: WatchedKind["isReplacing"],
): Promise<{ readonly goOn: () => Promise<void>; readonly kill: () => void }> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
  const env = { ...Object.fromEntries(inherited), SVC_BACKUP_PASSPHRASE: PASSPHRASE, ...target };
  // The launcher becomes the program (exec), so the signals reach it.
  const child = spawn(SVC_LAUNCHER, ["restore", backup, "--replace"], {
    env,
    cwd: folder.path,
    stdio: "ignore",
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  await until(async () => isReplacing(target));
  child.kill("SIGSTOP");
  assert.equal(await isReplacing(target), true, "it is held before its end");
  return {
    async goOn() {
      child.kill("SIGCONT");
      assert.deepEqual(await ended, [0, null]);
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

for (const { name, kind, isReplacing, isWaiting, rows, now, yes } of KINDS) {
  describe(`svc serve and svc restore into ${name}`, { timeout: 400_000 }, () => {
    /** A database with content that a restore replaces. */
    const usedDatabase = async (): Promise<{ target: Record<string, string>; session: string }> => {
      const target = await kind().create();
      const former = await start(host, target);
      const session = await signIn(former);
      await mint(former, session);
      await former.stop();
      return { target, session };
    };
    const restored = async (target: Record<string, string>): Promise<number> =>
      Number(await rows(target, "SELECT count(*) FROM audit WHERE id LIKE 'record-%'"));

    it("a start in the middle waits for the end, and has the restored rows alone", async () => {
      const { target, session } = await usedDatabase();
      const restore = await heldRestore(target, isReplacing);
      try {
        const starting = start(host, target);
        const first = [
          starting.then(() => "started"),
          until(async () => isWaiting(target)).then(() => "waits"),
        ];
        assert.equal(await Promise.race(first), "waits");
        assert.equal(await isReplacing(target), true, "the restore has not ended");
        await restore.goOn();
        const service = await starting;
        assert.equal((await call(service, "GET", "/api/tokens", session)).status, 401);
        await mint(service, await signIn(service));
        await service.stop();
      } finally {
        restore.kill();
      }
      assert.equal(await restored(target), RECORDS);
      assert.equal(await rows(target, "SELECT count(*) FROM tokens"), "1", "only the new one");
      assert.equal(await rows(target, "SELECT count(*) FROM sessions"), "1", "only the new one");
    });

    it("a start that would wait too long is refused, and the restore ends", async () => {
      const { target } = await usedDatabase();
      const restore = await heldRestore(target, isReplacing);
      try {
        const refused = await serveAlone(target);
        assert.equal(refused.code, 1, refused.stdout);
        assert.match(refused.stdout + refused.stderr, /locked by another command, such as 'svc restore'/);
        await restore.goOn();
      } finally {
        restore.kill();
      }
      assert.equal(await restored(target), RECORDS);
      for (const table of ["tokens", "sessions"]) {
        assert.equal(await rows(target, `SELECT count(*) FROM ${table}`), "0", table);
      }
    });

    it("an instance that was silent waits for the end, and has no earlier session", async () => {
      const target = await kind().create();
      await command(["restore", backup, "--keep-sessions"], target);
      const service = await start(host, target);
      assert.equal((await call(service, "GET", "/api/tokens", sessionOfBackup)).status, 200);
      process.kill(service.pid, "SIGSTOP");
      try {
        await until(
          async () => (await rows(target, `SELECT ${now} - reported_at > 15000 FROM instances`)) === yes,
        );
        const restore = await heldRestore(target, isReplacing);
        try {
          process.kill(service.pid, "SIGCONT");
          const minted = call(service, "POST", "/api/tokens?check=false", sessionOfBackup, {
            repository: "acme/widgets",
            scopes: "contents:read",
            duration: "1h",
          });
          await Promise.race([minted, until(async () => isWaiting(target))]);
          await restore.goOn();
          assert.equal((await minted).status, 401);
        } finally {
          restore.kill();
        }
      } finally {
        process.kill(service.pid, "SIGCONT");
      }
      await mint(service, await signIn(service));
      await service.stop();
      assert.equal(await rows(target, "SELECT count(*) FROM tokens"), "1", "only the new one");
      assert.equal(await rows(target, "SELECT count(*) FROM sessions"), "1", "only the new one");
      assert.equal(await restored(target), RECORDS);
    });

    it("a restore is refused while an instance writes, and none of its writes is lost", async () => {
      const { target } = await usedDatabase();
      const service = await start(host, target);
      const session = await signIn(service);
      let minted = 0;
      const writing = new AbortController();
      const writes = (async () => {
        for (; !writing.signal.aborted; minted++) await mint(service, session);
      })();
      for (let round = 0; round < 2; round++) {
        const refused = await svc(
          ["restore", backup, "--replace"],
          { ...target, SVC_BACKUP_PASSPHRASE: PASSPHRASE },
          folder.path,
        );
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, /1 instance\(s\) use the database/);
      }
      writing.abort();
      await writes;
      assert.equal((await call(service, "GET", "/api/tokens", session)).status, 200);
      await service.stop();
      assert.ok(minted > 0);
      assert.equal(Number(await rows(target, "SELECT count(*) FROM tokens")), minted + 1);
      assert.equal(await restored(target), 0);
    });
  });
}

async function serveAlone(target: Record<string, string>): ReturnType<typeof svc> {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const listen = { SVC_SERVER_LISTEN: `127.0.0.1:${port}`, SVC_METRICS_LISTEN: `127.0.0.1:${metricsPort}` };
  return svc(["serve"], { SVC_DEV_MODE: "true", ...listen, ...target }, folder.path);
}

/** Number of processes that have a file open. */
async function openers(path: string): Promise<number> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    processes.map(async (id) => {
      // Processes end while this looks at them.
      const files = await readdir(`/proc/${id}/fd`).catch(() => []);
      const targets = files.map(async (file) => readlink(`/proc/${id}/fd/${file}`).catch(() => ""));
      return (await Promise.all(targets)).includes(path);
    }),
  );
  return found.filter(Boolean).length;
}
