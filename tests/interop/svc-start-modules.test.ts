import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { fileURLToPath } from "node:url";
import { startSvc, tempFolder } from "@devplat/testkit";

/**
 * Files that a start may load: two thirds of the 1,200 from before some parts were loaded on demand, and 20 for the fair queue and
 * the coordination of instances, which the first request needs.
 */
const MAX_MODULES = 832;
const HOOK = new URL("loaded-modules.ts", import.meta.url);

/** The package of a file, or the folder of a file of this repository: `kysely`, `apps/svc/src/cache`. */
function ownerOf(url: string): string {
  const path = fileURLToPath(url);
  const [, library] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  const [, folder] = /\/((?:apps|packages)\/.*)\/[^/]+$/.exec(path) ?? [];
  return library ?? folder ?? path;
}

/** `262 kysely, 95 zod, …` */
function largest(urls: readonly string[]): string {
  const counts = [...Map.groupBy(urls, ownerOf)].map(([owner, { length }]) => ({ owner, length }));
  const most = counts.toSorted((a, b) => b.length - a.length).slice(0, 15);
  return most.map(({ owner, length }) => `${length} ${owner}`).join(", ");
}

it(`svc starts with at most ${MAX_MODULES} modules, none of pages, API or YAML`, async () => {
  const folder = await tempFolder("svc-modules");
  const file = join(folder.path, "modules");
  const svc = await startSvc({
    untilListening: true,
    codeHost: { url: "http://127.0.0.1:1", apiUrl: "http://127.0.0.1:1/api/v3" },
    env: { NODE_OPTIONS: `--import=${HOOK.href}`, LOADED_MODULES: file },
  });
  assert.equal(await svc.stop(), 0);
  const urls = (await readFile(file, "utf8")).split("\n");
  await folder.remove();
  const owners = new Set(urls.map(ownerOf));
  assert.ok(owners.has("kysely") && owners.has("apps/svc/src/cache"), "modules are seen");
  assert.ok(urls.length <= MAX_MODULES, `${urls.length} modules, most of them: ${largest(urls)}`);
  const late = [
    "undici",
    "yaml",
    "@hono/node-server",
    "pg",
    "apps/svc/src/admin-ui",
    "apps/svc/src/api-proxy",
    "apps/svc/src/cache/object-tier/uploads",
    "packages/object-store/src",
  ];
  assert.deepEqual(
    late.filter((owner) => owners.has(owner)),
    [],
  );
});
