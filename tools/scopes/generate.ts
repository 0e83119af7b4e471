/**
 * Writes the generated tables of scopes and the digests of the decisions: `sh tools/run.sh tools/scopes/generate.ts`. A test
 * says when that is due.
 */
import { writeFileSync } from "node:fs";
import { DECISIONS_FILE, decisionDigests } from "./decisions.ts";
import { TABLE_FILES } from "./tables.ts";

for (const { path, text } of TABLE_FILES) writeFileSync(path, text());
// The authorizers load the tables when they are first used.
writeFileSync(DECISIONS_FILE, `${JSON.stringify(await decisionDigests(), null, 2)}\n`);
