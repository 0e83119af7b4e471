/** `npm run build:packages`: dist/packages, the npm packages of the git engine. */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../build/root.ts";
import { readSource } from "./source.ts";
import { writeTarballs } from "./tarballs.ts";

const HELP = `Usage: npm run build:packages

Writes the npm packages of the git engine to dist/packages, which is emptied first, and prints their names. There are no options.
`;

const [argument] = process.argv.slice(2);
if (argument === "--help" || argument === "-h") {
  process.stdout.write(HELP);
} else if (argument === undefined) {
  await build();
} else {
  process.stderr.write(`build:packages takes no arguments, and was given "${argument}". See --help.\n`);
  process.exitCode = 2;
}

async function build(): Promise<void> {
  const folder = join(ROOT, "dist/packages");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const name of await writeTarballs(folder, readSource().epoch)) {
    process.stdout.write(`${join(folder, name)}\n`);
  }
}
