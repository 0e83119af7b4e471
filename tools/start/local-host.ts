import { repositories, startCodeHostProcess } from "@devplat/testkit";
import type { StartSettings } from "./settings.ts";

const REPOSITORY = { owner: "acme", name: "widgets" } as const;
/** About a megabyte: a seed of it is made in some seconds. */
const SAMPLE = { commits: 1000, files: 100 } as const;

/** A code host with one public repository, in a process of its own. Its data is temporary. */
export interface LocalHost {
  readonly settings: StartSettings;
  /** Variables for the service. */
  readonly env: Readonly<Record<"SVC_HOST_URL" | "SVC_HOST_API_URL", string>>;
  stop(): Promise<void>;
}

export async function startLocalHost(): Promise<LocalHost> {
  const host = await startCodeHostProcess();
  try {
    const { owner, name } = REPOSITORY;
    await host.addRepository(owner, name, { build: (dir) => repositories.linear(dir, SAMPLE) });
  } catch (error) {
    await host.stop();
    throw error;
  }
  return {
    settings: { host: host.url, repository: `${REPOSITORY.owner}/${REPOSITORY.name}`, isPlaceholder: false },
    env: { SVC_HOST_URL: host.url, SVC_HOST_API_URL: host.apiUrl },
    stop: async () => host.stop(),
  };
}
