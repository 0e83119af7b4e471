import assert from "node:assert/strict";
import { chmod, chown, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { loadConfig, parseConfig } from "./load.ts";
import { findPlaces, type Places } from "../agent-files/places.ts";

let root = "";
let count = 0;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "config-"));
});
after(() => rm(root, { recursive: true, force: true }));

/** A fresh home; the system's folder is one of our own, and the real one of this host is left out. */
async function freshPlaces(): Promise<Places> {
  const home = join(root, String(count++));
  await mkdir(join(home, "etc/daemon"), { recursive: true });
  await mkdir(join(home, ".config/daemon"), { recursive: true });
  const places = findPlaces({ HOME: home });
  return { ...places, systemConfigs: [join(home, "etc/daemon/config.yaml")] };
}

const EMBEDDED = "store: {driver: embedded}\n";

async function write(path: string, text: string, mode = 0o600): Promise<string> {
  await writeFile(path, text);
  await chmod(path, mode);
  return path;
}

function faults(text: string): string[] {
  try {
    parseConfig({ path: "c.yaml", text });
    return [];
  } catch (error) {
    assert.ok(error instanceof Error);
    return error.message.split("\n");
  }
}

const rule = (target: string, more = ""): string =>
  `${EMBEDDED}rules:\n  - name: a\n    key: k\n    target: {path: ~/f, format: yaml${target}}\n${more}`;

describe("the configuration's schema", () => {
  const table: [string, string, string[]][] = [
    ["takes the embedded store without an address", EMBEDDED, []],
    [
      "asks for an address of the central store",
      "store: {}\n",
      ["c.yaml:1:1: store.address: required, but missing (for a store on this host: driver: embedded)"],
    ],
    [
      "refuses an address with a password",
      "store: {address: 'https://u:p@h'}\n",
      ["c.yaml:1:9: store.address: must not hold a user name or password"],
    ],
    [
      "names an unknown key with what was meant",
      `${EMBEDDED}stroe: {}\n`,
      ["c.yaml:2:1: stroe: unknown key; did you mean 'store'?"],
    ],
    [
      "refuses a duration without unit",
      `${EMBEDDED}sync: {interval: "15"}\n`,
      ["c.yaml:2:8: sync.interval: expected a duration such as 30s, 15m, 36h or 7d"],
    ],
    [
      "refuses an interval below 10 seconds",
      `${EMBEDDED}sync: {interval: 9s}\n`,
      ["c.yaml:2:8: sync.interval: must be at least 10s"],
    ],
    ["takes compound durations", `${EMBEDDED}sync: {interval: 1h30m}\n`, []],
    [
      "refuses a listen address that is not loopback",
      `${EMBEDDED}web: {listen: 0.0.0.0:8200}\n`,
      ["c.yaml:2:7: web.listen: must be on loopback: 127.0.0.1, [::1] or localhost, with a port"],
    ],
    ["takes every loopback form", `${EMBEDDED}web: {listen: "[::1]:1"}\n`, []],
    [
      "wants the address of a collector",
      `${EMBEDDED}observability: {enabled: true}\n`,
      ["c.yaml:2:1: observability.endpoint: required for enabled: true, such as http://127.0.0.1:4318"],
    ],
    [
      "takes no address of a collector while nothing is exported",
      `${EMBEDDED}observability: {enabled: false}\n`,
      [],
    ],
    [
      "refuses a mode without quotes",
      rule(", mode: 0600"),
      ['c.yaml:5:39: rules[0].target.mode: expected permissions in quotes, such as "0600"'],
    ],
    ["takes a mode in quotes", rule(', mode: "0640"'), []],
    [
      "refuses a relative path",
      `${EMBEDDED}rules: [{name: a, key: k, target: {path: f, format: json}}]\n`,
      ["c.yaml:2:36: rules[0].target.path: expected ~/… or an absolute path"],
    ],
    [
      "refuses another user's home",
      `${EMBEDDED}rules: [{name: a, key: k, target: {path: ~bob/f, format: json}}]\n`,
      [
        "c.yaml:2:36: rules[0].target.path: expected ~/… or an absolute path (another user's home is not supported)",
      ],
    ],
    [
      "refuses .. in a path",
      `${EMBEDDED}rules: [{name: a, key: k, target: {path: ~/a/../f, format: json}}]\n`,
      ["c.yaml:2:36: rules[0].target.path: must not hold . or .. segments"],
    ],
    [
      "refuses an unknown format",
      `${EMBEDDED}rules: [{name: a, key: k, target: {path: ~/f, format: xml}}]\n`,
      [
        "c.yaml:2:47: rules[0].target.format: expected one of: yaml, json, text, netrc, ini, toml, ssh_config, dotenv, properties",
      ],
    ],
    [
      "asks for a template where a format needs one",
      `${EMBEDDED}rules: [{name: a, key: k, target: {path: ~/f, format: text}}]\n`,
      ["c.yaml:2:27: rules[0].target.template: required for the format text"],
    ],
    [
      "asks for a key",
      `${EMBEDDED}rules: [{name: a, target: {path: ~/f, format: json}}]\n`,
      ["c.yaml:2:9: rules[0]: one of key and keys is required"],
    ],
    [
      "takes vault_key as key",
      `${EMBEDDED}rules: [{name: a, vault_key: k, target: {path: ~/f, format: json}}]\n`,
      [],
    ],
    [
      "refuses key and keys together",
      `${EMBEDDED}rules: [{name: a, key: k, keys: {b: c}, target: {path: ~/f, format: json}}]\n`,
      ["c.yaml:2:9: rules[0]: give only one of key, vault_key and keys"],
    ],
    [
      "refuses delete_nulls outside yaml and json",
      `${EMBEDDED}rules: [{name: a, key: k, target: {path: ~/f, format: toml, delete_nulls: true}}]\n`,
      ["c.yaml:2:61: rules[0].target.delete_nulls: only for the formats yaml and json"],
    ],
    [
      "refuses two rules of one name",
      `${EMBEDDED}rules:\n  - {name: a, key: k, target: {path: ~/f, format: json}}\n  - {name: a, key: k, target: {path: ~/g, format: json}}\n`,
      ["c.yaml:4:6: rules[1].name: another rule has this name"],
    ],
    [
      "refuses two formats for one file",
      `${EMBEDDED}rules:\n  - {name: a, key: k, target: {path: ~/f, format: json}}\n  - {name: b, key: k, target: {path: ~/f, format: yaml}}\n`,
      ["c.yaml:4:32: rules[1].target.path: rule 'a' has the same file with another format"],
    ],
    [
      "refuses two rules for a file that one owns whole",
      `${EMBEDDED}rules:\n  - {name: a, key: k, target: {path: ~/f, format: json, merge: replace}}\n  - {name: b, key: k, target: {path: ~/f, format: json}}\n`,
      ["c.yaml:4:32: rules[1].target.path: rule 'a' has the same file, and one of them owns it whole"],
    ],
    [
      "lets two rules share a file",
      `${EMBEDDED}rules:\n  - {name: a, key: k, target: {path: ~/f, format: json}}\n  - {name: b, key: l, target: {path: ~/f, format: json}}\n`,
      [],
    ],
    [
      "refuses a command's time-out without end",
      `${rule("")}    run: {command: [x], timeout: 1h}\n`,
      ["c.yaml:6:25: rules[0].run.timeout: must be at most 10m"],
    ],
  ];
  for (const [name, text, expected] of table) it(name, () => assert.deepEqual(faults(text), expected));

  it("never quotes a value", () => {
    const text =
      "store: {driver: hunter2, address: hunter2, kv_mount: 7}\nsync: {interval: hunter2}\nrules: [{name: 'hunter2 x'}]\n";
    const found = faults(text);
    assert.ok(found.length >= 5, found.join("\n"));
    assert.doesNotMatch(found.join("\n"), /hunter2/);
  });
});

describe("the places", () => {
  it("take an empty or relative XDG variable as unset [agent 3.2]", () => {
    const places = findPlaces({
      HOME: "/h",
      XDG_STATE_HOME: "",
      XDG_DATA_HOME: "rel",
      XDG_CONFIG_HOME: "/c",
    });
    assert.equal(places.state, "/h/.local/state/daemon");
    assert.equal(places.data, "/h/.local/share/daemon");
    assert.equal(places.userConfig, "/c/daemon/config.yaml");
    assert.equal(places.runtime, places.state);
  });

  it("look at XDG_CONFIG_DIRS in order and at /etc/xdg always [agent 3.1]", () => {
    if (process.platform !== "linux") return;
    const { systemConfigs } = findPlaces({ HOME: "/h", XDG_CONFIG_DIRS: "/a:/b" });
    assert.deepEqual(systemConfigs, [
      "/a/daemon/config.yaml",
      "/b/daemon/config.yaml",
      "/etc/xdg/daemon/config.yaml",
    ]);
    assert.deepEqual(findPlaces({ HOME: "/h" }).systemConfigs, ["/etc/xdg/daemon/config.yaml"]);
  });
});

describe("loading the configuration", () => {
  it("takes the system's file before the user's, which is then an overlay [agent 3.1]", async () => {
    const places = await freshPlaces();
    const system = await write(places.systemConfigs[0] ?? "", EMBEDDED);
    assert.deepEqual((await loadConfig(places, undefined)).sources, [system]);
    await write(places.userConfig, "fuse: {mountpoint: ~/mine}\n");
    const loaded = await loadConfig(places, undefined);
    assert.deepEqual(loaded.sources, [system, places.userConfig]);
    assert.equal(loaded.config.fuse.mountpoint, "~/mine");
    await write(places.userConfig, "nonsense: 1\n");
    await assert.rejects(loadConfig(places, undefined), /nonsense: unknown key/);
  });

  it("takes the user's file where there is no system file [agent 3.1]", async () => {
    const places = await freshPlaces();
    await write(places.userConfig, EMBEDDED);
    assert.deepEqual((await loadConfig(places, undefined)).sources, [places.userConfig]);
  });

  it("without any file names the places looked at and agent init", async () => {
    const places = await freshPlaces();
    await assert.rejects(loadConfig(places, undefined), (error: Error & { hint?: string }) => {
      for (const path of [...places.systemConfigs, places.userConfig])
        assert.ok(error.message.includes(path));
      return error.hint?.includes("agent init") === true;
    });
  });

  it("refuses --config when a system configuration exists [agent 3.4]", async () => {
    const places = await freshPlaces();
    await write(places.systemConfigs[0] ?? "", EMBEDDED);
    const own = await write(join(places.home, "own.yaml"), EMBEDDED);
    await assert.rejects(
      loadConfig(places, own),
      /refused --config: .*does not set bypass_system_config: true/,
    );
  });

  it("allows --config when the system configuration sets bypass_system_config: true [agent 3.5]", async () => {
    const places = await freshPlaces();
    await write(places.systemConfigs[0] ?? "", `${EMBEDDED}bypass_system_config: true\n`, 0o644);
    const own = await write(join(places.home, "own.yaml"), EMBEDDED);
    if (process.geteuid?.() === 0) assert.deepEqual((await loadConfig(places, own)).sources, [own]);
    else await assert.rejects(loadConfig(places, own), /not owned by root/);
  });

  it("refuses --config when the granting system configuration is not root's [agent 3.6]", async (t) => {
    const places = await freshPlaces();
    const system = await write(places.systemConfigs[0] ?? "", `${EMBEDDED}bypass_system_config: true\n`);
    const other = await write(join(places.home, "c.yaml"), EMBEDDED);
    // The files belong to this user, who is not root. If root runs the tests, another user gets them.
    if (process.geteuid?.() === 0) {
      for (const path of [system, other]) await chown(path, 12_345, 0);
      t.mock.method(process as { geteuid(): number }, "geteuid", () => 12_345);
    }
    await assert.rejects(loadConfig(places, other), /cannot allow it, because it is not owned by root/);
  });

  it("refuses --config if its group can write the system configuration that allows it [agent 3.6]", async () => {
    const places = await freshPlaces();
    await write(places.systemConfigs[0] ?? "", `${EMBEDDED}bypass_system_config: true\n`, 0o664);
    const own = await write(join(places.home, "own.yaml"), EMBEDDED);
    await assert.rejects(loadConfig(places, own), /cannot allow it/);
  });

  it("refuses a configuration that others can write, and warns if its group can [agent 3.7]", async () => {
    const places = await freshPlaces();
    const own = await write(join(places.home, "own.yaml"), EMBEDDED, 0o666);
    await assert.rejects(loadConfig(places, own), /everybody can write it/);
    await chmod(own, 0o660);
    assert.deepEqual((await loadConfig(places, own)).warnings, [`${own} can be written by its group`]);
  });

  it("refuses a configuration of another user [agent 3.7]", async (context) => {
    if (process.geteuid?.() !== 0) return context.diagnostic("needs root to give a file away");
    const places = await freshPlaces();
    const own = await write(join(places.home, "own.yaml"), EMBEDDED);
    await chown(own, 65534, 65534);
    await assert.rejects(loadConfig(places, own), /belongs to another user/);
  });

  it("names a --config file that does not exist, is a folder, or is not text [agent 3.8]", async () => {
    const places = await freshPlaces();
    const absent = join(places.home, "absent.yaml");
    await assert.rejects(loadConfig(places, absent), {
      message: `${absent}: no such file`,
      hint: /^Check the path after --config\./,
    });
    await assert.rejects(loadConfig(places, places.home), /not a regular file/);
    const binary = join(places.home, "binary.yaml");
    await writeFile(binary, Buffer.from([0xff, 0xfe, 0x00]));
    await assert.rejects(loadConfig(places, binary), /not UTF-8 text/);
  });

  it("warns of host keys that are not checked [agent 3.19]", async () => {
    const places = await freshPlaces();
    const own = await write(
      join(places.home, "own.yaml"),
      `${EMBEDDED}ssh: {insecure_ignore_host_key: true}\n`,
    );
    const { warnings } = await loadConfig(places, own);
    assert.match(
      warnings.join("\n"),
      /own\.yaml:2:7: ssh\.insecure_ignore_host_key: host keys are not checked/,
    );
    const silent = await write(
      join(places.home, "silent.yaml"),
      `${EMBEDDED}ssh: {}\nagent: {enabled: true}\n`,
    );
    assert.deepEqual((await loadConfig(places, silent)).warnings, []);
  });

  it("warns of an authority that is believed for every host", async () => {
    const places = await freshPlaces();
    const key = `ssh-ed25519 ${"A".repeat(68)}`;
    const lines = [`@cert-authority *.example.com ${key}`, `@cert-authority a.example.com,* ${key}`];
    const own = await write(
      join(places.home, "own.yaml"),
      `${EMBEDDED}ssh: {certificate_authorities: ${JSON.stringify(lines)}}\n`,
    );
    const { warnings } = await loadConfig(places, own);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /own\.yaml:2:\d+: ssh\.certificate_authorities\[1\]: .* every host/);
  });

  it("reads through a symbolic link", async () => {
    const places = await freshPlaces();
    const own = await write(join(places.home, "own.yaml"), EMBEDDED);
    await symlink(own, places.userConfig);
    assert.deepEqual((await loadConfig(places, undefined)).sources, [places.userConfig]);
  });
});
