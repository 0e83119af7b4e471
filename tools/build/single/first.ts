import { dirname } from "node:path";
import { getAssetKeys, getRawAsset } from "node:sea";
import { Script } from "node:vm";
import { dropUnreadOutput, printText } from "@devplat/base/terminal";

/** The program as JSON, which the build puts here. */
declare const PROGRAM: {
  /** Name of the command, such as `svc`. */
  readonly name: string;
  readonly version: string;
  /** Asset with the text of the program: a function with the parameters of a CommonJS module. */
  readonly bundle: string;
};
declare const require: NodeJS.Require;

type RunModule = (
  exports: object,
  require: NodeJS.Require,
  module: object,
  filename: string,
  dirname: string,
) => void;

/**
 * The start of a single executable (0078). It prints the version itself, and loads the program for everything else: a start that reads
 * the text and the compiled code of the whole program takes twice the time.
 */
function start([command = "", ...more]: readonly string[]): void {
  if (more.length === 0 && (command === "version" || command === "--version")) {
    dropUnreadOutput(PROGRAM.name);
    printText(`${PROGRAM.version}\n`);
    return;
  }
  const text = Buffer.from(getRawAsset(PROGRAM.bundle)).toString("latin1");
  const keys = new Set(getAssetKeys());
  const code = [`${PROGRAM.bundle}.${command}.code`, `${PROGRAM.bundle}.code`].find((key) => keys.has(key));
  const cached = code === undefined ? {} : { cachedData: Buffer.from(getRawAsset(code)) };
  const script = new Script(text, { filename: PROGRAM.bundle, ...cached });
  const module = { exports: {} };
  const { execPath } = process;
  (script.runInThisContext() as RunModule)(module.exports, require, module, execPath, dirname(execPath));
}

start(process.argv.slice(2));
