import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { stringify } from "yaml";
import {
  helmProgram,
  kubernetesSchemas,
  run,
  tempFolder,
  type Finished,
  type TempFolder,
} from "@devplat/testkit";
import { SETS, type Values } from "../../interop/chart-values.ts";
import { startApiServer, type ApiServer } from "./api-server.ts";

const CHART = resolve(import.meta.dirname, "../../../deploy/helm/svc");
const RELEASE = "ci";
const INSTALL_LIMIT_MS = 120_000;

/** The real API server admits and stores all objects. Nothing runs: there is no node. */
describe("the Helm chart at an API server", { timeout: 1_500_000 }, () => {
  let folder: TempFolder;
  let server: ApiServer;
  before(async () => {
    folder = await tempFolder("chart");
    server = await startApiServer();
    const crd = join(kubernetesSchemas(), "monitoring.coreos.com_servicemonitors.yaml");
    await ok(["create", "-f", crd]);
    await ok(["create", "priorityclass", "high", "--value=1000"]);
  });
  after(async () => {
    await server?.stop();
    await folder?.remove();
  });

  const ok = async (args: readonly string[], input?: string): Promise<string> => {
    const { code, stdout, stderr } = await server.kubectl(args, input);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const get = async (namespace: string, ...what: readonly string[]): Promise<Record<string, never>> =>
    JSON.parse(await ok(["--namespace", namespace, "get", ...what, "--output", "json"]));
  const helm = async (...args: readonly string[]): Promise<Finished> => {
    const env = { PATH: process.env["PATH"], HOME: folder.path, KUBECONFIG: server.kubeconfig };
    return run(helmProgram(), args, { env, timeoutMs: INSTALL_LIMIT_MS });
  };
  /** A namespace that admits only restricted pods. The controller that would make the account `default` does not run. */
  const makeNamespace = async (name: string): Promise<void> => {
    const labels = {
      "pod-security.kubernetes.io/enforce": "restricted",
      "pod-security.kubernetes.io/warn": "restricted",
    };
    await ok(
      ["create", "-f", "-"],
      JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels } }),
    );
    await ok(["--namespace", name, "create", "serviceaccount", "default"]);
  };
  /** Reports jobs as complete, as their controller would. @returns number of jobs */
  const completeJobs = async (namespace: string, signal: AbortSignal): Promise<number> => {
    const done = new Set<string>();
    while (!signal.aborted) {
      const { items } = (await get(namespace, "jobs")) as unknown as { items: Job[] };
      for (const job of items.filter(({ metadata }) => !done.has(metadata.uid))) {
        const now = new Date().toISOString().replace(/\.\d+/, "");
        const condition = { status: "True", lastProbeTime: now, lastTransitionTime: now };
        const conditions = ["SuccessCriteriaMet", "Complete"].map((type) => ({ type, ...condition }));
        const status = {
          startTime: now,
          completionTime: now,
          succeeded: 1,
          conditions,
          uncountedTerminatedPods: {},
        };
        const path = `/apis/batch/v1/namespaces/${namespace}/jobs/${job.metadata.name}/status`;
        const { code } = await server.kubectl(
          ["replace", "--raw", path, "-f", "-"],
          JSON.stringify({ ...job, status }),
        );
        if (code === 0) done.add(job.metadata.uid);
      }
    }
    return done.size;
  };
  const withJobs = async (namespace: string, work: () => Promise<Finished>): Promise<[Finished, number]> => {
    const ended = new AbortController();
    const jobs = completeJobs(namespace, ended.signal);
    const finished = await work().finally(() => ended.abort());
    return [finished, await jobs];
  };

  let number = 0;
  for (const [name, values] of Object.entries(SETS)) {
    it(`is installed, upgraded and removed: ${name}`, async () => {
      const namespace = `n${number++}`;
      await makeNamespace(namespace);
      const file = join(folder.path, `${namespace}.yaml`);
      await writeFile(file, stringify(values));
      const options = ["--namespace", namespace, "--values", file];
      const hasJob = (values["migration"] as Values | undefined)?.["mode"] === undefined;
      const [installed, jobs] = await withJobs(namespace, () => helm("install", RELEASE, CHART, ...options));
      assert.equal(installed.code, 0, installed.stderr);
      // Warnings of the server would be here.
      assert.equal(installed.stderr, "");
      assert.equal(jobs, hasJob ? 1 : 0);

      await admitsPods(namespace);

      const more = ["--set", "podAnnotations.second=yes"];
      const [upgraded] = await withJobs(namespace, () =>
        helm("upgrade", RELEASE, CHART, ...options, ...more),
      );
      assert.equal(upgraded.code, 0, upgraded.stderr);
      const { spec } = (await get(namespace, "deployment", "ci-svc")) as unknown as {
        spec: { template: Template };
      };
      assert.equal(spec.template.metadata.annotations["second"], "yes");

      const removed = await helm("uninstall", RELEASE, "--namespace", namespace);
      assert.equal(removed.code, 0, removed.stderr);
      const { items } = (await get(
        namespace,
        "deployments,services,ingresses,configmaps,pdb,hpa",
      )) as unknown as {
        items: { metadata: { name: string } }[];
      };
      assert.deepEqual(
        items.map(({ metadata }) => metadata.name).filter((each) => each.startsWith("ci-")),
        [],
      );
    });
  }

  /** The server admits a pod of the Deployment, and refuses one without the restrictions of its containers. */
  async function admitsPods(namespace: string): Promise<void> {
    const { spec } = (await get(namespace, "deployment", "ci-svc")) as unknown as {
      spec: { template: Template };
    };
    const { template } = spec;
    const pod = { apiVersion: "v1", kind: "Pod", ...template, metadata: { ...template.metadata, name: "p" } };
    const create = ["--namespace", namespace, "create", "--dry-run=server", "-f", "-"];
    const admitted = await server.kubectl(create, JSON.stringify(pod));
    assert.deepEqual([admitted.code, admitted.stderr], [0, ""]);
    const containers = template.spec.containers.map((each) => ({
      ...each,
      securityContext: {},
    }));
    const refused = await server.kubectl(
      create,
      JSON.stringify({ ...pod, spec: { ...template.spec, containers } }),
    );
    assert.match(refused.stderr, /violates PodSecurity "restricted/);
  }

  it("is the version of the server that its schemas are of", async () => {
    const { gitVersion } = JSON.parse(await ok(["get", "--raw", "/version"])) as { gitVersion: string };
    const pinned = await readFile(resolve(import.meta.dirname, "../../../tools/kubernetes/modules"), "utf8");
    assert.ok(pinned.includes(`k8s.io/kubernetes ${gitVersion} `), gitVersion);
  });
});

interface Job {
  readonly metadata: { readonly name: string; readonly uid: string };
}
interface Template {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  readonly spec: { readonly containers: readonly object[] };
}
