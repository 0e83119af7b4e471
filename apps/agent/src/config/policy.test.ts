import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { findPlaces } from "../agent-files/places.ts";
import { testPrograms, type TestPrograms } from "../desktop/programs.test-kit.ts";
import { platformOf } from "../platform/platform.ts";
import { EVERY_SECTION } from "./every-section.test-kit.ts";
import { loadConfig, parseConfig } from "./load.ts";
import { hasKey, policyOf } from "./policy.ts";
import { emptyKey, writeRegistryFile } from "./registry-file.ts";
import { REGISTRY_ROOT, toRegistry } from "./registry-values.ts";
import { parseConfigDocument } from "@devplat/config/document";

const windows = platformOf("win32");
const LISTING = `\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Microsoft\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Daemon\r\n`;

/** A reg.exe that lists keys, and exports a registry file. */
async function addReg(programs: TestPrograms, listing: string, exported?: Uint8Array): Promise<void> {
  const [list, file] = [join(programs.folder, "listing"), join(programs.folder, "exported")];
  await writeFile(list, listing);
  if (exported !== undefined) await writeFile(file, exported);
  await programs.add("reg.exe", `[ "$1" = query ] && exec cat "${list}"\ncp "${file}" "$3"`);
}

const policyFor = (programs: TestPrograms) =>
  policyOf(windows, { PATH: programs.path, AGENT_TOKEN: "hidden" });
const registryFile = (text: string): Buffer =>
  writeRegistryFile(
    REGISTRY_ROOT,
    toRegistry(parseConfigDocument("c", text).value as Record<string, unknown>),
  );

describe("policyOf Windows", () => {
  it("reads every section as a file would have it, by an export of the 64-bit registry", async () => {
    await using programs = await testPrograms();
    await addReg(programs, LISTING, registryFile(EVERY_SECTION));
    const policy = await policyFor(programs)();
    assert.ok(policy);
    assert.deepEqual(parseConfig(policy), parseConfig({ path: "c.yaml", text: EVERY_SECTION }));
    assert.deepEqual([policy.path, policy.trusted], [REGISTRY_ROOT, true]);
    const args = (await programs.got("reg.exe", "args")).trim().split("\n");
    assert.deepEqual([args[0], args[1], ...args.slice(3)], ["export", REGISTRY_ROOT, "/y", "/reg:64"]);
    assert.equal(await programs.got("reg.exe", "token"), "");
  });

  it("a host without the key, or with an empty one, has no policy", async () => {
    await using programs = await testPrograms();
    await addReg(programs, LISTING.replace("Daemon", "DaemonX"));
    assert.equal(await policyFor(programs)(), undefined);
    await addReg(programs, LISTING, writeRegistryFile(REGISTRY_ROOT, emptyKey()));
    assert.equal(await policyFor(programs)(), undefined);
  });

  it("a policy that cannot be read is an error, not no policy", async () => {
    await using programs = await testPrograms();
    await assert.rejects(policyOf(windows, { PATH: "/nonexistent" })(), { code: "policy_unreadable" });
    await programs.add("reg.exe", "exit 1");
    await assert.rejects(policyFor(programs)(), { code: "policy_unreadable" });
    await addReg(programs, LISTING);
    await assert.rejects(policyFor(programs)(), { code: "policy_unreadable" });
    await addReg(programs, LISTING, Buffer.from("hunter2"));
    await assert.rejects(policyFor(programs)(), (error: Error & { code?: string }) => {
      assert.equal(error.code, "registry_file_invalid");
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    });
  });

  it("the policy replaces the system's file, and refuses --config unless it allows it", async () => {
    await using programs = await testPrograms();
    const home = await mkdtemp(join(tmpdir(), "policy-"));
    const places = findPlaces({ HOME: home, XDG_CONFIG_DIRS: join(home, "etc") });
    const [system = ""] = places.systemConfigs;
    await mkdir(dirname(system), { recursive: true });
    await writeFile(system, "nonsense: 1\n");
    await addReg(programs, LISTING, registryFile("store: {driver: embedded}\n"));
    const loaded = await loadConfig(places, undefined, policyFor(programs));
    assert.deepEqual(loaded.sources, [REGISTRY_ROOT]);
    await assert.rejects(loadConfig(places, system, policyFor(programs)), { code: "config_refused" });
    await rm(home, { recursive: true });
  });

  it("other systems have no registry", async () => {
    assert.equal(await policyOf(platformOf("linux"), { PATH: "/nonexistent" })(), undefined);
  });
});

describe("hasKey", () => {
  const table: [name: string, listing: string, expected: boolean][] = [
    ["empty", "", false],
    ["only the end of a line", `x${REGISTRY_ROOT}`, false],
    ["a key below", `${REGISTRY_ROOT}\\web`, false],
    ["a value of that name", `    ${REGISTRY_ROOT}    REG_SZ    x`, false],
    ["lower case, without a carriage return", `a\n${REGISTRY_ROOT.toLowerCase()}\n`, true],
  ];
  for (const [name, listing, expected] of table)
    it(name, () => assert.equal(hasKey(listing, REGISTRY_ROOT), expected));
});
