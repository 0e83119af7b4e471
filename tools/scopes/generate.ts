/**
 * Writes the generated tables of scopes and the digests of what they judge: `sh tools/run.sh tools/scopes/generate.ts`. A test
 * says when that is due.
 */
import { writeFileSync } from "node:fs";
import { JUDGED_FILE, judgedDigests } from "./judged.ts";
import { TABLE_FILES } from "./tables.ts";

for (const { path, text } of TABLE_FILES) writeFileSync(path, text());
// The judges load the tables when they are first used.
writeFileSync(JUDGED_FILE, `${JSON.stringify(await judgedDigests(), null, 2)}\n`);
