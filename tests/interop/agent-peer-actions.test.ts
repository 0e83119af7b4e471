import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstat, mkdir, rm, symlink } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  run,
  startDesktop,
  startSshd,
  tempFolder,
  until,
  type Finished,
  type TempFolder,
  type TestDesktop,
} from "@devplat/testkit";
import { forwardSocket } from "./agent-forward-socket.ts";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";
import { fakeBrowser } from "./desktop-browser.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 480_000;
const KIB_64 = 64 * 1024;

/** Runs the command with bytes on its standard input. */
function withInput(place: Home, args: readonly string[], input: Uint8Array | string): Promise<Finished> {
  return run(AGENT_LAUNCHER, args, { env: place.env, input });
}

describe("agent browse, notify and clipboard on this host", { timeout: TIMEOUT_MS }, () => {
  let desktop: TestDesktop;
  let folder: TempFolder;
  let place: Home;
  let browser: { opened(): Promise<string[]> };
  before(async () => {
    desktop = await startDesktop();
    folder = await tempFolder("agent-actions");
    place = new Home(folder.path, desktop.environment);
    await place.configure("store: { driver: embedded }\n");
    browser = await fakeBrowser(place);
  });
  after(async () => {
    await desktop.stop();
    await folder.remove();
  });
  const succeedsInSilence = ({ code, stdout, stderr }: Finished): void =>
    assert.deepEqual([code, stdout, stderr], [0, "", ""]);

  it("browse opens the URL in the default browser; success is silent with exit 0 [agent 5.7 7.7 30.7]", async () => {
    const url = "https://example.com/?a=$(touch%20/tmp/x)&b='c'#d";
    succeedsInSilence(await place.agent(["browse", url]));
    await until(
      async () => (await browser.opened()).length > 0,
      () => "the browser was not called",
    );
    assert.deepEqual(await browser.opened(), [url]);
  });

  it("notify raises a desktop notification without controls or markup, with the URL [agent 5.8 29.9]", async () => {
    const title = "--<b>Build\u001b</b> &";
    const body = "-x <i>\\074b\\076</i>\u0007\nnext ü";
    const url = "https://example.com/?a=1&b=2";
    succeedsInSilence(await place.agent(["notify", "--action-url", url, "error", "--", title, body]));
    assert.deepEqual(await desktop.notifications(), [
      {
        application: "daemon",
        title: "--‹b›Build‹/b› ＆",
        // A backslash is a backslash: notify-send would make octal escapes into a tag.
        body: "-x &lt;i&gt;\\074b\\076&lt;/i&gt; next ü\nhttps://example.com/?a=1&amp;b=2",
      },
    ]);
  });

  const texts: [string, string | Uint8Array, string | Uint8Array][] = [
    ["exactly one trailing newline is stripped", "two\n\n", "two\n"],
    ["CRLF is kept, the last line feed is the newline", "a\r\nb\r\n", "a\r\nb\r"],
    ["a text without a newline stays", "plain", "plain"],
    ["UTF-8 and a byte order mark are kept", "\uFEFFä 日本 👩‍💻\t\u001b[0m\n", "\uFEFFä 日本 👩‍💻\t\u001b[0m"],
    ["64 KiB and a newline are the most", `${"é".repeat(KIB_64 / 2)}\n`, "é".repeat(KIB_64 / 2)],
  ];
  for (const [name, input, expected] of texts) {
    it(`clipboard from standard input: ${name} [agent 5.9 30.9]`, async () => {
      succeedsInSilence(await withInput(place, ["clipboard"], input));
      assert.ok((await desktop.clipboard()).equals(Buffer.from(expected)));
    });
  }

  it("clipboard reads standard input for -, and otherwise takes the argument [agent 5.9 30.9]", async () => {
    succeedsInSilence(await withInput(place, ["clipboard", "-"], "dash\n"));
    assert.equal((await desktop.clipboard()).toString(), "dash");
    succeedsInSilence(await place.agent(["clipboard", "argument\r\n"]));
    assert.equal((await desktop.clipboard()).toString(), "argument\r\n");
  });

  it("clipboard by xsel where there is no xclip", async () => {
    const bin = join(place.path, "bin");
    await mkdir(bin);
    for (const name of ["sh", "readlink", "dirname", "uname"]) {
      await symlink((await run("sh", ["-c", `command -v ${name}`], {})).stdout.trim(), join(bin, name));
    }
    await symlink("/usr/bin/xsel", join(bin, "xsel"));
    succeedsInSilence(await place.agent(["clipboard", "by xsel"], { PATH: bin }));
    // xsel comes back before the process that it leaves behind owns the selection.
    await until(async () => (await desktop.clipboard()).toString() === "by xsel");
    const none = await place.agent(["clipboard", "hunter2"], { PATH: bin, DISPLAY: "" });
    assert.equal(none.code, 1);
    assert.match(none.stderr, /nothing on this host can set a clipboard\n.*xclip/);
    assert.ok(none.stderr.includes(`On ${hostname()}: nothing`), none.stderr);
    assert.doesNotMatch(none.stderr, /hunter2/);
  });

  const invalid: [string, string[], RegExp][] = [
    ["browse: file scheme", ["browse", "file:///etc/passwd"], /not an http or https address/],
    ["browse: custom scheme", ["browse", "vscode://x"], /not an http or https address/],
    ["browse: no host", ["browse", "http://"], /no host/],
    ["browse: credentials", ["browse", "https://ada:hunter2@example.com/"], /user name or password/],
    ["browse: no URL", ["browse"], /needs: URL/],
    ["notify: bad level", ["notify", "fatal", "t"], /info, warning, error, attention/],
    ["notify: empty title", ["notify", "info", ""], /title must not be empty/],
    [
      "notify: bad action URL",
      ["notify", "info", "t", "b", "--action-url", "javascript:hunter2"],
      /action URL/,
    ],
    ["clipboard: empty argument", ["clipboard", ""], /must not be empty/],
    ["clipboard: over 64 KiB", ["clipboard", "x".repeat(KIB_64 + 1)], /longer than 64 KiB/],
  ];
  for (const [name, args, message] of invalid) {
    it(`invalid input exits 1: ${name} [agent 7.5 30.5]`, async () => {
      const { code, stdout, stderr } = await place.agent(args);
      assert.equal(code, 1);
      assert.equal(stdout, "");
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /hunter2/);
    });
  }
  const invalidInput: [string, string | Uint8Array, RegExp][] = [
    ["empty", "", /must not be empty/],
    ["one newline alone", "\n", /must not be empty/],
    ["an interior NUL", "hunter2\0x", /NUL/],
    ["not valid UTF-8", Buffer.from([0x68, 0xff, 0x0a]), /not valid UTF-8/],
    ["a cut UTF-8 character", Buffer.from([0xc3]), /not valid UTF-8/],
    ["over 64 KiB", "x".repeat(KIB_64 + 1), /longer than 64 KiB/],
    ["far over 64 KiB", "x".repeat(10 * KIB_64), /longer than 64 KiB/],
  ];
  for (const [name, input, message] of invalidInput) {
    it(`invalid input exits 1: clipboard from standard input, ${name} [agent 19.1]`, async () => {
      const { code, stderr } = await withInput(place, ["clipboard"], input);
      assert.equal(code, 1);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /hunter2/);
    });
  }

  it("an argument that is not UTF-8 is refused, not turned into another text", async () => {
    const { code, stderr } = await run("sh", ["-c", `"${AGENT_LAUNCHER}" clipboard "$(printf 'a\\377')"`], {
      env: place.env,
    });
    assert.equal(code, 1);
    assert.match(stderr, /not valid UTF-8/);
  });

  it("a configuration-load failure degrades to the local action with a warning [agent 7.6 30.6]", async () => {
    for (const args of [["--config", join(place.path, "absent.yaml")], []]) {
      await place.configure("store: { drive: embedded }\n");
      const { code, stdout, stderr } = await place.agent([...args, "clipboard", "degraded"]);
      assert.equal(code, 0);
      assert.equal(stdout, "");
      assert.match(stderr, /"level":"warn".*configuration cannot be loaded, so no peer is asked/);
      assert.equal((await desktop.clipboard()).toString(), "degraded");
    }
    await place.configure("store: { driver: embedded }\n");
  });

  it("a local action that fails exits 1 with the next step", async () => {
    await desktop.stopNotifications();
    const { code, stderr } = await place.agent(["notify", "info", "hunter2"]);
    assert.equal(code, 1);
    assert.match(stderr, /could not be raised\n.*notification service/);
    assert.doesNotMatch(stderr, /hunter2/);
  });

  it("--dry-run only prints the targets", async () => {
    await place.ok("clipboard", "before");
    assert.equal(
      await place.ok("--dry-run", "clipboard", "after"),
      "would ask this host, if no peer accepts\n",
    );
    assert.equal((await desktop.clipboard()).toString(), "before");
  });
});

/** A workstation: a desktop, and a daemon whose peer socket is forwarded to the remote host. */
interface Workstation {
  readonly place: Home;
  readonly desktop: TestDesktop;
  readonly agent: RunningAgent;
  readonly browser: { opened(): Promise<string[]> };
  stop(): Promise<void>;
}

async function workstation(path: string, offers: string): Promise<Workstation> {
  const desktop = await startDesktop();
  const place = new Home(path, { ...desktop.environment, XDG_RUNTIME_DIR: path });
  const browser = await fakeBrowser(place);
  await place.configure(
    `store: { driver: embedded }\napi: { enabled: true, peer: { offers: [${offers}] } }\n`,
  );
  const socket = join(path, "daemon/peer.sock");
  const agent = await daemon(place, async () => {
    const { code } = await run("curl", ["--silent", "--unix-socket", socket, "http://localhost/"], {});
    return code === 0;
  });
  return {
    place,
    desktop,
    agent,
    browser,
    stop: async () => {
      await agent.stop();
      await desktop.stop();
    },
  };
}

describe("agent browse, notify and clipboard with peers", { timeout: TIMEOUT_MS }, () => {
  let folder: TempFolder;
  let stations: Workstation[];
  let remote: Home;
  before(async () => {
    folder = await tempFolder("agent-peers");
    const make = async (name: string): Promise<string> => {
      const path = join(folder.path, name);
      await mkdir(path, { mode: 0o700 });
      return path;
    };
    stations = await Promise.all([
      workstation(await make("one"), "token, browse, notify, clipboard"),
      workstation(await make("two"), "browse, clipboard"),
    ]);
    remote = new Home(await make("remote"));
    await remote.configure("store: { driver: embedded }\n");
    await mkdir(join(remote.path, ".ssh"), { mode: 0o700 });
  });
  after(async () => {
    await Promise.all(stations.map((station) => station.stop()));
    await folder.remove();
  });

  /** Forwards the peer sockets of the named workstations, as ssh -R would, for the time of the action. */
  async function forwarded<T>(
    names: readonly ("one" | "two" | "dead")[],
    action: () => Promise<T>,
  ): Promise<T> {
    const forwards = await Promise.all(
      names.map(async (name, index) => {
        const socket = join(remote.path, ".ssh", index === 0 ? "daemon.sock" : `daemon.${name}.sock`);
        const target = join(folder.path, name, "daemon/peer.sock");
        return await forwardSocket(socket, target);
      }),
    );
    try {
      return await action();
    } finally {
      await Promise.all(forwards.map((forward) => forward.stop()));
    }
  }
  const one = (): Workstation => stations[0] as Workstation;
  const two = (): Workstation => stations[1] as Workstation;

  it("with several workstations connected, all of them get the clipboard text [agent 7.8 30.8]", async () => {
    const text = `a\r\nb\t&=+%ü\uFEFF${"é".repeat(30_000)}`;
    const done = await forwarded(["one", "two"], () => withInput(remote, ["clipboard"], text));
    assert.deepEqual([done.code, done.stdout, done.stderr], [0, "", ""]);
    for (const { desktop } of stations) assert.equal((await desktop.clipboard()).toString(), text);
  });

  it("the request goes to every live socket, and a URL opens in each default browser [agent 7.1 30.1]", async () => {
    const done = await forwarded(["one", "two"], () => remote.agent(["browse", "https://example.com/peer"]));
    assert.deepEqual([done.code, done.stdout, done.stderr], [0, "", ""]);
    for (const { browser } of stations) {
      await until(
        async () => (await browser.opened()).length > 0,
        () => "no browser was called",
      );
      assert.deepEqual(await browser.opened(), ["https://example.com/peer"]);
    }
  });

  it("the command succeeds if a peer accepts; a 4xx answer does not count [agent 7.2 30.2]", async () => {
    // The second one offers no notifications.
    const done = await forwarded(["two", "one"], () =>
      remote.agent(["notify", "attention", "Touch the key", "now"]),
    );
    assert.deepEqual([done.code, done.stdout, done.stderr], [0, "", ""]);
    assert.deepEqual(await one().desktop.notifications(), [
      { application: "daemon", title: "Touch the key", body: "now" },
    ]);
    assert.deepEqual(await two().desktop.notifications(), []);
  });

  it("only when no peer accepted is the action done on this host [agent 7.4 30.4]", async () => {
    // This host has no desktop, so that doing it here fails.
    const refused = await forwarded(["two"], () => remote.agent(["notify", "info", "nobody takes it"]));
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /could not be raised/);
    const dead = await forwarded(["dead"], () => remote.agent(["clipboard", "nobody listens"]));
    assert.equal(dead.code, 1);
    const local = await forwarded(["dead", "two"], () => remote.agent(["clipboard", "one is enough"]));
    assert.equal(local.code, 0);
    assert.equal((await two().desktop.clipboard()).toString(), "one is enough");
  });

  it("invalid input is sent to no peer [agent 7.5 30.5]", async () => {
    await forwarded(["one"], async () => {
      await remote.ok("clipboard", "valid");
      assert.equal((await withInput(remote, ["clipboard"], "in\0valid")).code, 1);
      assert.equal((await remote.agent(["browse", "file:///etc/passwd"])).code, 1);
    });
    assert.equal((await one().desktop.clipboard()).toString(), "valid");
    assert.ok(!(await one().browser.opened()).some((url) => url.startsWith("file:")));
  });

  it("over a socket that ssh forwards every byte arrives until the connection drops", async () => {
    const sshd = await startSshd();
    const socket = join(remote.path, ".ssh/daemon.sock");
    const target = join(folder.path, "one/daemon/peer.sock");
    const text = `ssh\r\n${"é".repeat(32_000)}`;
    try {
      const ssh = spawn("ssh", ["-N", "-R", `${socket}:${target}`, ...sshd.clientArgs], { stdio: "ignore" });
      await until(
        async () => (await lstat(socket)).isSocket(),
        () => "no socket was forwarded",
      );
      const done = await withInput(remote, ["clipboard"], text);
      assert.deepEqual([done.code, done.stdout, done.stderr], [0, "", ""]);
      assert.equal((await one().desktop.clipboard()).toString(), text);
      ssh.kill("SIGKILL");
      await once(ssh, "close");
    } finally {
      await sshd.stop();
    }
    // The file of a broken forward stays; nobody answers on it, and this host has no clipboard.
    assert.ok((await lstat(socket)).isSocket());
    const { code, stderr } = await remote.agent(["clipboard", "too late"]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /none of 1 forwarded sockets has accepted it, and nothing on this host can set a clipboard/,
    );
    await rm(socket);
  });

  it("a page's Copy button sends to the peers, without the value in the browser [agent 30.10]", async () => {
    await remote.configure('store: { driver: embedded }\nweb: { enabled: true, listen: "127.0.0.1:0" }\n');
    await remote.ok("secrets", "put", "example", "token=copied\r\nfrom a page");
    await forwarded(["one", "two"], async () => {
      const agent = await daemon(remote, async () => true);
      const url = (): string => /^Web UI: (.*)\/$/m.exec(agent.output())?.[1] ?? "";
      try {
        await until(
          async () => url() !== "",
          () => agent.log(),
        );
        const form = ["--data", "action=copy", "--data-urlencode", 'field="token"'];
        const { stdout } = await run(
          "curl",
          ["--silent", "--header", `Origin: ${url()}`, ...form, `${url()}/ui/secrets/example`],
          {},
        );
        assert.doesNotMatch(stdout, /from a page/);
      } finally {
        await agent.stop();
      }
    });
    for (const { desktop } of stations)
      assert.equal((await desktop.clipboard()).toString(), "copied\r\nfrom a page");
  });

  it("the peer's log has lengths and level, no word of what was sent [agent 29.12]", async () => {
    await forwarded(["one"], async () => {
      await remote.ok("clipboard", "hunter2-text");
      await remote.ok("notify", "info", "hunter2-title", "hunter2-body", "--action-url", "https://h/hunter2");
      await remote.ok("browse", "https://example.com/?code=hunter2");
    });
    // Its lines come in order, through a pipe of their own.
    await until(
      async () => /"action":"browse"/.test(one().agent.log()),
      () => one().agent.log(),
    );
    const log = one().agent.log();
    assert.match(log, /"action":"clipboard","length":12,"by":"peer socket"/);
    assert.match(log, /"action":"notify","level":"info","lengths":\{"title":13,"body":12,"action_url":17\}/);
    assert.match(log, /"action":"browse","host":"example\.com"/);
    assert.doesNotMatch(log, /hunter2/);
  });
});
