import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { ForwardError } from "../errors/forward-error.ts";
import { connectionConfiguration, configuredHosts, REMOTE_ALIAS } from "./connection-configuration.ts";
import { knownHostsText, plainKeys } from "./known-hosts.ts";
import type { Route, RouteHost } from "./route.ts";

const BLOB = Buffer.concat([Buffer.from("\0\0\0\vssh-ed25519\0\0\0 "), Buffer.alloc(32, 7)]);
const KEY = `ssh-ed25519 ${BLOB.toString("base64")}`;

function host(name: string, more: Partial<RouteHost> = {}): RouteHost {
  return {
    name,
    keyName: `${name}:22`,
    hostName: name,
    user: "me",
    port: 22,
    identityFiles: [],
    certificateFiles: [],
    identityAgent: undefined,
    identitiesOnly: false,
    proxyJump: undefined,
    proxyCommand: undefined,
    ...more,
  };
}

/** Lines of `ssh -G` for each option that every host has; undefined: ssh prints no line for this value. */
const EXPECTED: Readonly<Record<string, readonly [line: string | undefined, opposite: string]>> = {
  BatchMode: ["batchmode yes", "no"],
  StrictHostKeyChecking: ["stricthostkeychecking true", "no"],
  GlobalKnownHostsFile: ["globalknownhostsfile /dev/null", "/other"],
  UserKnownHostsFile: ["userknownhostsfile /run/a b/known", "/other"],
  HostKeyAlias: ["hostkeyalias dev.example.com", "other"],
  UpdateHostKeys: ["updatehostkeys false", "yes"],
  CheckHostIP: ["checkhostip no", "yes"],
  VerifyHostKeyDNS: ["verifyhostkeydns false", "yes"],
  NoHostAuthenticationForLocalhost: ["nohostauthenticationforlocalhost no", "yes"],
  KnownHostsCommand: [undefined, "/bin/true"],
  CanonicalizeHostname: ["canonicalizehostname false", "always"],
  HashKnownHosts: ["hashknownhosts no", "yes"],
  RemoteCommand: [undefined, "touch /tmp/x"],
  SessionType: ["sessiontype none", "default"],
  RequestTTY: ["requesttty false", "force"],
  ForkAfterAuthentication: ["forkafterauthentication no", "yes"],
  StdinNull: ["stdinnull no", "yes"],
  Tunnel: ["tunnel false", "yes"],
  ForwardAgent: ["forwardagent no", "yes"],
  ForwardX11: ["forwardx11 no", "yes"],
  ClearAllForwardings: ["clearallforwardings yes", "no"],
  GatewayPorts: ["gatewayports no", "yes"],
  StreamLocalBindMask: ["streamlocalbindmask 0177", "0000"],
  StreamLocalBindUnlink: ["streamlocalbindunlink no", "yes"],
  PermitLocalCommand: ["permitlocalcommand no", "yes"],
  EscapeChar: ["escapechar none", "~"],
  GSSAPIDelegateCredentials: ["gssapidelegatecredentials no", "yes"],
  AddKeysToAgent: ["addkeystoagent false", "yes"],
  ServerAliveInterval: ["serveraliveinterval 6", "0"],
  ServerAliveCountMax: ["serveralivecountmax 2", "9"],
  ConnectTimeout: ["connecttimeout 20", "1"],
  ConnectionAttempts: ["connectionattempts 1", "9"],
  ControlMaster: ["controlmaster false", "auto"],
  ControlPath: [undefined, "/other"],
  ControlPersist: ["controlpersist no", "yes"],
  LogLevel: ["loglevel INFO", "QUIET"],
  VisualHostKey: ["visualhostkey no", "yes"],
  IdentitiesOnly: ["identitiesonly no", "yes"],
  HostName: ["hostname dev.example.com", "other"],
  User: ["user me", "other"],
  Port: ["port 22", "23"],
};

describe("the configuration of a connection, as ssh reads it", () => {
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("ssh-conf");
  });
  after(() => folder.remove());

  async function read(text: string, alias = REMOTE_ALIAS): Promise<string[]> {
    const file = join(folder.path, "conf");
    await writeFile(file, text);
    const { code, stdout, stderr } = await run("ssh", ["-G", "-F", file, "--", alias]);
    assert.equal(code, 0, stderr);
    return stdout.split("\n");
  }
  const written = (route: Route, identityAgent?: string): string =>
    connectionConfiguration({
      hosts: configuredHosts(route, () => ({ knownHostsFile: "/run/a b/known", hostKey: "verify" })),
      identityAgent,
    });
  const hop = host("jump", { hostName: "JUMP.example.com", port: 2022, user: "you" });
  const chain = written([host("hop0"), hop, host("Dev.example.com")]);

  it("every option is there for the remote and for each hop", async () => {
    const perHost = new Set(["HostName", "User", "Port", "HostKeyAlias"]);
    for (const alias of [REMOTE_ALIAS, "hop2+", "hop1+"]) {
      const lines = await read(chain, alias);
      for (const [option, [expected]] of Object.entries(EXPECTED)) {
        if (expected === undefined)
          assert.ok(!lines.some((line) => line.startsWith(`${option.toLowerCase()} `)), option);
        else if (alias === REMOTE_ALIAS || !perHost.has(option))
          assert.ok(lines.includes(expected), `${option} of ${alias}`);
      }
    }
    const jump = await read(chain, "hop2+");
    for (const line of [
      "hostname jump.example.com",
      "port 2022",
      "user you",
      "hostkeyalias jump.example.com",
    ]) {
      assert.ok(jump.includes(line), line);
    }
  });

  it("an option in another block changes nothing; without our line it does", async () => {
    for (const [option, [expected, opposite]] of Object.entries(EXPECTED)) {
      // ClearAllForwardings takes tunnels away as well.
      const other = `Host *\n  ${option} ${opposite}\n`;
      const kept = await read(chain + other);
      const without = await read(
        chain.replaceAll(
          new RegExp(`^  (?:${option}${option === "Tunnel" ? "|ClearAllForwardings" : ""}) .*\n`, "gm"),
          "",
        ) + other,
      );
      const shown = (lines: string[]): string | undefined =>
        lines.find((line) => line.startsWith(`${option.toLowerCase()} `));
      // For this one ssh takes the last value; the generated file has no block that follows.
      if (option === "StreamLocalBindMask") assert.equal(shown(kept), "streamlocalbindmask 00");
      else if (expected !== undefined) assert.equal(shown(kept), expected);
      else assert.equal(shown(kept), undefined, option);
      assert.notEqual(shown(without), expected, option);
    }
  });

  it("holds no option that this test does not know", () => {
    const used = new Set([...chain.matchAll(/^  (\w+) /gm)].map(([, name]) => name));
    used.delete("ProxyJump");
    assert.deepEqual(used, new Set(Object.keys(EXPECTED)));
  });

  it("each hop is reached through the one before it, the first one directly", async () => {
    const jumpOf = async (alias: string): Promise<string | undefined> =>
      (await read(chain, alias)).find((line) => line.startsWith("proxyjump "));
    assert.equal(await jumpOf(REMOTE_ALIAS), "proxyjump hop2+");
    assert.equal(await jumpOf("hop2+"), "proxyjump hop1+");
    assert.equal(await jumpOf("hop1+"), undefined);
  });

  it("values of the user's configuration arrive as they were written", async () => {
    const route: Route = [
      host("dev", {
        user: "-oProxyCommand=x",
        hostName: "fe80::1%eth0",
        identityFiles: ["~/a b/%h #1", "-x", "%d/%n"],
        certificateFiles: ["/c'ert"],
        identityAgent: "$SOCKET",
        identitiesOnly: true,
        proxyCommand: `nc "a b" '%h' %p \\x # %n %%n`,
      }),
    ];
    const lines = await read(written(route));
    for (const line of [
      "user -oProxyCommand=x",
      "hostname fe80::1%eth0",
      "identityfile ~/a b/%h #1",
      "identityfile -x",
      "identityfile %d/dev",
      "certificatefile /c'ert",
      "identityagent $SOCKET",
      "identitiesonly yes",
      `proxycommand nc "a b" '%h' %p \\x # dev %%n`,
    ]) {
      assert.ok(lines.includes(line), line);
    }
  });

  it("values that ssh's syntax cannot carry are refused and never written", () => {
    const refused = (error: unknown): boolean =>
      error instanceof ForwardError && error.code === "configuration_refused";
    for (const bad of ['a"b', "a\nUser root", "a\\", "", "a\rb", "a\u0000b"]) {
      for (const more of [
        { user: bad },
        { identityFiles: [bad] },
        { certificateFiles: [bad] },
        { identityAgent: bad },
      ]) {
        assert.throws(() => written([host("dev", more)]), refused, JSON.stringify(more));
      }
    }
    assert.throws(() => written([host("dev", { proxyCommand: "a\nUser root" })]), refused);
    assert.throws(() => written([host("dev")], "/a/${HOME}"), refused);
  });

  it("the agent of the daemon takes the place of the user's", async () => {
    const lines = await read(written([host("dev", { identityAgent: "none" })], "/run/100%/agent.sock"));
    assert.ok(lines.includes("identityagent /run/100%/agent.sock"));
    assert.ok((await read(written([host("dev", { identityAgent: "none" })]))).includes("identityagent none"));
  });

  it("a connection that learns the key of the last host cannot authenticate there", async () => {
    const route: Route = [hop, host("dev")];
    const hosts = configuredHosts(route, (_, index) => ({
      knownHostsFile: "/run/known",
      hostKey: index === 1 ? "learn" : "verify",
    }));
    const text = connectionConfiguration({ hosts, identityAgent: undefined });
    const last = await read(text);
    for (const line of [
      "preferredauthentications none",
      "pubkeyauthentication false",
      "passwordauthentication no",
      "kbdinteractiveauthentication no",
      "stricthostkeychecking false",
    ]) {
      assert.ok(last.includes(line), line);
    }
    assert.ok((await read(text, "hop1+")).includes("stricthostkeychecking true"));
  });

  it("takes paths of Windows, with slashes", () => {
    const route: Route = [host("dev", { identityFiles: ["C:\\Users\\me\\.ssh\\id"] })];
    const knownHostsFile = "C:\\Users\\me\\known";
    const hosts = configuredHosts(route, () => ({ knownHostsFile, hostKey: "verify" }));
    const text = connectionConfiguration({ hosts, identityAgent: undefined, platform: "win32" });
    assert.match(text, /^ {2}UserKnownHostsFile "C:\/Users\/me\/known"$/m);
    assert.match(text, /^ {2}IdentityFile "C:\/Users\/me\/\.ssh\/id"$/m);
    assert.throws(
      () => connectionConfiguration({ hosts, identityAgent: undefined, platform: "linux" }),
      (error) => error instanceof ForwardError && error.code === "configuration_refused",
    );
  });
});

describe("the known_hosts file of a connection", () => {
  it("holds the pin and the authorities only", () => {
    const authority = `@cert-authority *.example.com ${KEY} our CA`;
    assert.equal(
      knownHostsText("Dev.example.com", { pin: KEY, authorities: [authority] }),
      `@cert-authority *.example.com ${KEY}\ndev.example.com ${KEY}\n`,
    );
    assert.equal(knownHostsText("dev", { pin: undefined, authorities: [] }), "");
    assert.deepEqual(plainKeys(`${authority}\n# x\ndev ${KEY}\ndev ${KEY} comment\nbroken\n`), [KEY, KEY]);
  });

  it("refuses an authority that is a bare key or more than one line", () => {
    for (const line of [
      KEY,
      `@cert-authority * ${KEY}\n* ${KEY}`,
      `@revoked * ${KEY}`,
      "@cert-authority *",
    ]) {
      assert.throws(() => knownHostsText("dev", { pin: undefined, authorities: [line] }), ForwardError);
    }
    assert.throws(() => knownHostsText("dev", { pin: `${KEY}\n* ${KEY}`, authorities: [] }), ForwardError);
  });
});
