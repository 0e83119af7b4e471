import assert from "node:assert/strict";
import { mkdir, open, readdir, readFile, rename, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { NEW, OLD, textOf, type EditingCase, type EditingPlace } from "./editing-stand.ts";

/** Names in the folder but for that of the secret. */
async function othersIn({ folder }: EditingPlace): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name !== "registry.json").toSorted();
}

interface Expected {
  readonly left?: readonly string[];
  readonly result?: string;
  readonly isMadeAgain?: boolean;
}
const MADE_AGAIN: Expected = { result: "saved; older versions are gone", isMadeAgain: true };

/** A case whose tool leaves no other name in the folder, or exactly these. */
const toolCase = (
  tool: string,
  does: string,
  save: (place: EditingPlace) => Promise<unknown>,
  { left = [], result = "saved", isMadeAgain = false }: Expected = {},
): EditingCase => ({
  row: { tool, does, result },
  isMadeAgain,
  assertRow: async (place) => {
    await save(place);
    assert.deepEqual(await othersIn(place), left);
  },
});

/** Writes the new text to a file on the disk. */
async function newOnDisk({ disk }: EditingPlace, name = "registry.json"): Promise<string> {
  const path = join(disk, name);
  await writeFile(path, textOf(NEW));
  return path;
}

/** Writes a file as VS Code does in place: open with truncation, write, fdatasync. */
async function writeInPlace(path: string): Promise<void> {
  const file = await open(path, "w");
  await file.writeFile(textOf(NEW));
  await file.datasync();
  await file.close();
}

const PYTHON_REPLACE = `
import json, os, sys
with open("registry.json") as old: fields = json.load(old)
fields["password"] = sys.argv[1]
with open("registry.json.tmp", "w") as new:
    json.dump(fields, new, indent=2)
    new.write("\\n")
    new.flush()
    os.fsync(new.fileno())
os.replace("registry.json.tmp", "registry.json")
`;
const PYTHON_IN_PLACE = `
import sys
with open("registry.json", "r+") as file:
    text = file.read().replace("${OLD}", sys.argv[1])
    file.seek(0)
    file.write(text)
    file.truncate()
`;

/** Git on the mount, with nothing but its own settings. */
async function initialized(place: EditingPlace): Promise<(...args: readonly string[]) => Promise<string>> {
  const git = (...args: readonly string[]): Promise<string> => place.ok("git", ...args);
  await git("init", "--quiet");
  for (const [key, value] of [
    ["user.name", "Ada"],
    ["user.email", "ada@example.com"],
  ] as const)
    await git("config", key, value);
  await git("add", "registry.json");
  await git("commit", "--quiet", "--message=first");
  return git;
}

export const SAVING_CASES: readonly EditingCase[] = [
  toolCase("sed", "`-i`: writes `sedXXXXXX`, renames it", ({ ok }) =>
    ok("sed", "-i", `s/${OLD}/${NEW}/`, "registry.json"),
  ),
  toolCase(
    "sed",
    "`-i.bak`: renames the old file to `registry.json.bak` too",
    ({ ok }) => ok("sed", "-i.bak", `s/${OLD}/${NEW}/`, "registry.json"),
    { left: ["registry.json.bak"] },
  ),
  toolCase("perl", "`-i`: writes another file, renames it", ({ ok }) =>
    ok("perl", "-i", "-pe", `s/${OLD}/${NEW}/`, "registry.json"),
  ),
  toolCase(
    "perl",
    "`-i.orig`: keeps the old file as `registry.json.orig`",
    ({ ok }) => ok("perl", "-i.orig", "-pe", `s/${OLD}/${NEW}/`, "registry.json"),
    { left: ["registry.json.orig"] },
  ),
  toolCase("jq", "`jq … > tmp && mv tmp registry.json`", ({ ok }) =>
    ok("sh", "-c", `jq --arg new ${NEW} '.password = $new' registry.json > tmp && mv tmp registry.json`),
  ),
  toolCase("sh", "`echo … > registry.json`", ({ ok }) =>
    ok("sh", "-c", 'printf "%s" "$0" > registry.json', textOf(NEW)),
  ),
  toolCase("tee", "writes in place", ({ ok }) =>
    ok("sh", "-c", 'printf "%s" "$0" | tee registry.json', textOf(NEW)),
  ),
  toolCase("cp", "over a secret", async (place) => place.ok("cp", await newOnDisk(place), "registry.json")),
  toolCase(
    "cp",
    "`--remove-destination`: deletes the old file first",
    async (place) => place.ok("cp", "--remove-destination", await newOnDisk(place), "registry.json"),
    MADE_AGAIN,
  ),
  {
    row: { tool: "cp", does: "a new file", result: "a new secret" },
    assertRow: async (place) => {
      await place.ok("cp", "-a", await newOnDisk(place), "fresh.json");
    },
    secrets: { registry: OLD, fresh: NEW },
  },
  toolCase(
    "mv",
    "from a disk over a secret: deletes it first",
    async (place) => place.ok("mv", await newOnDisk(place), "registry.json"),
    MADE_AGAIN,
  ),
  toolCase(
    "install",
    "`-m 600` over a secret: deletes it first",
    async (place) => place.ok("install", "-m", "600", await newOnDisk(place), "registry.json"),
    MADE_AGAIN,
  ),
  toolCase("rsync", "writes `.registry.json.XXXXXX`, renames it", async (place) =>
    place.ok("rsync", "-a", await newOnDisk(place), "registry.json"),
  ),
  toolCase("rsync", "`--inplace`", async (place) =>
    place.ok("rsync", "-a", "--inplace", await newOnDisk(place), "registry.json"),
  ),
  toolCase("rsync", "`--delay-updates`: writes into `.~tmp~`", async (place) =>
    place.ok("rsync", "-a", "--delay-updates", await newOnDisk(place), "./"),
  ),
  toolCase(
    "rsync",
    "`--backup`: renames the old file to `registry.json~`",
    async (place) => place.ok("rsync", "-a", "--backup", await newOnDisk(place), "registry.json"),
    { left: ["registry.json~"] },
  ),
  toolCase(
    "tar",
    "`-x` over a secret: deletes it first",
    async (place) => {
      await newOnDisk(place);
      await place.ok("tar", "-C", place.disk, "-cf", join(place.disk, "a.tar"), "registry.json");
      return place.ok("tar", "-xf", join(place.disk, "a.tar"));
    },
    MADE_AGAIN,
  ),
  toolCase("tar", "`-x --overwrite` over a secret", async (place) => {
    await newOnDisk(place);
    await place.ok("tar", "-C", place.disk, "-cf", join(place.disk, "a.tar"), "registry.json");
    return place.ok("tar", "-xf", join(place.disk, "a.tar"), "--overwrite");
  }),
  {
    row: { tool: "tar", does: "`-x` of new files", result: "new secrets" },
    assertRow: async (place) => {
      await newOnDisk(place, "one.json");
      await newOnDisk(place, "two.json");
      await place.ok("tar", "-C", place.disk, "-cf", join(place.disk, "a.tar"), "one.json", "two.json");
      await place.ok("tar", "-xf", join(place.disk, "a.tar"));
    },
    secrets: { registry: OLD, one: NEW, two: NEW },
  },
  toolCase("Python", "`os.replace` after `fsync`", ({ ok }) => ok("python3", "-c", PYTHON_REPLACE, NEW)),
  toolCase("Python", "`r+`, write, truncate", ({ ok }) => ok("python3", "-c", PYTHON_IN_PLACE, NEW)),
  toolCase("VS Code's way", "in place: truncates, writes, fdatasync", ({ file }) => writeInPlace(file)),
  toolCase("VS Code's way", "atomic: `registry.json.vsctmp`, renamed", async ({ file }) => {
    await writeInPlace(`${file}.vsctmp`);
    await rename(`${file}.vsctmp`, file);
  }),
  toolCase("JetBrains' way", "`___jb_tmp___`, `___jb_old___`", async ({ file }) => {
    await writeInPlace(`${file}___jb_tmp___`);
    await rename(file, `${file}___jb_old___`);
    await rename(`${file}___jb_tmp___`, file);
    await unlink(`${file}___jb_old___`);
  }),
  toolCase(
    "git",
    "`init`, `add`, `commit`, `checkout` of an older version, `stash`",
    async (place) => {
      const git = await initialized(place);
      await writeFile(place.file, textOf("between"));
      await git("commit", "--quiet", "--all", "--message=between");
      await git("checkout", "--quiet", "HEAD~1", "--", "registry.json");
      assert.equal(await readFile(place.file, "utf8"), textOf(OLD));
      await git("reset", "--quiet", "--hard");
      assert.equal(await readFile(place.file, "utf8"), textOf("between"));
      await writeFile(place.file, textOf(NEW));
      await git("stash", "--quiet");
      assert.equal(await readFile(place.file, "utf8"), textOf("between"));
      await git("stash", "pop", "--quiet");
      await git("fsck", "--strict");
    },
    {
      left: [".git"],
      result: "saved, older versions are gone; `.git` is in memory, and gone at unmount",
      isMadeAgain: true,
    },
  ),
  toolCase(
    "git",
    "`checkout-index` with its folder on a disk: deletes the old file first",
    async (place) => {
      const git = (...args: readonly string[]): Promise<string> =>
        place.ok("git", `--git-dir=${join(place.disk, "git")}`, ...args);
      await mkdir(join(place.disk, "git"));
      await git("init", "--quiet", "--bare");
      const id = (
        await place.ok(
          "sh",
          "-c",
          `printf '%s' "$0" | git --git-dir="$1" hash-object -w --stdin`,
          textOf(NEW),
          join(place.disk, "git"),
        )
      ).trim();
      await git("--work-tree=.", "update-index", "--add", "--cacheinfo", `100644,${id},registry.json`);
      return git("--work-tree=.", "checkout-index", "--force", "registry.json");
    },
    MADE_AGAIN,
  ),
];
