import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { answers, startPeer, tempFolder, type Peer } from "@devplat/testkit";

const GUIDE = new URL("../../../docs/svc/several-instances.md", import.meta.url);
/** Lines of the guide's configuration that name its two instances. */
const GUIDE_SERVERS = /^ *server svc-[a-z]\.internal:8080.*\n/gm;
/** Its line that keeps a repository on one instance. */
const GUIDE_HASH = /^ *hash [^\n]*\n/m;

export interface Balancer {
  readonly url: string;
  readonly pid: number;
  /** Starts it on the same port again, after its end. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * nginx with the configuration of the guide, which keeps a repository on one instance.
 *
 * @param byRepository false: it takes an instance at random for each request
 */
export async function startBalancer(
  port: number,
  instances: readonly number[],
  byRepository = true,
): Promise<Balancer> {
  const work = await tempFolder("balancer");
  const config = join(work.path, "nginx.conf");
  for (const each of ["body", "proxy", "fastcgi", "uwsgi", "scgi"]) await mkdir(join(work.path, each));
  const http = await configuration(port, instances);
  await writeFile(config, frame(work.path, byRepository ? http : http.replace(GUIDE_HASH, "random;\n")));
  const url = `http://127.0.0.1:${port}`;
  const start = (): Promise<Peer> =>
    startPeer("nginx", async () => ({
      command: "nginx",
      args: ["-c", config, "-p", work.path, "-e", join(work.path, "error.log"), "-g", "daemon off;"],
      isReady: async () => answers(`${url}/healthz`),
    }));
  let peer = await start();
  return {
    url,
    get pid() {
      return peer.pid;
    },
    async restart() {
      await peer.stop();
      peer = await start();
    },
    async stop() {
      await peer.stop();
      await work.remove();
    },
  };
}

async function configuration(port: number, instances: readonly number[]): Promise<string> {
  const block = /```nginx\n([^]*?)```/.exec(await readFile(GUIDE, "utf8"))?.[1];
  if (block === undefined) throw new Error("docs/svc/several-instances.md has no configuration of nginx");
  let isFirst = true;
  return block
    .replaceAll(GUIDE_SERVERS, (line) => {
      if (!isFirst) return "";
      isFirst = false;
      return instances.map((each) => line.replace(/svc-[a-z]\.internal:8080/, `127.0.0.1:${each}`)).join("");
    })
    .replace(/listen [^;]+;/, `listen 127.0.0.1:${port};`)
    .replaceAll(/^ *ssl_[^\n]*\n/gm, "");
}

function frame(work: string, http: string): string {
  return `${process.getuid?.() === 0 ? "user root;" : ""}
worker_processes 1;
pid ${join(work, "nginx.pid")};
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${join(work, "body")};
  proxy_temp_path ${join(work, "proxy")};
  fastcgi_temp_path ${join(work, "fastcgi")};
  uwsgi_temp_path ${join(work, "uwsgi")};
  scgi_temp_path ${join(work, "scgi")};
${http}
}
`;
}
