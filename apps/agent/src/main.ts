import { runProgram } from "@devplat/cli";
import { dropUnreadOutput } from "@devplat/base/terminal";
import { BRAND } from "./brand.ts";
import { PROGRAM } from "./commands/program.ts";

// The arguments may hold a secret (`secrets put KEY field=value`) and every user of the host can read them: they are
// overwritten before anything else is done.
process.title = BRAND.command;

dropUnreadOutput(BRAND.command);

// No await here: the release bundle is a CommonJS module.
void runProgram(PROGRAM, process.argv.slice(2), process.env).then((code) => (process.exitCode = code));
