import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, readdir, stat } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import {
  loopSeconds,
  randomFrom,
  run,
  startPostgres,
  SVC_LAUNCHER,
  tempFolder,
  testSeed,
  until,
  type Postgres,
  type TempFolder,
} from "@devplat/testkit";
import {
  KEY,
  PASSPHRASE,
  postgresKind,
  psql,
  sqliteKind,
  svc,
  type DatabaseKind,
} from "./svc-backup-stand.ts";

/** Audit records of the database: to write them takes about a second. */
const RECORDS = 40_000;
/** Time that a whole backup takes, start included. The kills are spread over it. */
const LONGEST_MS = 4000;
/** Time from the first change of the database to the end of a restore. The kills are spread over it. */
const LONGEST_RESTORE_MS = 1500;

let folder: TempFolder;
let postgres: Postgres;
/** A database file with {@link RECORDS} audit records, and its backup. */
let source: Record<string, string>;
let backup: string;
before(async () => {
  [folder, postgres] = await Promise.all([tempFolder("svc-backup-kill"), startPostgres()]);
  source = await sqliteKind(folder.path).create();
  backup = join(folder.path, "source.age");
  await command(["migrate"], source);
  const db = new DatabaseSync(join(source["SVC_DATA_DIR"] ?? "", "svc.db"));
  db.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${RECORDS})
    INSERT INTO audit (id, at, action, outcome, actor_kind, details)
    SELECT 'record-' || i, i, 'git.fetch', 'allowed', 'system', '{"note":"' || hex(randomblob(60)) || '"}' FROM n`);
  db.close();
  await command(["backup", "-o", backup], source);
});
after(async () => {
  await postgres?.stop();
  await folder?.remove();
});

const environment = (given: Record<string, string>): Record<string, string> => ({
  SVC_BACKUP_PASSPHRASE: PASSPHRASE,
  ...given,
});

async function command(args: readonly string[], given: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await svc(args, environment(given), folder.path);
  assert.equal(code, 0, stderr);
  return stdout;
}

/**
 * Runs a command and kills it.
 *
 * @param begun whether the command has done what the kill waits for
 * @param ms time from then to the kill
 */
async function killed(
  args: readonly string[],
  given: Record<string, string>,
  ms: number,
  begun: () => Promise<boolean> = async () => true,
): Promise<void> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
  const env = { ...Object.fromEntries(inherited), ...environment(given) };
  // The launcher becomes the program (exec), so the signal reaches it.
  const child = spawn(SVC_LAUNCHER, args, { env, cwd: folder.path, stdio: "ignore" });
  const ended = once(child, "close");
  while (child.exitCode === null && !(await begun())) await sleep(5);
  await Promise.race([sleep(ms), ended]);
  child.kill("SIGKILL");
  await ended;
}

const temporaryFiles = async (place: string): Promise<readonly string[]> =>
  (await readdir(place)).filter((name) => name.startsWith("tmp_svc-backup_"));

/** Whether the restore has made the database of an empty target. */
async function isMade({
  SVC_DATA_DIR = "",
  SVC_DATABASE_DSN: dsn,
}: Record<string, string>): Promise<boolean> {
  if (dsn === undefined) return (await readdir(SVC_DATA_DIR)).includes("svc.db");
  return (await psql(dsn, "SELECT to_regclass('users') IS NOT NULL")).trim() === "t";
}

const kinds: readonly (readonly [
  string,
  () => DatabaseKind,
  (environment: Record<string, string>) => Promise<number | "no table">,
])[] = [
  [
    "SQLite",
    () => sqliteKind(folder.path),
    async ({ SVC_DATA_DIR = "" }) => {
      const path = join(SVC_DATA_DIR, "svc.db");
      if (!(await readdir(SVC_DATA_DIR)).includes("svc.db")) return "no table";
      const db = new DatabaseSync(path);
      try {
        assert.deepEqual(Object.values(db.prepare("PRAGMA integrity_check").get() ?? {}), ["ok"]);
        const { found } =
          db.prepare("SELECT count(*) AS found FROM sqlite_master WHERE name = 'audit'").get() ?? {};
        if (found === 0) return "no table";
        return Number(db.prepare("SELECT count(*) AS count FROM audit").get()?.["count"]);
      } finally {
        db.close();
      }
    },
  ],
  [
    "Postgres",
    () => postgresKind(folder.path, postgres),
    async ({ SVC_DATABASE_DSN: dsn = "" }) => {
      if ((await psql(dsn, "SELECT to_regclass('audit') IS NOT NULL")).trim() !== "t") return "no table";
      return Number(await psql(dsn, "SELECT count(*) FROM audit"));
    },
  ],
];

for (const [name, kindOf, countRecords] of kinds) {
  describe(`svc restore into ${name} that is killed`, { timeout: 400_000 }, () => {
    it("leaves no database, an empty one, or the whole; a second run completes it", async () => {
      const kind = kindOf();
      const seed = testSeed();
      const random = randomFrom(seed);
      const deadline = performance.now() + 1000 * loopSeconds(0.1);
      const whole = RECORDS + 1;
      const states = new Set<string>();
      for (let round = 0; round < 6 || (round < 40 && performance.now() < deadline); round++) {
        const target = await kind.create();
        const ms = (round < 6 ? round / 6 : random()) * LONGEST_RESTORE_MS;
        await killed(["restore", backup], target, ms, async () => isMade(target));
        const found = await countRecords(target);
        assert.ok(
          ["no table", 0, whole].includes(found),
          `${found} records after a kill at ${ms} ms, seed ${seed}`,
        );
        states.add(String(found));
        await command(["restore", backup, "--replace"], target);
        assert.equal(await countRecords(target), whole);
        await kind.destroy(target);
      }
      assert.ok(states.size > 1 || !states.has(String(whole)), "no kill came before the end");
    });

    it("leaves the content of a database that it replaces, or the new one", async () => {
      const kind = kindOf();
      const target = await kind.create();
      await command(["restore", backup], target);
      const restored = RECORDS + 1;
      const second = join(folder.path, `second-${name}.age`);
      await command(["backup", "-o", second], target);
      // The backup itself is recorded after it is complete.
      for (let round = 1; round <= 4; round++) {
        const former = await countRecords(target);
        await killed(["restore", second, "--replace"], target, 1500 + (round / 5) * LONGEST_MS);
        const found = await countRecords(target);
        assert.ok(found === former || found === restored + 1, `${found}, formerly ${former}`);
      }
      await kind.destroy(target);
    });
  });
}

describe("svc backup that is killed", { timeout: 240_000 }, () => {
  it("leaves the old file or the new one, both whole", async () => {
    const target = join(folder.path, "replaced.age");
    await copyFile(backup, target);
    const random = randomFrom(testSeed());
    for (let round = 0; round < 8; round++) {
      await killed(["backup", "-o", target], source, random() * LONGEST_MS);
      await command(["restore", target, "--check"], {});
      assert.equal(
        (await stat(target)).mode & 0o777,
        round === 0 ? (await stat(target)).mode & 0o777 : 0o600,
      );
    }
  });

  it("leaves a file that the next backup removes, but not that of a running one", async () => {
    const place = join(folder.path, "left");
    await mkdir(place);
    const written = async (): Promise<boolean> => (await temporaryFiles(place)).length > 0;
    await killed(["backup", "-o", join(place, "first.age")], source, 0, written);
    const left = await temporaryFiles(place);
    assert.equal(left.length, 1);
    // A backup that waits: its file must stay.
    const child = spawn(SVC_LAUNCHER, ["backup", "-o", join(place, "slow.age")], {
      env: { ...process.env, ...environment(source) },
      stdio: "ignore",
    });
    const ended = once(child, "close");
    try {
      const other = await until(async () =>
        (await temporaryFiles(place)).find((name) => !left.includes(name)),
      );
      child.kill("SIGSTOP");
      assert.ok(!(await temporaryFiles(place)).includes(left[0] ?? ""));
      await command(["backup", "-o", join(place, "second.age")], source);
      assert.deepEqual((await readdir(place)).toSorted(), ["second.age", other]);
      child.kill("SIGCONT");
      assert.deepEqual(await ended, [0, null]);
    } finally {
      child.kill("SIGKILL");
    }
    assert.deepEqual((await readdir(place)).toSorted(), ["second.age", "slow.age"]);
  });

  it("by SIGTERM removes its temporary file", async () => {
    const place = join(folder.path, "terminated");
    await mkdir(place);
    const child = spawn(SVC_LAUNCHER, ["backup", "-o", join(place, "x.age")], {
      env: { ...process.env, ...environment(source) },
      stdio: "ignore",
    });
    const ended = once(child, "close");
    while ((await readdir(place)).length === 0 && child.exitCode === null) await sleep(1);
    child.kill("SIGTERM");
    await ended;
    const left = await readdir(place);
    assert.ok(left.length === 0 || left.join() === "x.age", left.join());
  });
});

describe("svc backup and svc restore on a full disk", { timeout: 240_000 }, () => {
  /** Runs commands where `$1` is a folder on a small file system of its own. */
  const onSmallDisk = (kilobytes: number, script: string, given: Record<string, string>) =>
    run(
      "unshare",
      [
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        `mount -t tmpfs -o size=${kilobytes}k tmpfs "$1" && ${script}`,
        "sh",
        join(folder.path, "disk"),
      ],
      {
        env: { ...process.env, ...environment(given), SVC: SVC_LAUNCHER, BACKUP: backup },
        timeoutMs: 120_000,
      },
    );
  before(async () => mkdir(join(folder.path, "disk")));

  it("a backup names the reason, and leaves no file", async () => {
    const script = `"$SVC" backup -o "$1/x.age"; echo "code $?"; ls -A "$1"`;
    const { stdout, stderr } = await onSmallDisk(64, script, source);
    assert.match(stderr, /Cannot write the backup .*: the disk is full/);
    assert.equal(stdout, "code 1\n");
  });

  it("a restore names the reason, and the database stays empty", async () => {
    const script = `"$SVC" restore "$BACKUP"; echo "code $?"; "$SVC" migrate status --json; "$SVC" backup -o "$TMPDIR/after.age"`;
    const given = { SVC_DATA_DIR: join(folder.path, "disk"), SVC_ENCRYPTION_KEY: KEY, TMPDIR: folder.path };
    const { stdout, stderr } = await onSmallDisk(2048, script, given);
    assert.match(stderr, /Cannot restore: a disk is full\. The database is as it was/);
    assert.match(stdout, /code 1/);
    assert.match(stdout, /saved no rows/);
  });

  it("a temporary folder without space is named, too", async () => {
    const target = await sqliteKind(folder.path).create();
    const script = `SQLITE_TMPDIR="$1" "$SVC" restore "$BACKUP"; echo "code $?"`;
    const { stdout, stderr } = await onSmallDisk(1024, script, target);
    assert.match(stderr, /Cannot restore: a disk is full/);
    assert.match(stdout, /code 1/);
  });

  it("--check needs no space", async () => {
    const script = `SQLITE_TMPDIR="$1" TMPDIR="$1" "$SVC" restore "$BACKUP" --check; echo "code $?"`;
    const { stdout, stderr } = await onSmallDisk(16, script, {});
    assert.match(stdout, /complete and undamaged[^]*code 0/, stderr);
  });
});
