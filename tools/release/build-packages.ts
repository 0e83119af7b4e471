/** `npm run build:packages`: dist/packages, the npm packages of the git engine. */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ROOT, readSource } from "./source.ts";
import { writeTarballs } from "./tarballs.ts";

const folder = join(ROOT, "dist/packages");
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
for (const name of await writeTarballs(folder, readSource().epoch)) {
  process.stdout.write(`${join(folder, name)}\n`);
}
