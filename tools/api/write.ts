/** `npm run api`: writes the API page of each published package. */
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { apiPages } from "./pages.ts";

const root = resolve(import.meta.dirname, "../..");
for (const [path, text] of await apiPages()) {
  await writeFile(join(root, path), text);
  process.stdout.write(`${path}\n`);
}
