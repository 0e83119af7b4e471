import { VERSION } from "../version.ts";
import type { RunCommand } from "./command.ts";

export const run: RunCommand = ({ options }) => {
  process.stdout.write(
    options["json"] === true ? `${JSON.stringify({ version: VERSION })}\n` : `${VERSION}\n`,
  );
  return Promise.resolve(0);
};
