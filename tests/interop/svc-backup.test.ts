import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  repositories,
  run,
  runAtTerminal,
  startCodeHost,
  startPostgres,
  SVC_LAUNCHER,
  tempFolder,
  type CodeHost,
  type Postgres,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import {
  call,
  clone,
  HOST_TOKEN,
  KEY,
  mint,
  PASSPHRASE,
  postgresKind,
  signIn,
  sqliteKind,
  start,
  svc,
  type DatabaseKind,
} from "./svc-backup-stand.ts";

const WITH_PASSPHRASE = { SVC_BACKUP_PASSPHRASE: PASSPHRASE };

let folder: TempFolder;
let host: CodeHost;
let postgres: Postgres;
const kinds = new Map<string, DatabaseKind>();
const kind = (name: string): DatabaseKind => kinds.get(name) ?? assert.fail(name);
/** Everything that the commands printed. */
const printed: string[] = [];

before(async () => {
  [folder, host, postgres] = await Promise.all([tempFolder("svc-backup"), startCodeHost(), startPostgres()]);
  host.addUser("root", HOST_TOKEN);
  await host.addRepository("acme", "widgets", { private: true, build: repositories.linear });
  kinds.set("SQLite", sqliteKind(folder.path)).set("Postgres", postgresKind(folder.path, postgres));
});
after(async () => {
  await host?.stop();
  await postgres?.stop();
  await folder?.remove();
});

async function command(args: readonly string[], environment: Record<string, string>): ReturnType<typeof svc> {
  const done = await svc(args, { ...WITH_PASSPHRASE, ...environment }, folder.path);
  printed.push(done.stdout, done.stderr);
  return done;
}

async function succeed(args: readonly string[], environment: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await command(args, environment);
  assert.equal(code, 0, stderr);
  return stdout;
}

for (const from of ["SQLite", "Postgres"]) {
  describe(`svc backup of ${from}, and svc restore`, { timeout: 240_000 }, () => {
    let original: Record<string, string>;
    let file: string;
    const known = { session: "", admin: "", token: "", revoked: "" };

    before(async () => {
      original = await kind(from).create();
      file = join(folder.path, `${from}.age`);
      const service = await start(host, original);
      await succeed(["migrate", "status"], original);
      known.session = await signIn(service);
      await call(service, "POST", "/api/cached-repos", known.session, { owner: "acme", name: "widgets" });
      const made = await call(service, "POST", "/api/admin-tokens", known.session, {
        name: "ci",
        duration: "1d",
      });
      known.admin = String(made.body["token"]);
      known.token = (await mint(service, known.session)).token;
      const revoked = await mint(service, known.session);
      known.revoked = revoked.token;
      // While clients write: each record is whole, and the service answers all of them.
      const writing = writeUntilStopped(service, known.session);
      await succeed(["backup", "-o", file], original);
      const { statuses, lastBefore } = await writing();
      assert.deepEqual([...new Set(statuses)], [201]);
      assert.ok(lastBefore > 0, "writes were made during the backup");
      await call(service, "DELETE", `/api/tokens/${revoked.id}`, known.session);
      await service.stop();
      await kind(from).destroy(original);
    });

    it("writes a file with mode 0600, and leaves no other", async () => {
      assert.equal((await stat(file)).mode & 0o777, 0o600);
      const left = (await readdir(folder.path)).filter((name) => name.startsWith("tmp_"));
      assert.deepEqual(left, []);
    });

    it("svc restore --check shows the content without a configuration, and no secret", async () => {
      const shown = JSON.parse(await succeed(["restore", file, "--check", "--json"], {})) as Record<
        string,
        unknown
      >;
      assert.equal(shown["driver"], from.toLowerCase());
      assert.equal(shown["has_key"], true);
      assert.equal((shown["rows"] as Record<string, number>)["cached_repositories"], 1);
      assert.ok((shown["variables"] as string[]).includes("SVC_ENCRYPTION_KEY"));
    });

    for (const to of ["SQLite", "Postgres"]) {
      it(`after the loss of everything, ends sessions and tokens on a new ${to}`, async () => {
        const target = await kind(to).create();
        const said = await succeed(["restore", file], target);
        assert.match(said, /ended 1 session\(s\)[^]*ended \d+ token\(s\)[^]*fetched again/);
        const service = await start(host, target);
        for (const token of [known.session, known.admin]) {
          assert.equal((await call(service, "GET", "/api/cached-repos", token)).status, 401);
        }
        assert.notEqual(await clone(service, known.token, join(folder.path, `no-${from}-${to}`)), 0);
        await usable(service, `${from}-${to}`);
        await service.stop();
      });

      it(`with --keep-tokens, clones with a token from before on a new ${to}`, async () => {
        const target = await kind(to).create();
        const kept = await command(["restore", file, "--keep-tokens", "--keep-sessions"], target);
        assert.equal(kept.code, 0, kept.stderr);
        assert.match(kept.stderr, /token\(s\) are valid, also those that were revoked after/);
        const service = await start(host, target);
        assert.equal(await clone(service, known.token, join(folder.path, `kept-${from}-${to}`)), 0);
        const list = await call(service, "GET", "/api/cached-repos", known.admin);
        assert.equal(list.status, 200);
        assert.equal((await call(service, "GET", "/api/cached-repos", known.session)).status, 200);
        await service.stop();
      });
    }

    it("a database with content is refused until --replace, and stays as it is", async () => {
      const target = await kind(from).create();
      await succeed(["restore", file, "--keep-tokens"], target);
      const again = await command(["restore", file], target);
      assert.equal(again.code, 1);
      assert.match(again.stderr, /database is not empty[^]*--replace/);
      const service = await start(host, target);
      assert.equal(await clone(service, known.token, join(folder.path, `refused-${from}`)), 0);
      const running = await command(["restore", file, "--replace"], target);
      assert.match(running.stderr, /1 instance\(s\) use the database/);
      await service.stop();
      assert.match(await succeed(["restore", file, "--replace"], target), /deleted [^]*restored/);
    });

    it("with another key secrets are encrypted for it; without one the reason is clear", async () => {
      const { SVC_ENCRYPTION_KEY: _, ...target } = await kind(from).create();
      const none = await command(["restore", file], target);
      assert.equal(none.code, 2);
      assert.match(none.stderr, /SVC_ENCRYPTION_KEY\) is not set[^]*--configuration/);
      const other = { ...target, SVC_ENCRYPTION_KEY: "1b".repeat(32) };
      await succeed(["restore", file, "--keep-tokens"], other);
      const service = await start(host, other);
      assert.equal(await clone(service, known.token, join(folder.path, `other-key-${from}`)), 0);
      await service.stop();
    });

    it("cached data that may have been purged since the backup is fetched again", async () => {
      const storage = { SVC_CACHE_STORAGE_PATH: join(folder.path, `cache-${from}`), SVC_HOST_URL: host.url };
      const first = { ...(await kind(from).create()), ...storage };
      const service = await start(host, first);
      const session = await signIn(service);
      await call(service, "POST", "/api/cached-repos", session, { owner: "acme", name: "widgets" });
      const { token } = await mint(service, session);
      for (const name of ["one", "two"]) {
        assert.equal(await clone(service, token, join(folder.path, `${name}-${from}`)), 0);
      }
      assert.deepEqual([await fetches(service, "miss"), await fetches(service, "hit")], [1, 1]);
      await service.stop();
      const backup = join(folder.path, `cache-${from}.age`);
      await succeed(["backup", "-o", backup], first);
      for (const [options, expected] of [
        [["--keep-tokens", "--keep-cache"], "hit"],
        [["--keep-tokens"], "miss"],
      ] as const) {
        const target = { ...(await kind(from).create()), ...storage };
        await succeed(["restore", backup, ...options], target);
        const restored = await start(host, target);
        assert.equal(await clone(restored, token, join(folder.path, `${expected}-${from}`)), 0);
        assert.equal(await fetches(restored, expected), 1, expected);
        await restored.stop();
      }
    });
  });
}

async function fetches(service: Svc, result: "hit" | "miss"): Promise<number> {
  const metrics = await (await fetch(service.metricsUrl)).text();
  return Number(
    new RegExp(`^svc_cache_fetch_total\\{result="${result}"\\} (\\d+)$`, "m").exec(metrics)?.[1] ?? 0,
  );
}

/** Users sign in again, their stored credentials are readable, and new tokens clone. */
async function usable(service: Svc, name: string): Promise<void> {
  const { token } = await mint(service, await signIn(service));
  assert.equal(await clone(service, token, join(folder.path, name)), 0);
}

/** Mints tokens until the returned function is called. */
function writeUntilStopped(
  service: Svc,
  session: string,
): () => Promise<{ readonly statuses: readonly number[]; readonly lastBefore: number }> {
  const statuses: number[] = [];
  const running = new AbortController();
  const request = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
  const done = (async () => {
    while (!running.signal.aborted) {
      statuses.push((await call(service, "POST", "/api/tokens?check=false", session, request)).status);
    }
  })();
  return async () => {
    const lastBefore = statuses.length;
    running.abort();
    await done;
    return { statuses, lastBefore };
  };
}

describe("svc backup on the command line", { timeout: 240_000 }, () => {
  let source: Record<string, string>;
  before(async () => {
    source = await kind("SQLite").create();
    await succeed(["migrate"], source);
  });

  it("asks for the passphrase twice, and for it once at the restore", async () => {
    const file = join(folder.path, "asked.age");
    const env = { ...process.env, ...source };
    const made = await runAtTerminal(SVC_LAUNCHER, ["backup", "-o", file], {
      env,
      answers: [
        [/Passphrase for the backup/, PASSPHRASE],
        [/The same again/, PASSPHRASE],
      ],
    });
    assert.equal(made.code, 0, made.shown);
    const checked = await runAtTerminal(SVC_LAUNCHER, ["restore", file, "--check"], {
      env,
      answers: [[/Passphrase of the backup/, PASSPHRASE]],
    });
    assert.match(checked.shown, /complete and undamaged/);
    const different = await runAtTerminal(SVC_LAUNCHER, ["backup", "-o", file], {
      env,
      answers: [
        [/Passphrase for the backup/, PASSPHRASE],
        [/The same again/, "another passphrase"],
      ],
    });
    assert.equal(different.code, 2);
    assert.doesNotMatch(made.shown + checked.shown + different.shown, new RegExp(PASSPHRASE));
  });

  it("pipes a backup for recipients of stock age to a restore from standard input", async () => {
    const identity = join(folder.path, "identity.txt");
    const made = await run("age-keygen", ["-o", identity]);
    assert.equal(made.code, 0, made.stderr);
    const recipient = /age1\w+/.exec(made.stderr)?.[0] ?? "";
    const script = `"$SVC" backup -r "$RECIPIENT" -o - | "$SVC" restore - -i "$IDENTITY" --check`;
    const env = { ...process.env, ...source, SVC: SVC_LAUNCHER, RECIPIENT: recipient, IDENTITY: identity };
    const piped = await run("bash", ["-o", "pipefail", "-c", script], { env, cwd: folder.path });
    assert.equal(piped.code, 0, piped.stderr);
    assert.match(piped.stdout, /^backup of .*, complete and undamaged\n/);
    const wrong = await command(["backup", "-r", await readFile(identity, "utf8"), "-o", "-"], source);
    assert.equal(wrong.code, 2);
  });

  it("--without-key leaves the key out of everything, and restores where the key is", async () => {
    const file = join(folder.path, "without.age");
    await succeed(["backup", "--without-key", "-o", file], source);
    const shown = JSON.parse(await succeed(["restore", file, "--check", "--json"], {})) as Record<
      string,
      unknown
    >;
    assert.equal(shown["has_key"], false);
    assert.equal((shown["variables"] as string[]).includes("SVC_ENCRYPTION_KEY"), false);
    const written = await command(["restore", file, "--configuration", join(folder.path, "no-key")], {});
    assert.match(written.stderr, /has no encryption key: add your copy to secrets\.env/);
    const inFile = await command(["restore", file, "--configuration", file], {});
    assert.match(inFile.stderr, /Cannot write the configuration into .*: it is not a folder/);
    await succeed(["restore", file], await kind("SQLite").create());
  });

  it("with a key of other secrets writes nothing, unless it leaves the key out", async () => {
    const right = await kind("SQLite").create();
    const service = await start(host, right);
    await signIn(service);
    await service.stop();
    const wrong = { ...right, SVC_ENCRYPTION_KEY: "1b".repeat(32) };
    const file = join(folder.path, "wrong-key.age");
    const refused = await command(["backup", "-o", file], wrong);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /encrypted with another key[^]*SVC_ENCRYPTION_KEY_PREVIOUS/);
    assert.equal((await readdir(folder.path)).includes("wrong-key.age"), false);
    const noted = await command(["backup", "--without-key", "-o", file], wrong);
    assert.equal(noted.code, 0, noted.stderr);
    assert.match(noted.stderr, /encrypted with another key .*A restore needs that key/);
    await succeed(["restore", file], await kind("SQLite").create());
  });

  it("--configuration writes what a new machine needs", async () => {
    const config = join(folder.path, "svc.yaml");
    await writeFile(config, `# ours\nhost: { url: "${host.url}" }\n`);
    const file = join(folder.path, "configured.age");
    await succeed(["-c", config, "backup", "-o", file], source);
    const target = join(folder.path, "new-machine");
    await succeed(["restore", file, "--configuration", target], {});
    assert.equal(await readFile(join(target, "config.yaml"), "utf8"), await readFile(config, "utf8"));
    await kind("SQLite").destroy(source);
    const script = `set -a; . "$FOLDER/secrets.env"; mkdir "$SVC_DATA_DIR"; exec "$SVC" -c "$FOLDER/config.yaml" restore "$FILE"`;
    const env = {
      PATH: process.env["PATH"],
      SVC: SVC_LAUNCHER,
      FOLDER: target,
      FILE: file,
      ...WITH_PASSPHRASE,
    };
    const done = await run("sh", ["-c", script], { env, cwd: folder.path });
    assert.equal(done.code, 0, done.stderr);
  });

  it("refuses what would surprise, with a reason, and changes nothing", async () => {
    const file = join(folder.path, "SQLite.age");
    const empty = await kind("SQLite").create();
    const cases: readonly (readonly [readonly string[], Record<string, string>, RegExp])[] = [
      [["backup", "-o", "x.age"], empty, /does not exist/],
      [["backup"], empty, /needs: --output/],
      [["backup", "-o", "-", "--json"], source, /--json needs a file/],
      [["backup", "-o", "/dev/null"], source, /is not a file/],
      [["backup", "-o", "missing/x.age"], source, /no such file or folder/],
      [["backup", "-o", "x.age", "-r", "age1nonsense"], source, /not a recipient of age/],
      [["backup", "-o", "x.age"], { ...source, SVC_BACKUP_PASSPHRASE: "short" }, /8 characters/],
      [["backup", "-o", "x.age", "--passphrase-file", "missing"], source, /Cannot read the passphrase file/],
      [["restore", "missing.age"], empty, /no such file/],
      [
        ["restore", file],
        { ...empty, SVC_HOST_URL: "https://git.example.com" },
        /host https:\/\/github\.com, but the configuration has https:\/\/git\.example\.com[^]*--other-host/,
      ],
      [["restore", file], { ...empty, SVC_BACKUP_PASSPHRASE: "wrong passphrase" }, /passphrase is wrong/],
      [
        ["restore", file, "--check", "--configuration", "x"],
        empty,
        /--check.*--configuration|--configuration.*--check/,
      ],
    ];
    for (const [args, environment, message] of cases) {
      const { code, stderr } = await command(args, environment);
      assert.notEqual(code, 0, args.join(" "));
      assert.match(stderr, message, args.join(" "));
    }
    assert.deepEqual(await readdir(empty["SVC_DATA_DIR"] ?? ""), []);
    assert.equal((await readdir(folder.path)).includes("x.age"), false);
  });

  it("none of the commands printed a secret", () => {
    const all = printed.join("\n");
    for (const secret of [KEY, HOST_TOKEN, PASSPHRASE]) assert.equal(all.includes(secret), false);
    assert.doesNotMatch(all, /AGE-SECRET-KEY-1\w/);
    assert.doesNotMatch(all, /svc[rxa]_\w{20}/);
  });
});
