import { join } from "node:path";
import { shellQuote } from "../shell-quote.ts";
import { RESTART_SECONDS, type Instance } from "./instance.ts";
import { REVIVAL_SECONDS } from "./revival.ts";
import { pidsFolder } from "./start-record.ts";

export interface SheetParts {
  readonly root: string;
  /** Folder of the files to paste from. */
  readonly data: string;
  /** The same, as the lines name it. */
  readonly shown: string;
  readonly balancer: { readonly url: string; readonly pid: number };
  readonly instances: readonly Instance[];
  readonly codeHost: {
    readonly url: string;
    readonly pid: number;
    readonly user: string;
    readonly token: string;
    /** `owner/name` of its one repository. */
    readonly repository: string;
  };
  readonly postgres: { readonly dsn: string; readonly pid: number };
  readonly s3: {
    readonly endpoint: string;
    readonly bucket: string;
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly pid: number;
    /** Beginning of all names in the bucket. */
    readonly prefix: string;
  };
}

/** Variables and functions for a POSIX shell. Holds all credentials of the trial: 0600. */
export function environment(parts: SheetParts, token: string): string {
  const { root, data, balancer, instances, codeHost } = parts;
  const hostAddress = new URL(codeHost.url);
  hostAddress.username = codeHost.user;
  hostAddress.password = codeHost.token;
  const svc = `exec ${shellQuote(join(root, "node_modules/.bin/svc"))} "$@"`;
  return [
    "# Addresses",
    `export BALANCER=${shellQuote(balancer.url)}`,
    ...instances.flatMap((each) => [
      `export ${each.name.toUpperCase()}=http://127.0.0.1:${each.port}`,
      `export METRICS_${each.name.toUpperCase()}=http://127.0.0.1:${each.metricsPort}/metrics`,
    ]),
    "# The code host, with the token of a user who can push",
    `export CODE_HOST=${shellQuote(hostAddress.href.replace(/\/$/, ""))}`,
    "# Folder with the id of each process",
    `export PIDS=${shellQuote(pidsFolder(data))}`,
    "# svc: the command line as an admin, through the balancer",
    `export SVC_URL=${shellQuote(balancer.url)}`,
    `export SVC_TOKEN=${shellQuote(token)}`,
    `svc() ( ${svc} )`,
    "# svc_a, svc_b …: the command line with the settings of one instance, for doctor and config",
    ...instances.map(({ name, settings }) => {
      const given = Object.entries(settings).map(([key, value]) => `${key}=${shellQuote(value)}`);
      return `svc_${name}() ( export ${given.join(" ")}; ${svc} )`;
    }),
    "",
  ].join("\n");
}

/** Text that is printed when all are up. */
export function sheet(parts: SheetParts): string {
  const { shown, balancer, instances, codeHost, postgres, s3 } = parts;
  const names = instances.map((each) => each.name.toUpperCase()).join(" and ");
  const rows: string[][] = [
    ["", "PROCESS", "ADDRESS"],
    ["nginx", `${balancer.pid}`, `${balancer.url}   balancer: clients use this address`],
    ...instances.map((each) => [
      each.name,
      `${each.pid}`,
      `http://127.0.0.1:${each.port}   instance ${each.name.toUpperCase()}, log: ${shown}/${each.name}/svc.log`,
    ]),
    ["code-host", `${codeHost.pid}`, `${codeHost.url}/${codeHost.repository}.git`],
    ["", "", `push as ${codeHost.user} with the password ${codeHost.token}`],
    ["postgres", `${postgres.pid}`, `${postgres.dsn}   no password`],
    ["s3", `${s3.pid}`, `${s3.endpoint}   bucket ${s3.bucket}, prefix ${s3.prefix}`],
    ["", "", `key id ${s3.accessKeyId}, secret ${s3.secretAccessKey}`],
  ];
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const table = rows.map(([name = "", pid = "", text = ""]) =>
    `  ${name.padEnd(widths[0] ?? 0)}  ${pid.padStart(widths[1] ?? 0)}  ${text}`.trimEnd(),
  );
  return `
All are up:

${table.join("\n")}

In another terminal, in this folder:

  # addresses, credentials, and svc as an admin
  . ${shown}/env
  # checks the bucket with the settings of instance A
  svc_a doctor --bucket

Then follow "Try it" in docs/svc/several-instances.md.
Pages: ${balancer.url}/admin (any user name, role admin).

Each process can be killed (kill -9 "$(cat "$PIDS/a")"), or paused with kill -STOP and kill -CONT.
${names} start again after ${RESTART_SECONDS} s; nginx, postgres and s3 after ${REVIVAL_SECONDS} s.
Ctrl-C stops everything (or: kill ${process.pid}).
`;
}
