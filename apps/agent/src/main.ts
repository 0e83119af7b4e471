import { runProgram } from "@devplat/cli";
import { dropUnreadOutput } from "@devplat/base/terminal";
import { BRAND } from "./brand.ts";
import { MOUNT_HELPER_PROGRAM, PROGRAM } from "./commands/program.ts";
import { MOUNT_HELPER, MOUNT_SERVER } from "./own-program.ts";

// The arguments may hold a secret (`secrets put KEY field=value`) and every user of the host can read them: they are
// overwritten before anything else is done.
process.title = BRAND.command;

dropUnreadOutput(BRAND.command);

const args = process.argv.slice(2);
const done =
  args[0] === MOUNT_SERVER
    ? import("./surfaces/mount/server/main.ts").then(({ main }) => main())
    : runProgram(args[0] === MOUNT_HELPER ? MOUNT_HELPER_PROGRAM : PROGRAM, args, process.env);
// No await here: the release bundle is a CommonJS module.
void done.then((code) => (process.exitCode = code));
