import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { answers, cpuSecondsOf, freePort, startPeer } from "@devplat/testkit";

/** nginx with one worker that serves a folder: the cost of sending bytes without other work. */
export interface Nginx {
  readonly url: string;
  readonly cpuSeconds: () => number;
  stop(): Promise<void>;
}

/**
 * @param folder is served under `/`; nginx's own files go to `work`
 * @param proxied address that everything is passed on to, in the place of the folder
 */
export async function startNginx(folder: string, work: string, proxied?: string): Promise<Nginx> {
  await mkdir(work, { recursive: true });
  const config = join(work, "nginx.conf");
  const pidFile = join(work, "nginx.pid");
  let url = "";
  const peer = await startPeer("nginx", async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    await writeFile(config, configuration(folder, work, pidFile, port, proxied));
    return {
      command: "nginx",
      args: ["-c", config, "-p", work, "-g", "daemon off;"],
      isReady: () => answers(`${url}/`),
    };
  });
  const master = Number(readFileSync(pidFile, "utf8"));
  const workers = readFileSync(`/proc/${master}/task/${master}/children`, "utf8")
    .trim()
    .split(" ")
    .map(Number);
  return {
    url,
    cpuSeconds: () => workers.reduce((sum, pid) => sum + cpuSecondsOf(pid).own, cpuSecondsOf(master).own),
    stop: async () => void (await peer.stop()),
  };
}

function configuration(
  folder: string,
  work: string,
  pidFile: string,
  port: number,
  proxied: string | undefined,
): string {
  const place =
    proxied === undefined
      ? `root ${folder}; autoindex on;`
      : `location / { proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; }`;
  const behind =
    proxied === undefined ? "" : `upstream behind { server ${new URL(proxied).host}; keepalive 64; }`;
  return `user root;
worker_processes 1;
pid ${pidFile};
error_log ${join(work, "error.log")};
events { worker_connections 512; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  client_body_temp_path ${join(work, "body")};
  proxy_temp_path ${join(work, "proxy")};
  fastcgi_temp_path ${join(work, "fastcgi")};
  uwsgi_temp_path ${join(work, "uwsgi")};
  scgi_temp_path ${join(work, "scgi")};
  default_type application/json;
  keepalive_requests 1000000;
  ${behind}
  server { listen 127.0.0.1:${port}; ${place} }
}
`;
}
