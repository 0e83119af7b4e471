import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "@devplat/testkit";
import { buildAgent } from "../../../tools/build/agent.ts";
import { buildSvc } from "../../../tools/build/svc.ts";
import { Machine } from "./machine.ts";

/** Node's one library that a minimal system lacks. The packages depend on it. */
const LIBRARY = "libatomic.so.1";
const LIBRARY_FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
const UNITS = join(import.meta.dirname, "../../../deploy/systemd");

/**
 * Boots a machine that has a program as a package would install it, with the units, from the sources of this repository.
 *
 * @param mounts further files of this host, by their paths in the machine
 */
export async function bootWith(
  program: "svc" | "agent",
  mounts: Readonly<Record<string, string>> = {},
): Promise<Machine> {
  const build = await tempFolder("release");
  const folder = join(build.path, program);
  await mkdir(folder);
  await (program === "svc" ? buildSvc(folder) : buildAgent(folder));
  const library = LIBRARY_FOLDERS.map((each) => join(each, LIBRARY)).find((path) => existsSync(path));
  if (library === undefined) throw new Error(`cannot run Node in a machine: this host has no ${LIBRARY}`);
  const machine = await Machine.boot({
    mounts: {
      [`/usr/lib/${program}`]: folder,
      "/usr/bin/node": process.execPath,
      [`/usr/lib/${LIBRARY}`]: library,
      "/usr/lib/units": UNITS,
      ...mounts,
    },
  });
  try {
    await install(machine, program);
    return machine;
  } catch (error) {
    await machine.stop();
    throw error;
  }
}

async function install(machine: Machine, program: "svc" | "agent"): Promise<void> {
  await machine.must(["ln", "-s", `/usr/lib/${program}/${program}`, `/usr/bin/${program}`]);
  if (program === "svc") {
    await machine.sh(
      `cp /usr/lib/units/system/* /etc/systemd/system/
       mkdir -p /etc/sysusers.d
       cp /usr/lib/units/sysusers.d/* /etc/sysusers.d/
       systemd-sysusers
       systemctl daemon-reload`,
    );
  }
}
