import { mkdir, writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { TestkitError } from "./errors.ts";
import { freePort } from "./free-port.ts";
import { slapdProgram } from "./peer-programs.ts";
import { startPeer } from "./peer.ts";
import { run } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

const SUFFIX = "dc=example,dc=test";

/** A real OpenLDAP server on loopback whose users live at `uid=NAME,{usersDn}`. */
export interface Slapd {
  /** `ldap://127.0.0.1:PORT` */
  readonly url: string;
  readonly usersDn: string;
  stop(): Promise<void>;
}

/** @param users passwords by name */
export async function startSlapd(users: Readonly<Record<string, string>>): Promise<Slapd> {
  const program = slapdProgram();
  const folder = await tempFolder("slapd");
  const configuration = join(folder.path, "slapd.conf");
  await mkdir(join(folder.path, "db"));
  await writeFile(configuration, configurationText(folder.path));
  const data = join(folder.path, "data.ldif");
  await writeFile(data, ldif(users));
  // slapadd is slapd itself under another name, or by this flag.
  const added = await run(program, ["-Ta", "-f", configuration, "-l", data]);
  if (added.code !== 0) throw TestkitError.failed("slapd", `its data was not taken: ${added.stderr}`);
  let url = "";
  const peer = await startPeer("slapd", async () => {
    const port = await freePort();
    url = `ldap://127.0.0.1:${port}`;
    return {
      command: program,
      // -d keeps it in the foreground.
      args: ["-f", configuration, "-h", url, "-d", "0"],
      isReady: () => connects(port),
    };
  });
  return {
    url,
    usersDn: `ou=people,${SUFFIX}`,
    async stop() {
      await peer.stop();
      await folder.remove();
    },
  };
}

function configurationText(folder: string): string {
  return `${["core", "cosine", "inetorgperson"].map((name) => `include /etc/ldap/schema/${name}.schema`).join("\n")}
pidfile ${folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "${SUFFIX}"
directory ${folder}/db
`;
}

function ldif(users: Readonly<Record<string, string>>): string {
  const people = Object.entries(users).map(
    ([name, password]) => `dn: uid=${name},ou=people,${SUFFIX}
objectClass: inetOrgPerson
uid: ${name}
cn: ${name}
sn: ${name}
userPassword: ${password}
`,
  );
  return [
    `dn: ${SUFFIX}\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n`,
    `dn: ou=people,${SUFFIX}\nobjectClass: organizationalUnit\nou: people\n`,
    ...people,
  ].join("\n");
}

function connects(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = createConnection(port, "127.0.0.1");
  socket.once("connect", () => resolve(true));
  socket.once("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}
