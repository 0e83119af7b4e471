import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, runAtTerminal, startOtlpRecorder, tempFolder, until, type TempFolder } from "@devplat/testkit";
import { buildAgent } from "../../tools/build/agent.ts";
import { buildProgram } from "../../tools/build/single/program.ts";
import manifest from "../../apps/agent/package.json" with { type: "json" };
import { assertEditsLargeFile, LARGE_RULE } from "./agent-large-file.ts";
import { Home } from "./agent-stand.ts";

let folder: TempFolder;
const programs = new Map<string, string>();
before(async () => {
  folder = await tempFolder("agent-release");
  programs.set("the bundle with its launcher", await buildAgent(join(folder.path, "release")));
  programs.set(
    "the single executable",
    await buildProgram("agent", join(folder.path, "single"), manifest.version),
  );
});
after(() => folder.remove());

for (const name of ["the bundle with its launcher", "the single executable"]) {
  describe(`the release: ${name}`, () => {
    const program = (): string => programs.get(name) ?? "";
    const place = async (): Promise<Home> => {
      const home = new Home(join(folder.path, name.replaceAll(" ", "-")), { AGENT_NODE: process.execPath });
      await home.configure(`store: {driver: embedded}
web: {enabled: true, listen: "127.0.0.1:0"}
rules: [{name: r, key: k, target: {path: ~/out.json, format: json}}, ${LARGE_RULE}]
`);
      return home;
    };

    it("version, help and errors are as of the sources", async () => {
      const { env } = await place();
      assert.equal((await run(program(), ["version"], { env })).stdout, `${manifest.version}\n`);
      const bare = await run(program(), [], { env });
      assert.equal(bare.code, 0);
      assert.match(bare.stdout, /^Usage: agent/);
      const wrong = await run(program(), ["config", "check", "--config", "/nowhere"], { env });
      assert.equal(wrong.code, 1);
      assert.match(
        wrong.stderr,
        /^agent: \/nowhere: no such file\nCheck the path after --config\. [^\n]+\n$/,
      );
    });

    it("login-check works, suppressed and not", async () => {
      const home = await place();
      for (const round of ["not suppressed", "suppressed"]) {
        const done = await run(program(), ["login-check"], { env: home.env });
        assert.deepEqual([done.code, done.stdout, done.stderr], [0, "", ""], round);
      }
      await home.configure("broken: [");
      assert.equal(
        (await run(program(), ["login-check"], { env: home.env })).code,
        0,
        "nothing was looked at",
      );
    });

    it("exports spans and metrics, by code that only such a daemon loads", async () => {
      const home = await place();
      const collector = await startOtlpRecorder();
      await home.configure(
        `store: {driver: embedded}\nrules: [{name: o, key: o, target: {path: ~/o.json, format: json}}]\n` +
          `observability: {enabled: true, endpoint: "${collector.url}", protocol: http/json}\n`,
      );
      const child = spawn(program(), ["run"], { env: home.env });
      let output = "";
      child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
      try {
        await until(
          () => output.includes("secret missing"),
          () => output,
        );
      } finally {
        child.kill("SIGTERM");
        await once(child, "close");
      }
      await collector.stop();
      assert.equal(child.exitCode, 0, output);
      const store = collector.spans().filter(({ name: span }) => span === "store.metadata");
      assert.ok(store.length > 0, output);
      assert.equal(store[0]?.attributes["error.type"], "not_found");
      assert.ok(collector.metrics().some(({ name: metric }) => metric === "agent_rules"));
    });

    it("encrypts an SSH key in a thread", async () => {
      const home = await place();
      await home.configure("store: {driver: embedded}\nenrolments: {ssh/key: {engine: ssh}}\n");
      const passphrase = "correct horse";
      const { code, shown } = await runAtTerminal(program(), ["enrol", "run", "ssh/key"], {
        env: home.env,
        answers: [
          [/passphrase: /, passphrase],
          [/passphrase again: /, passphrase],
        ],
      });
      assert.equal(code, 0, shown);
      const stored = await run(program(), ["secrets", "get", "ssh/key", "private_key"], { env: home.env });
      assert.equal(stored.code, 0, stored.stderr);
      const file = await home.write("key", stored.stdout);
      assert.equal((await run("ssh-keygen", ["-y", "-P", passphrase, "-f", file])).code, 0);
      assert.notEqual((await run("ssh-keygen", ["-y", "-P", "wrong", "-f", file])).code, 0);
    });

    it("run syncs, edits a large file in a thread, and serves complete pages [agent 13.7]", async () => {
      const home = await place();
      for (const args of [
        ["k", "token=one"],
        ["pair", "token=one", "user=u"],
      ]) {
        const put = await run(program(), ["secrets", "put", ...args], { env: home.env });
        assert.equal(put.code, 0, put.stderr);
      }
      const child = spawn(program(), ["run"], { env: home.env });
      let output = "";
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
      try {
        const synced = async (): Promise<boolean> =>
          (await home.read("out.json")).includes('"token": "one"') && /^Web UI: /m.test(output);
        await until(synced, () => output);
        const url = /^Web UI: (http:\/\/[^/\s]+)/m.exec(output)?.[1] ?? "";
        const page = await (await fetch(`${url}/`)).text();
        const assets = [...page.matchAll(/(?:href|src)="(\/static\/[^"]+)"/g)].map(([, path = ""]) => path);
        assert.ok(assets.length >= 3, page);
        for (const path of assets) {
          const answer = await fetch(url + path);
          assert.equal(answer.status, 200, path);
          assert.ok((await answer.text()).length > 100, path);
        }
        // Characters that the bundle has as escapes.
        assert.match(await (await fetch(`${url}/ui/secrets/pair`)).text(), /•{8}/);
        await assertEditsLargeFile(home, url, "one", () => output);
      } finally {
        child.kill("SIGTERM");
        await once(child, "close");
      }
      assert.equal(child.exitCode, 0, output);
    });
  });
}

describe("the release on an older runtime", () => {
  it("is refused with one line", async () => {
    const env = { PATH: process.env["PATH"], HOME: folder.path, AGENT_NODE: join(folder.path, "old") };
    const pretend = 'Object.defineProperty(process.versions, "node", { value: "20.1.0" });';
    await writeFile(join(folder.path, "old.cjs"), pretend);
    await writeFile(
      env.AGENT_NODE,
      `#!/bin/sh\nexec "${process.execPath}" --require "${join(folder.path, "old.cjs")}" "$@"\n`,
      { mode: 0o755 },
    );
    const { code, stderr } = await run(programs.get("the bundle with its launcher") ?? "", ["version"], {
      env,
    });
    assert.equal(code, 1);
    assert.match(stderr, /^agent: needs Node 26 or newer, and this is v\S+\n$/);
  });
});
