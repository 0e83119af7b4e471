import assert from "node:assert/strict";
import { chmod, lstat, mkdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { tempFolder, type TempFolder } from "@devplat/testkit";
import fc from "fast-check";
import { ForwardError, RemotesFileError } from "../errors/forward-error.ts";
import { defaultRemoteSocket, hostFault, parseHops, type RemoteEntry } from "./remote-entry.ts";
import { RemotesFile } from "./remotes-file.ts";

const KEY = `ssh-ed25519 ${"A".repeat(68)}`;
const SOCKET = "~/.ssh/daemon.laptop.sock";

function entry(host: string, more: Partial<RemoteEntry> = {}): RemoteEntry {
  return { host, port: 22, remote_socket: SOCKET, enabled: true, ...more };
}

describe("ssh.yaml", () => {
  let folder: TempFolder;
  let path = "";
  let file: RemotesFile;
  beforeEach(async () => {
    folder = await tempFolder("remotes");
    path = join(folder.path, "config/ssh.yaml");
    file = new RemotesFile({ path, defaultSocket: SOCKET });
  });
  afterEach(() => folder.remove());
  const text = (): Promise<string> => readFile(path, "utf8");
  const put = async (content: string): Promise<void> => {
    await file.add(entry("x"));
    await writeFile(path, content);
  };

  it("no file: no entries; the first entry makes it with mode 0600", async () => {
    assert.deepEqual(await file.read(), []);
    await file.add(entry("dev.example.com", { host_key: KEY, hop_keys: { "jump:22": KEY } }));
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.deepEqual(await file.read(), [
      entry("dev.example.com", { host_key: KEY, hop_keys: { "jump:22": KEY } }),
    ]);
    assert.match(await text(), /remote_socket: ~\/\.ssh\/daemon\.laptop\.sock/);
  });

  it("a change keeps comments, order and other entries", async () => {
    await put(
      "# mine\nremotes:\n  # first\n  - host: Dev # the name\n    port: 2222\n    user: me\n\n  - host: b\n",
    );
    await file.update("dev", { port: 22, user: null, policies: ["a", "b"], token_ttl: 90_000 });
    assert.equal(
      await text(),
      "# mine\nremotes:\n  # first\n  - host: Dev # the name\n    port: 22\n    policies:\n      - a\n      - b\n    token_ttl: 1m30s\n\n  - host: b\n",
    );
    await file.remove("DEV");
    assert.deepEqual(await file.read(), [entry("b")]);
    assert.match(await text(), /^# mine\nremotes:\n/);
    await file.remove("b");
    assert.deepEqual(await file.read(), []);
  });

  it("a blank file is refused after it had entries, and a file without entries is not", async () => {
    for (const blank of ["", " \n\t\n"]) {
      await put("remotes:\n  - host: a\n");
      assert.equal((await file.read()).length, 1);
      await writeFile(path, blank);
      for (const action of [() => file.read(), () => file.add(entry("b")), () => file.remove("a")])
        await assert.rejects(action, { code: "file_invalid", message: /is empty: write 'remotes: \[\]'/ });
      assert.equal(await text(), blank);
      // Another program has seen no entries, so none are lost.
      assert.deepEqual(await new RemotesFile({ path, defaultSocket: SOCKET }).read(), []);
      for (const none of ["{}\n", "remotes: []\n"]) {
        await writeFile(path, none);
        assert.deepEqual(await file.read(), []);
      }
      await writeFile(path, blank);
      assert.deepEqual(await file.read(), []);
    }
  });

  it("the removal of the last entry leaves an empty list that can be added to", async () => {
    await file.add(entry("a"));
    await file.remove("a");
    assert.deepEqual([await text(), await file.read()], ["remotes: []\n", []]);
    await file.add(entry("b"));
    assert.deepEqual(await file.read(), [entry("b")]);
  });

  it("a mapping is replaced as a whole", async () => {
    await file.add(entry("a", { hop_keys: { "one:22": KEY, "two:22": KEY } }));
    await file.update("a", { hop_keys: { "two:22": KEY, "three:22": KEY } });
    assert.deepEqual((await file.read())[0]?.hop_keys, { "two:22": KEY, "three:22": KEY });
    await file.update("a", { hop_keys: null });
    assert.deepEqual(await file.read(), [entry("a")]);
  });

  it("a file that is not valid is refused with its line, and is not written", async () => {
    const broken = "remotes:\n  - host: a\n    prot: 22\n";
    await put(broken);
    for (const action of [
      () => file.read(),
      () => file.add(entry("b")),
      () => file.update("a", { port: 1 }),
      () => file.remove("a"),
    ]) {
      await assert.rejects(action, (error) => {
        assert.ok(error instanceof RemotesFileError);
        assert.deepEqual([error.code, error.line], ["file_invalid", 3]);
        assert.match(error.message, /prot: unknown key; did you mean 'port'/);
        return true;
      });
    }
    assert.equal(await text(), broken);
  });

  it("several faults are one line", async () => {
    await put("remotes:\n  - host: a\n    prot: 22\n  - host: b\n    port: none\n");
    await assert.rejects(file.read(), {
      code: "file_invalid",
      message: /^[^\n]*:3:5: remotes\[0\]\.prot: [^\n]*; [^\n]*:5:5: remotes\[1\]\.port: [^\n]*$/,
    });
  });

  it("of two concurrent adds of one host, one wins", async () => {
    const results = await Promise.allSettled([file.add(entry("a")), file.add(entry("A", { port: 23 }))]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ["fulfilled", "rejected"],
    );
    assert.deepEqual(await file.read(), [entry("a")]);
    const unknown = (error: unknown): boolean =>
      error instanceof ForwardError && error.code === "host_unknown";
    await assert.rejects(file.update("b", {}), unknown);
    await assert.rejects(file.remove("b"), unknown);
  });

  it("a link to the file stays a link, and a file that others can write is refused", async () => {
    await file.add(entry("a"));
    const link = join(folder.path, "config/link.yaml");
    await symlink("ssh.yaml", link);
    await new RemotesFile({ path: link, defaultSocket: SOCKET }).add(entry("b"));
    assert.equal((await file.read()).length, 2);
    await chmod(path, 0o602);
    await assert.rejects(file.read(), /everybody can write it/);
  });

  it("a link whose target is missing stays a link, and its target is made", async () => {
    // A folder above is a link, too: `..` starts from where it leads.
    await mkdir(join(folder.path, "home"));
    await mkdir(join(folder.path, "config/daemon"), { recursive: true });
    await symlink("../config", join(folder.path, "home/.config"));
    path = join(folder.path, "home/.config/daemon/ssh.yaml");
    await symlink("../../dotfiles/ssh.yaml", path);
    const linked = new RemotesFile({ path, defaultSocket: SOCKET });
    assert.deepEqual(await linked.read(), []);
    await assert.rejects(linked.add(entry("a")), {
      code: "file_invalid",
      message: /is a link to .*\/dotfiles\/ssh\.yaml, whose folder does not exist/,
    });
    await mkdir(join(folder.path, "dotfiles"));
    await linked.add(entry("a"));
    assert.ok((await lstat(path)).isSymbolicLink());
    assert.match(await readFile(join(folder.path, "dotfiles/ssh.yaml"), "utf8"), /host: a/);
    await rm(join(folder.path, "dotfiles"), { recursive: true });
    await rm(path);
    await symlink("ssh.yaml", path);
    await assert.rejects(linked.read(), { code: "file_invalid", message: /ELOOP/ });
  });

  const faults: [string, string, RegExp][] = [
    [
      "two entries of one host",
      "- host: a\n- host: A",
      /:3:3: remotes\[1\]\.host: another entry has this host/,
    ],
    ["a socket that is not absolute", "- {host: a, remote_socket: x.sock}", /absolute path/],
    ["a socket that is too long", `- {host: a, remote_socket: /${"x".repeat(103)}}`, /at most 103 bytes/],
    ["a socket with a variable", "- {host: a, remote_socket: '/a/${HOME}'}", /must not hold \$\{/],
    ["a socket with a line break", '- {host: a, remote_socket: "/a\\nb"}', /control characters/],
    ["a socket with a right-to-left mark", '- {host: a, remote_socket: "/a\\u202Eb"}', /format characters/],
    ["a long name of a policy", `- {host: a, policies: [${"p".repeat(257)}]}`, /at most 256/],
    ["a port out of range", "- {host: a, port: 65536}", /must be at most 65535/],
    ["a private key in place of the host key", "- {host: a, host_key: -----BEGIN}", /expected a host key/],
    ["an offer that does not exist", "- {host: a, offers: [all]}", /expected one of: token, browse/],
    [
      "a jump host that is an option",
      "- {host: a, proxy_jump: -oProxyCommand=x}",
      /expected none, or a list/,
    ],
    ["a user that is an option", "- {host: a, user: -x}", /expected a user name/],
    ["a lifetime under 5 s", "- {host: a, token_ttl: 4s}", /at least 5s/],
  ];
  for (const [name, remotes, message] of faults) {
    it(`refuses ${name}`, async () => {
      await put(`remotes:\n${remotes}\n`);
      await assert.rejects(file.read(), message);
    });
  }
});

describe("the host of a remote", () => {
  it("is a name or an address", () => {
    for (const good of ["dev", "dev-1.example.com", "_alias", "10.0.0.1", "::1", "fe80::1%eth0", "UPPER"]) {
      assert.equal(hostFault(good), undefined, good);
    }
    for (const bad of [
      "",
      "-oX=y",
      "a b",
      "a@b",
      "a/b",
      "a\nb",
      "*",
      "a?",
      "!a",
      "a,b",
      "[::1]",
      "a:22",
      "::1%",
      "::1%$(x)",
      "é",
      "a%h",
    ]) {
      assert.notEqual(hostFault(bad), undefined, bad);
    }
  });

  it("holds no character with a meaning for ssh in any accepted entry", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        assert.ok(hostFault(text) !== undefined || /^[A-Za-z0-9_:][A-Za-z0-9._:%-]*$/.test(text));
      }),
    );
  });

  it("of this workstation is the first label in the default socket", () => {
    assert.equal(defaultRemoteSocket("laptop.example.com"), "~/.ssh/daemon.laptop.sock");
    assert.equal(defaultRemoteSocket("../x"), "~/.ssh/daemon.workstation.sock");
    assert.ok(Buffer.byteLength(defaultRemoteSocket("x".repeat(300))) < 103);
  });

  it("jump hosts are read with user and port, nearest first", () => {
    assert.deepEqual(parseHops("me@a:2222,[::1]:22,b"), [
      { host: "a", user: "me", port: 2222 },
      { host: "::1", user: undefined, port: 22 },
      { host: "b", user: undefined, port: undefined },
    ]);
    assert.deepEqual(parseHops("none"), []);
    for (const bad of ["", "a,,b", "a:0", "a:70000", "a b", "-x", "a:x", "u@v@w", "none,a", "a,NONE"]) {
      assert.equal(parseHops(bad), undefined, bad);
    }
  });
});
