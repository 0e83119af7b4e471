import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { until, type ContainerEngine } from "@devplat/testkit";
import type { VolumesStand } from "./agent-volumes-stand.ts";

/** Where a container with the volume of `demo/registry` has the secret. */
export const SECRET = "/run/secrets/demo/registry.json";

/**
 * Has the running container `hostile` put links to a folder of the host into its volume, while the secret changes. Nothing may be
 * written there. The container is removed.
 *
 * @param precious folder of the host with one file named `file`
 * @param values of the secret, one for each link
 */
export async function assertLinksHarmless(
  stand: VolumesStand,
  docker: ContainerEngine,
  precious: string,
  values: readonly [string, string],
): Promise<void> {
  const before = await readFile(join(precious, "file"), "utf8");
  const inBox = (script: string): Promise<string> => docker.ok("exec", "hostile", "sh", "-c", script);
  for (const [index, name] of ["..data", "demo"].entries()) {
    const value = values[index]!;
    await inBox(`rm /run/secrets/${name} && ln -s ${precious} /run/secrets/${name}`);
    await stand.put("demo/registry", `password=${value}`);
    await until(async () => (await docker.run("exec", "hostile", "cat", SECRET)).stdout.includes(value));
    assert.deepEqual(await readdir(precious), ["file"]);
  }
  await inBox(`rm /run/secrets/..data && ln -s ${precious} /run/secrets/..data && ln -s / /run/secrets/root`);
  await docker.ok("rm", "-f", "hostile");
  assert.deepEqual(await readdir(stand.volume("")), [".volumes-of-agent"]);
  assert.equal(await readFile(join(precious, "file"), "utf8"), before);
}
