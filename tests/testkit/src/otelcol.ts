import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { otelcolProgram } from "./peer-programs.ts";
import { answers, startPeer } from "./peer.ts";
import { tempFolder } from "./temp-folder.ts";

/** A real OpenTelemetry Collector on loopback. It passes on what it takes, in JSON. */
export interface Otelcol {
  readonly url: string;
  stop(): Promise<void>;
}

/** Its status for a GET. */
const METHOD_NOT_ALLOWED = 405;

/** @param forwardTo address to which it sends traces and metrics by OTLP over HTTP */
export async function startOtelcol(forwardTo: string): Promise<Otelcol> {
  const folder = await tempFolder("otelcol");
  let url = "";
  const peer = await startPeer("otelcol", async () => {
    const address = `127.0.0.1:${await freePort()}`;
    url = `http://${address}`;
    const pipeline = { receivers: ["otlp"], exporters: ["otlp_http"] };
    const config = join(folder.path, "config.yaml");
    await writeFile(
      config,
      JSON.stringify({
        receivers: { otlp: { protocols: { http: { endpoint: address } } } },
        exporters: {
          otlp_http: {
            endpoint: forwardTo,
            encoding: "json",
            compression: "none",
            sending_queue: { enabled: false },
          },
        },
        service: {
          telemetry: { metrics: { level: "none" } },
          pipelines: { traces: pipeline, metrics: pipeline },
        },
      }),
    );
    return {
      command: otelcolProgram(),
      args: ["--config", `file:${config}`],
      isReady: () => answers(`${url}/v1/traces`, (status) => status === METHOD_NOT_ALLOWED),
    };
  });
  return {
    url,
    stop: async () => {
      await peer.stop();
      await folder.remove();
    },
  };
}
