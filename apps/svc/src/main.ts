import { runProgram } from "@devplat/cli";
import { dropUnreadOutput } from "@devplat/base/terminal";
import { BRAND } from "./brand.ts";
import { PROGRAM } from "./commands/program.ts";

// What this program writes (repositories, the database, keys) is for its own user alone.
process.umask(0o077);
dropUnreadOutput(BRAND.command);
process.exitCode = await runProgram(PROGRAM, process.argv.slice(2), process.env);
