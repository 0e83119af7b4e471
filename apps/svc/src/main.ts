import { runProgram } from "@devplat/cli";
import { dropUnreadOutput } from "@devplat/base/terminal";
import { BRAND } from "./brand.ts";
import { PROGRAM } from "./commands/program.ts";

// Only the program's own user may read its files: repositories, the database, keys.
process.umask(0o077);
dropUnreadOutput(BRAND.command);
// No await here: the single executable is a CommonJS module.
void runProgram(PROGRAM, process.argv.slice(2), process.env).then((code) => (process.exitCode = code));
