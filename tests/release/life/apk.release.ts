import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { lstat, mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run, tempFolder, type TempFolder } from "@devplat/testkit";
import { ownPlatform } from "../../../tools/build/single/platforms.ts";
import { AlpineRepository } from "./alpine.ts";
import { LATER, OLD, Packages } from "./packages.ts";

const ARCHITECTURE = ownPlatform().name === "linux-arm64" ? "aarch64" : "x86_64";
/** Files that only one of both formats has, or that are at another place in it. */
const OF_ONE_FORMAT =
  /^(?:\.|usr\/share\/(?:lintian|svc)\/|usr\/share\/zsh\/|etc\/svc\/svc\.yaml$|usr\/share\/doc\/\w+\/changelog\.Debian\.gz$)/;
const USER = "svc:x:990:990::/var/lib/svc:/sbin/nologin\n";

/**
 * A reader of Alpine's packages that is not ours, the library of apko, resolves them and installs them into an empty root. It neither
 * runs scripts nor replaces installed packages, as apk does. So the scripts are run here by the shell of Alpine, busybox.
 */
for (const name of ["svc", "agent"] as const) {
  describe(`the Alpine packages of ${name}`, () => {
    let packages: Packages;
    let repository: AlpineRepository;
    let stubs: TempFolder;
    const file = (version: string): string => join(packages.folder, packages.fileOf(version, "apk"));
    before(async () => {
      packages = await Packages.build(name, ["apk", "deb"]);
      repository = await AlpineRepository.make(ARCHITECTURE);
      stubs = await tempFolder("apk-stubs");
      await repository.add(file(OLD), `${name}-${OLD}-r1`);
    });
    after(async () => {
      await packages?.remove();
      await repository?.remove();
      await stubs?.remove();
    });

    it("are refused without the libraries that Node needs", async () => {
      const root = await repository.root();
      await assert.rejects(repository.install(root, name), /gcompat|libatomic|libstdc/);
      for (const library of ["gcompat", "libatomic", "libstdc++"]) {
        await repository.add(await stubPackage(stubs.path, library), `${library}-1.0.0-r0`);
      }
    });

    it("are installed with all files of the package for Debian, and the same bytes", async () => {
      const root = await repository.root();
      const former = await filesBelow(root);
      assert.ok((await repository.install(root, name)).includes(`${name} ${OLD}-r1`));
      const installed = await filesBelow(root);
      const added = new Map([...installed].filter(([path]) => !former.has(path)));
      const debian = join(stubs.path, "debian");
      await must("dpkg-deb", ["-x", join(packages.folder, packages.fileOf(OLD, "deb")), debian]);
      const common = (files: ReadonlyMap<string, string>): object =>
        Object.fromEntries([...files].filter(([path]) => !isOfOneFormat(path)));
      const found = common(await filesBelow(debian));
      assert.ok(Object.keys(found).length > 10, Object.keys(found).join());
      assert.deepEqual(common(added), found);
      assert.equal((await must(join(root, "usr/bin", name), ["version"])).trim(), OLD);
    });

    it("have scripts that busybox runs: an upgrade keeps the key and what was edited", async () => {
      const root = await repository.root();
      await repository.install(root, name);
      const scripts = join(stubs.path, "scripts");
      await mkdir(scripts);
      await must("tar", ["-xf", join(root, "lib/apk/db/scripts.tar"), "-C", scripts]);
      // Debian's busybox has no adduser.
      await writeFile(join(root, "etc/passwd"), `root:x:0:0::/:/bin/sh\n${USER}`);
      await writeFile(join(root, "etc/group"), "root:x:0:\nsvc:x:990:\n");
      const script = async (kind: string, ...versions: readonly string[]): Promise<string> => {
        // Their names have the checksum of the package in base64, which can contain a slash.
        const [path] = (await readdir(scripts, { recursive: true })).filter(
          (each) => each.startsWith(`${name}-`) && each.endsWith(kind),
        );
        assert.ok(path !== undefined, kind);
        await rename(join(scripts, path), join(root, "script"));
        const said = await must("chroot", [root, "/bin/sh", "/script", ...versions]);
        await rename(join(root, "script"), join(scripts, path));
        return said;
      };
      await script(".post-install", `${OLD}-r1`);
      if (name === "agent") return;
      const key = await readFile(join(root, "etc/svc/svc.env"), "utf8");
      assert.match(key, /^SVC_ENCRYPTION_KEY=[0-9a-f]{64}$/m);
      assert.equal((await stat(join(root, "etc/svc/svc.env"))).mode & 0o777, 0o600);
      const { gid, mode } = await stat(join(root, "etc/svc/svc.yaml"));
      assert.deepEqual([gid, mode & 0o777], [990, 0o640]);
      await writeFile(join(root, "etc/svc/svc.yaml"), "# edited by hand\n");
      await script(".post-upgrade", `${LATER}-r1`, `${OLD}-r1`);
      assert.equal(await readFile(join(root, "etc/svc/svc.env"), "utf8"), key);
      assert.equal(await readFile(join(root, "etc/svc/svc.yaml"), "utf8"), "# edited by hand\n");
    });

    it("of a later version are chosen, with the same paths", async () => {
      await repository.add(file(LATER), `${name}-${LATER}-r1`);
      const root = await repository.root();
      assert.ok((await repository.install(root, name)).includes(`${name} ${LATER}-r1`));
      assert.equal((await must(join(root, "usr/bin", name), ["version"])).trim(), LATER);
      const former = await repository.root();
      await repository.install(former, `${name}=${OLD}-r1`);
      assert.deepEqual(
        [...(await filesBelow(root)).keys()].toSorted(),
        [...(await filesBelow(former)).keys()].toSorted(),
      );
    });
  });
}

function isOfOneFormat(path: string): boolean {
  return OF_ONE_FORMAT.test(path) || /^(?:etc|lib)\/apk\//.test(path);
}

/** Mode and SHA-256 of each regular file, by path. */
async function filesBelow(root: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const path of await readdir(root, { recursive: true })) {
    const { mode, isFile } = await lstat(join(root, path)).then((at) => ({
      mode: at.mode & 0o777,
      isFile: at.isFile(),
    }));
    if (!isFile) continue;
    const content = await readFile(join(root, path));
    found.set(path, `${mode.toString(8)} ${createHash("sha256").update(content).digest("hex")}`);
  }
  return found;
}

/** A package without files that a library of Alpine is taken for. @returns its file */
async function stubPackage(folder: string, name: string): Promise<string> {
  const at = join(folder, name);
  await mkdir(join(at, "data"), { recursive: true });
  // A control archive without the end of a tar file, and the data: two gzip streams after each other.
  const build = `tar -C data --format=pax -cf - --files-from /dev/null | gzip -n >data.gz
    printf 'pkgname = %s\\npkgver = 1.0.0-r0\\narch = %s\\nsize = 0\\ndatahash = %s\\n' "$1" "$2" \\
      "$(sha256sum <data.gz | cut -d ' ' -f 1)" >.PKGINFO
    tar --format=ustar -cf control.tar .PKGINFO
    head -c 1024 control.tar | gzip -n >control.gz
    cat control.gz data.gz >package.apk`;
  await must("sh", ["-euc", build, "sh", name, ARCHITECTURE], at);
  return join(at, "package.apk");
}

async function must(command: string, args: readonly string[], cwd?: string): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, cwd === undefined ? {} : { cwd });
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr || stdout}`);
  return stdout;
}
