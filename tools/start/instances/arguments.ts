import { parseArgs } from "node:util";

/** More of them only share the same cores. */
const MAX_INSTANCES = 8;
const DEFAULT_INSTANCES = 2;

export interface InstancesArguments {
  readonly help: boolean;
  /** Number of instances. */
  readonly count: number;
}

export const HELP = `Usage: npm run start:instances -- [--instances <n>] [--help]

Start several instances of svc on this machine for a trial, with all that they share.

What starts, on 127.0.0.1 only:
  instances A, B …   svc in development mode, each with its own local cache
  nginx              the balancer in front of them
  Postgres           the database of all instances
  S3 server          versitygw, with one bucket
  code host          a small git server with one repository

Options (after the two dashes, which end the options of npm):
  --instances <n>    Number of instances, 1 to ${MAX_INSTANCES} (default ${DEFAULT_INSTANCES}).
  -h, --help         Show this text.

Environment:
  START_DATA_DIR     Folder for logs, process ids and the file "env" with addresses and
                     credentials (default data/instances). One start can use a folder.

All other data is temporary. Ctrl-C stops everything; a second Ctrl-C does not wait for
running transfers. If this program is killed, everything that it started ends, too.

The programs are those of npm run setup:peers. A walk-through is in the section "Try it"
of docs/svc/several-instances.md.
`;

/** @throws Error with what to do, before anything is started */
export function readArguments(args: readonly string[]): InstancesArguments {
  const { values, positionals } = parse(args);
  const [extra] = positionals;
  if (extra !== undefined) {
    throw new Error(
      `Cannot use the argument ${JSON.stringify(extra)}: there are only options, which follow two dashes, as in npm run start:instances -- --instances 4`,
    );
  }
  return { help: values.help ?? false, count: readCount(values.instances) };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: { help: { type: "boolean", short: "h" }, instances: { type: "string" } },
      allowPositionals: true,
    });
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/);
    throw new Error(`${reason}. Run npm run start:instances -- --help`, { cause: error });
  }
}

function readCount(text: string | undefined): number {
  if (text === undefined) return DEFAULT_INSTANCES;
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= MAX_INSTANCES) return count;
  throw new Error(
    `Cannot start ${JSON.stringify(text)} instances: --instances takes a number from 1 to ${MAX_INSTANCES}`,
  );
}
