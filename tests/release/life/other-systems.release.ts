import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startCodeHostProcess, type CodeHostProcess } from "@devplat/testkit";
import { Machine } from "../machine/machine.ts";
import { Debian, PACKAGES } from "./debian.ts";
import { LATER, OLD, Packages } from "./packages.ts";
import { SvcClient } from "./svc-client.ts";

const UNIT = "svc.service";

/** A package manager of another system. It runs in Debian, so it does not know the packages of the C libraries. */
interface PackageManager {
  readonly name: string;
  readonly format: "rpm" | "archlinux";
  readonly install: readonly string[];
  readonly upgrade: readonly string[];
  readonly downgrade: readonly string[];
  readonly remove: readonly string[];
  /** Prints the files of a package. */
  readonly files: readonly string[];
  /** What a downgrade says that was not asked for. Undefined: the package manager replaces a version by any other. */
  readonly refusal: RegExp | undefined;
  /** Makes the machine ready for it. */
  readonly prepare: string;
}

const PACMAN = ["pacman", "--noconfirm", "--nodeps", "--nodeps"];
const MANAGERS: readonly PackageManager[] = [
  {
    name: "rpm",
    format: "rpm",
    install: ["rpm", "--install", "--nodeps"],
    upgrade: ["rpm", "--upgrade", "--nodeps"],
    downgrade: ["rpm", "--upgrade", "--nodeps", "--oldpackage"],
    remove: ["rpm", "--erase"],
    files: ["rpm", "--query", "--list"],
    refusal: /is newer than|which is newer/,
    prepare: "rpm --initdb",
  },
  {
    name: "pacman",
    format: "archlinux",
    install: [...PACMAN, "--upgrade"],
    upgrade: [...PACMAN, "--upgrade"],
    downgrade: [...PACMAN, "--upgrade"],
    remove: [...PACMAN, "--remove"],
    files: ["pacman", "--query", "--list", "--quiet"],
    refusal: undefined,
    // The shell of Arch is bash, for which the functions of these packages are written.
    prepare: "ln -sf bash /usr/bin/sh; mkdir -p /var/lib/pacman",
  },
];

for (const manager of MANAGERS) {
  /** One machine from the install to the removal: each test goes on where the one before has ended. */
  describe(`the life of both programs with ${manager.name}`, () => {
    const packages: Partial<Record<"svc" | "agent", Packages>> = {};
    let machine: Machine;
    let host: CodeHostProcess;
    let client: SvcClient;
    let key = "";

    before(async () => {
      for (const name of ["svc", "agent"] as const) {
        packages[name] = await Packages.build(name, [manager.format]);
      }
      machine = await Machine.boot({
        mounts: Object.fromEntries(
          Object.entries(packages).map(([name, { folder }]) => [`${PACKAGES}/${name}`, folder]),
        ),
      });
      client = new SvcClient(machine);
      host = await startCodeHostProcess(machine.pid);
      await host.addRepository("acme", "app");
      const debian = new Debian(machine);
      await debian.update();
      await debian.apt("install", "libatomic1");
      await machine.sh(manager.prepare);
    });
    after(async () => {
      await host?.stop();
      await machine?.stop();
      for (const built of Object.values(packages)) await built.remove();
    });

    /** Runs the package manager with a package. @returns everything that it printed */
    const manage = async (
      command: "install" | "upgrade" | "downgrade",
      name: "svc" | "agent",
      version: string,
    ): Promise<string> => {
      const file = packages[name]?.fileOf(version, manager.format);
      const { code, stdout, stderr } = await machine.exec(
        [...manager[command], `${PACKAGES}/${name}/${file}`],
        { timeoutMs: 120_000 },
      );
      if (code !== 0) throw new Error(`${manager.name} ended with ${code}: ${stdout}${stderr}`);
      return stdout + stderr;
    };
    const assertNothingLost = async (): Promise<void> => {
      assert.match(await machine.sh("cat /etc/svc/svc.yaml"), /^# edited by hand$/m);
      assert.equal(await machine.sh("grep ^SVC_ENCRYPTION_KEY /etc/svc/svc.env"), key);
      assert.match(await client.clone("acme/app"), /^[1-9]\d*$/);
    };

    it("svc is installed, and serves a clone after one line is edited", async () => {
      assert.match(await manage("install", "svc", OLD), /made an encryption key/);
      assert.equal(await machine.must(["svc", "version"]), OLD);
      assert.equal(
        await machine.sh("stat -c '%U:%G %a' /etc/svc/svc.yaml /etc/svc/svc.env"),
        "root:svc 640\nroot:root 600",
      );
      assert.equal(await machine.property(UNIT, "ActiveState"), "inactive");
      key = await machine.sh("grep ^SVC_ENCRYPTION_KEY /etc/svc/svc.env");
      const line = `host: {url: "${host.url}", api_url: "${host.apiUrl}"}`;
      await machine.sh(
        `sed -i 's|^# admins:.*|${line}|' /etc/svc/svc.yaml; echo '# edited by hand' >>/etc/svc/svc.yaml`,
      );
      await machine.must(["systemctl", "enable", "--now", UNIT]);
      await assertNothingLost();
    });

    it("an upgrade restarts svc and loses nothing", async () => {
      const first = await machine.property(UNIT, "MainPID");
      const said = await manage("upgrade", "svc", LATER);
      assert.doesNotMatch(said, /made an encryption key/);
      assert.equal(await machine.must(["svc", "version"]), LATER);
      assert.notEqual(await machine.property(UNIT, "MainPID"), first);
      assert.equal(await machine.property(UNIT, "ActiveState"), "active");
      assert.equal(await machine.property(UNIT, "UnitFileState"), "enabled");
      await assertNothingLost();
    });

    it("a downgrade to a version with the same tables loses nothing", async () => {
      if (manager.refusal !== undefined) await assert.rejects(manage("upgrade", "svc", OLD), manager.refusal);
      await manage("downgrade", "svc", OLD);
      assert.equal(await machine.must(["svc", "version"]), OLD);
      await assertNothingLost();
      await manage("upgrade", "svc", LATER);
    });

    it("a removal keeps key, data and what was edited, and an install goes on", async () => {
      await machine.must([...manager.remove, "svc"]);
      assert.equal(await machine.property(UNIT, "ActiveState"), "inactive");
      await machine.sh("test ! -e /usr/bin/svc -a -s /etc/svc/svc.env -a -s /var/lib/svc/svc.db");
      // Both keep an edited file under another name, so that the next install does not mix it with its own.
      const kept = await machine.sh(
        "ls /etc/svc/svc.yaml.rpmsave /etc/svc/svc.yaml.pacsave 2>/dev/null || true",
      );
      assert.match(kept, /^\/etc\/svc\/svc\.yaml\.(?:rpm|pac)save$/);
      await manage("install", "svc", LATER);
      await machine.sh(`mv ${kept} /etc/svc/svc.yaml; systemctl enable --now ${UNIT}`);
      await assertNothingLost();
    });

    it("agent is installed, upgraded and removed with all its files", async () => {
      await manage("install", "agent", OLD);
      assert.equal(await machine.must(["agent", "version"]), OLD);
      const files = (await machine.must([...manager.files, "agent"])).split("\n");
      for (const path of ["/usr/bin/agent", "/usr/lib/systemd/user/agent.service"]) {
        assert.ok(files.includes(path), `${path} in ${files.join()}`);
      }
      await machine.addUser();
      const verified = await machine.sh("systemd-analyze --user verify agent.service 2>&1", "user");
      assert.doesNotMatch(verified, /agent\.service/);
      await manage("upgrade", "agent", LATER);
      assert.equal(await machine.must(["agent", "version"]), LATER);
      await machine.must([...manager.remove, "agent"]);
      const left = files.filter((path) => path !== "" && !path.endsWith("/"));
      const { stdout } = await machine.exec(["find", ...left, "-maxdepth", "0", "-type", "f"]);
      assert.equal(stdout, "");
    });
  });
}
