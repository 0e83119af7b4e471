import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Server } from "node:net";
import { after, before, describe, it } from "node:test";
import { git, repositories } from "@devplat/testkit";
import { DEFAULTS } from "../../apps/svc/src/config/defaults.ts";
import { ForwardClock } from "./forward-clock.ts";
import { startStand, type Stand } from "./svc-git-stand.ts";

/** Refs of the repository with a large list: some 1.3 MB of it. */
const MANY_REFS = 20_000;
/** Commits that only the client has: enough for several rounds of a negotiation. */
const LOCAL_COMMITS = 400;
/** Milliseconds that each request takes to get through the slow link. */
const SLOW_REQUEST_MS = 2000;
/** Bytes of an answer that get through the slow link in a second. */
const SLOW_BYTES_PER_SECOND = 100_000;

/** Requests that reached the code host. A probe is an `ls-refs` of the service's own. */
interface Requests {
  readonly infoRefs: number;
  readonly lsRefs: number;
  readonly probes: number;
  readonly fetches: number;
}

function requestsOf({ codeHost: { calls } }: Stand): Requests {
  const isProbe = (agent: string | undefined): boolean => agent?.startsWith("svc/") === true;
  const lsRefs = calls.filter(({ command }) => command === "ls-refs");
  const probes = lsRefs.filter(({ headers }) => isProbe(headers["user-agent"])).length;
  return {
    infoRefs: calls.filter(({ path }) => path.endsWith("/info/refs")).length,
    lsRefs: lsRefs.length - probes,
    probes,
    fetches: calls.filter(({ command }) => command === "fetch").length,
  };
}

/** Passes connections on to the service. The clock goes forward instead of the link being slow. */
async function slowLink(stand: Stand, clock: ForwardClock): Promise<{ url: string; server: Server }> {
  const { port } = new URL(stand.url);
  const server = createServer((client) => {
    const service = connect(Number(port), "127.0.0.1");
    client.on("data", (bytes) => {
      clock.advance(SLOW_REQUEST_MS);
      service.write(bytes);
    });
    service.on("data", (bytes) => {
      clock.advance((bytes.length / SLOW_BYTES_PER_SECOND) * 1000);
      client.write(bytes);
    });
    client.on("end", () => service.end());
    service.on("end", () => client.end());
    client.on("error", () => service.destroy());
    service.on("error", () => client.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

describe("requests that stock git costs the code host", { timeout: 480_000 }, () => {
  const clock = new ForwardClock();
  let stand: Stand;
  let count = 0;
  before(async () => {
    stand = await startStand({
      grantSeconds: DEFAULTS.grantSeconds,
      clock,
      refInWant: false,
      listed: ["r", "library", "app", "many"],
    });
    const { path } = await stand.codeHost.addRepository("org", "r", {
      build: (dir) => repositories.linear(dir, { commits: 20 }),
    });
    const library = await stand.codeHost.addRepository("org", "library");
    const commit = await git(["-C", library.path, "rev-parse", "main"]);
    await stand.codeHost.addRepository("org", "app", {
      build: (dir) => repositories.submodules(dir, { commit, url: "../library" }),
    });
    await stand.codeHost.addRepository("org", "many", {
      build: (dir) => repositories.manyRefs(dir, { refs: MANY_REFS }),
    });
    for (const served of [path, library.path]) {
      await git(["-C", served, "config", "uploadpack.allowFilter", "true"]);
      await git(["-C", served, "config", "uploadpack.allowAnySHA1InWant", "true"]);
    }
    for (const name of ["r", "library", "app", "many"])
      await run(stand.url, ["clone", "-q", "--mirror", `/org/${name}`]);
  });
  after(() => stand.stop());

  /** Runs a git command with addresses below `url`, in a folder of its own where it makes one. */
  async function run(url: string, args: readonly string[], folder?: string): Promise<string> {
    const into = folder ?? `clone-${++count}`;
    const full = args.map((arg) => (arg.startsWith("/org/") ? url + arg : arg));
    const made = args[0] === "clone" ? [...full, into] : ["-C", into, ...full];
    const done = await stand.git(made);
    assert.equal(done.code, 0, done.stderr);
    await stand.cache.settled();
    return into;
  }

  /** Requests for the same commands sent directly, and through the service over what is cached. */
  async function compared(
    commands: (url: string) => Promise<void>,
  ): Promise<{ direct: Requests; cached: Requests }> {
    await commands(stand.url);
    stand.codeHost.resetCalls();
    await commands(stand.codeHost.url);
    const direct = requestsOf(stand);
    stand.codeHost.resetCalls();
    await commands(stand.url);
    return { direct, cached: requestsOf(stand) };
  }

  const kinds: [string, (url: string) => Promise<void>][] = [
    ["a clone", async (url) => void (await run(url, ["clone", "-q", "/org/r"]))],
    ["a shallow clone", async (url) => void (await run(url, ["clone", "-q", "--depth=2", "/org/r"]))],
    [
      "a fetch that is behind",
      async (url) => {
        const folder = await run(url, ["clone", "-q", "--depth=1", "/org/r"]);
        await run(url, ["fetch", "-q", "--unshallow"], folder);
      },
    ],
    [
      "a partial clone with lazy fetches",
      async (url) => {
        const folder = await run(url, ["clone", "-q", "--filter=blob:none", "/org/r"]);
        await run(url, ["log", "-p", "-3"], folder);
      },
    ],
    [
      "a clone with submodules",
      async (url) => void (await run(url, ["clone", "-q", "--recurse-submodules", "/org/app"])),
    ],
  ];
  for (const [title, commands] of kinds) {
    it(`${title} needs no request that a direct one does not need, and no fetch [svc 1.13]`, async (t) => {
      const { direct, cached } = await compared(commands);
      t.diagnostic(JSON.stringify({ direct, cached }));
      assert.deepEqual(cached, { ...direct, fetches: 0 });
    });
  }

  it("lazy fetches long after the clone cost one probe in five seconds [svc 1.13]", async (t) => {
    const folder = await run(stand.url, ["clone", "-q", "--no-checkout", "--filter=blob:none", "/org/r"]);
    stand.codeHost.resetCalls();
    const blobs = (await git(["-C", stand.folder(folder), "rev-list", "-10", "HEAD"])).split("\n");
    for (const commit of blobs) {
      clock.advance(2000);
      await run(stand.url, ["diff-tree", "-p", commit], folder);
    }
    const requests = requestsOf(stand);
    t.diagnostic(JSON.stringify(requests));
    assert.ok(requests.infoRefs >= blobs.length);
    assert.ok(requests.probes <= (blobs.length * 2) / DEFAULTS.grantSeconds + 1, `${requests.probes} probes`);
  });

  it("a clone of many refs over a slow link costs one probe [svc 1.13]", async (t) => {
    const { url, server } = await slowLink(stand, clock);
    stand.codeHost.resetCalls();
    await run(url, ["clone", "-q", "--bare", "/org/many"]);
    const requests = requestsOf(stand);
    t.diagnostic(JSON.stringify(requests));
    server.close();
    assert.equal(requests.lsRefs, 1);
    assert.equal(requests.probes, 1);
  });

  it("a negotiation of many rounds over a slow link costs one probe in five seconds [svc 1.13]", async (t) => {
    const folder = await run(stand.url, ["clone", "-q", "--bare", "/org/r"]);
    await repositories.append(stand.folder(folder), { commits: LOCAL_COMMITS, seed: 99 });
    await stand.codeHost.push("org", "r", { commits: 1 });
    await run(stand.url, ["clone", "-q", "--mirror", "/org/r"]);
    const { url, server } = await slowLink(stand, clock);
    stand.codeHost.resetCalls();
    const startedAt = clock.monotonic();
    const posts = stand.access.length;
    await run(url, ["fetch", "-q", "/org/r", "main:fetched"], folder);
    const seconds = (clock.monotonic() - startedAt) / 1000;
    const requests = requestsOf(stand);
    const rounds = stand.access.length - posts - 2;
    t.diagnostic(JSON.stringify({ ...requests, rounds, seconds }));
    server.close();
    assert.ok(rounds >= 4, `${rounds} rounds`);
    assert.ok(requests.probes <= seconds / DEFAULTS.grantSeconds + 1, `${requests.probes} probes`);
    assert.ok(requests.probes < rounds, `${requests.probes} probes in ${rounds} rounds`);
  });
});
