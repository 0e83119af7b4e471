import { cp, mkdir, readFile, writeFile, chmod, chown } from "node:fs/promises";
import { basename, join } from "node:path";
import {
  freePort,
  newerGitFolder,
  run,
  startSvc,
  tempFolder,
  type Svc,
  type TempFolder,
} from "@devplat/testkit";
import { PARTING_RULES, Router } from "./router.ts";

/** Result of one test of a script. */
export type Verdict = "passed" | "failed" | "skipped";

/** Results of a script. */
export interface ScriptResult {
  /** By the title of the test. A title that a script uses twice has a number behind it. */
  readonly tests: ReadonlyMap<string, Verdict>;
  readonly code: number;
  readonly output: string;
  /** Requests of repositories that `svc` answered. */
  readonly requests: number;
}

/** A user of Debian without rights. Git's tests of HTTP refuse to run as root. */
const UNPRIVILEGED = { uid: 65534, gid: 65534 };
/** A hang ends by itself; a loaded machine needs a tenth of it. */
const SCRIPT_TIMEOUT_MS = 900_000;

/**
 * Runs git's own test scripts, with Apache in front of `git http-backend` as their `lib-httpd.sh` starts it, and `svc` in front
 * of Apache. In git's files are changed: the port at which Apache listens, as the tests use that of {@link Router}; the rules that
 * part joined words; and the ends of lines in a response that a script writes for Apache.
 */
export class GitSuite {
  readonly #folder: TempFolder;
  /** The version of git. */
  readonly version: string;

  private constructor(folder: TempFolder, version: string) {
    this.#folder = folder;
    this.version = version;
  }

  static async start(): Promise<GitSuite> {
    const { stdout } = await run(join(newerGitFolder(), "bin/git"), ["--version"]);
    const suite = new GitSuite(await tempFolder("git-suite"), stdout.trim().split(" ").at(-1) ?? "");
    await suite.#prepare();
    return suite;
  }

  async stop(): Promise<void> {
    await this.#folder.remove();
  }

  async run(script: string): Promise<ScriptResult> {
    const apachePort = await freePort();
    const router = await Router.start(apachePort);
    const origin = `http://127.0.0.1:${apachePort}`;
    const svc = await startSvc({
      codeHost: { url: origin, apiUrl: `${origin}/api` },
      env: { SVC_SERVER_BASE_URL: `http://127.0.0.1:${router.port}` },
    });
    try {
      router.svc = { port: Number(new URL(svc.url).port), list: await lister(svc) };
      const finished = await this.#execute(script, apachePort, router.port);
      const output = `${finished.stdout}\n${finished.stderr}`;
      return {
        tests: verdicts(finished.stdout),
        code: finished.code,
        output: `${output}\n${svc.log()}`,
        requests: [...svc.log().matchAll(REPOSITORY_REQUEST)].length,
      };
    } finally {
      await this.#stopApache(script);
      await svc.stop();
      router.stop();
    }
  }

  /** Ends Apache after a script that was killed. Others do it themselves. */
  async #stopApache(script: string): Promise<void> {
    const trash = join(this.#folder.path, "out", `trash directory.${basename(script, ".sh")}`);
    const pid = await readFile(join(trash, "httpd/httpd.pid"), "utf8").catch(() => undefined);
    if (pid !== undefined) process.kill(Number(pid), "SIGTERM");
  }

  async #prepare(): Promise<void> {
    const root = this.#folder.path;
    await chmod(root, 0o755);
    await cp(newerGitFolder(), root, { recursive: true, verbatimSymlinks: true });
    const options = join(root, "GIT-BUILD-OPTIONS");
    await writeFile(options, (await readFile(options, "utf8")).replaceAll(BUILD_FOLDER, `='${root}`));
    const lib = join(root, "t/lib-httpd.sh");
    await writeFile(lib, replaced(await readFile(lib, "utf8"), LISTEN, OWN_LISTEN));
    const apache = join(root, "t/lib-httpd/apache.conf");
    await writeFile(apache, replaced(await readFile(apache, "utf8"), ENGINE, ENGINE + PARTING_RULES));
    const nph = join(root, "t/lib-httpd/nph-custom-auth.sh");
    await writeFile(nph, withCarriageReturns(await readFile(nph, "utf8")));
    await mkdir(join(root, "out"));
    if (process.getuid?.() === 0) await chown(join(root, "out"), UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  }

  async #execute(script: string, apachePort: number, routerPort: number): ReturnType<typeof run> {
    const root = this.#folder.path;
    const out = join(root, "out");
    const env = {
      PATH: `${process.env["PATH"] ?? ""}:/usr/sbin`,
      HOME: out,
      TEST_OUTPUT_DIRECTORY: out,
      GIT_TEST_INSTALLED: join(root, "bin"),
      GIT_TEST_HTTPD: "true",
      LIB_HTTPD_PORT: String(routerPort),
      APACHE_PORT: String(apachePort),
    };
    const unprivileged = ["--reuid", String(UNPRIVILEGED.uid), "--regid", String(UNPRIVILEGED.gid)];
    const [program = "", ...args] =
      process.getuid?.() === 0
        ? ["setpriv", ...unprivileged, "--clear-groups", "--", "sh", script]
        : ["sh", script];
    return await run(program, args, { cwd: join(root, "t"), env, timeoutMs: SCRIPT_TIMEOUT_MS });
  }
}

/** The folder in which git was built, as the value of an option begins. */
const BUILD_FOLDER = /='[^']*\/sources\/git(?=[/'])/g;
const LISTEN = "Listen 127.0.0.1:$LIB_HTTPD_PORT";
const OWN_LISTEN = "Listen 127.0.0.1:$APACHE_PORT";
const ENGINE = "RewriteEngine on\n";

/** @throws if the text does not have this part exactly once */
function replaced(text: string, part: string, by: string): string {
  const parts = text.split(part);
  if (parts.length !== 2) throw new Error(`git's file has ${parts.length - 1} times: ${part}`);
  return parts.join(by);
}

/** The script ends the lines of a response's head with a line feed alone, which Node's HTTP client refuses. */
function withCarriageReturns(script: string): string {
  return script
    .replaceAll(/^(\s*)echo (["'])(HTTP.*)\2$/gm, "$1printf '%s\\r\\n' $2$3$2")
    .replaceAll(/^(\s*sed -ne .*response=\/\/p.*)$/gm, "$1 | sed 's/$/\\r/'")
    .replaceAll(/^(\s*)echo$/gm, "$1printf '\\r\\n'");
}

async function lister(svc: Svc): Promise<(owner: string, name: string) => Promise<void>> {
  const token = await svc.signIn();
  return async (owner, name) => {
    const response = await fetch(`${svc.url}/api/cached-repos`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ owner, name }),
    });
    if (response.status !== 201) throw new Error(`${owner}/${name}: ${await response.text()}`);
  };
}

/** A line of the access log of `svc`. */
const REPOSITORY_REQUEST = /"path":"\/[^/"]+\/[^/"]+\/(?:info\/refs|git-|HEAD|objects\/)/g;

/** Reads the lines of the Test Anything Protocol. */
function verdicts(output: string): Map<string, Verdict> {
  const tests = new Map<string, Verdict>();
  for (const [, not, text = ""] of output.matchAll(/^(not )?ok \d+ (?:- )?(.*)$/gm)) {
    const [, skipped] = /^(?:# skip )(.*?)(?: \(.*\))?$/.exec(text) ?? [];
    const known = /^(.*) # TODO known breakage$/.exec(text)?.[1];
    const title = skipped ?? known ?? text;
    let name = title;
    for (let number = 2; tests.has(name); number++) name = `${title} (${number})`;
    const isSkipped = skipped !== undefined || known !== undefined;
    tests.set(name, isSkipped ? "skipped" : not === undefined ? "passed" : "failed");
  }
  return tests;
}
