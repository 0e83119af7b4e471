import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "@devplat/testkit";

/**
 * Programs of another operating system, in place of those that cannot be installed here. Each records its calls, then runs a script
 * of the shell, which keeps its state in files of `$STATE`.
 */
export interface RecordingPrograms {
  /** For files of the test. */
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  add(name: string, script: string): Promise<void>;
  /** Command lines since the last call of this function. */
  calls(): Promise<string[]>;
  /** Sets or reads a file of `$STATE`. */
  set(name: string, text: string): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function recordingPrograms(): Promise<RecordingPrograms> {
  const temporary = await tempFolder("service");
  const folder = temporary.path;
  const [programs, state, record] = [join(folder, "bin"), join(folder, "state"), join(folder, "calls")];
  await mkdir(programs);
  await mkdir(state);
  await writeFile(record, "");
  return {
    folder,
    environment: { PATH: `${programs}:/usr/bin:/bin`, STATE: state },
    async add(name, script) {
      const file = join(programs, name);
      await writeFile(file, `#!/bin/sh\necho "${name} $*" >>${record}\n${script}\n`);
      await chmod(file, 0o755);
    },
    async calls() {
      const lines = (await readFile(record, "utf8")).split("\n").filter((line) => line !== "");
      await writeFile(record, "");
      return lines;
    },
    set: (name, text) => writeFile(join(state, name), text),
    [Symbol.asyncDispose]: async () => temporary.remove(),
  };
}
