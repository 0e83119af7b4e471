import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse, parseAllDocuments, stringify } from "yaml";
import { helmProgram, run, tempFolder, type Finished, type TempFolder } from "@devplat/testkit";
import manifest from "../../apps/svc/package.json" with { type: "json" };
import { configSchema } from "../../apps/svc/src/config/schema.ts";
import { BASE, SETS, WITH_BUCKET, type Values } from "./chart-values.ts";
import { manifestFaults, type Manifest } from "./kubernetes-schemas.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CHART = join(ROOT, "deploy/helm/svc");
/** Version of the API server whose schemas tools/kubernetes pins. */
const KUBE_VERSION = "1.31.4";

/** Values that are refused, with the reason that the text must name. */
const REFUSED: readonly (readonly [string, Values, RegExp])[] = [
  ["no address", { existingSecret: "x" }, /config\.server\.base_url is not set/],
  ["an address that is none", { ...BASE, config: { server: { base_url: "git" } } }, /base_url.*pattern/i],
  ["no Secret", { config: BASE.config }, /needs SVC_ENCRYPTION_KEY/],
  ["two Secrets", { ...BASE, secrets: { A: "b" } }, /existingSecret and secrets are both set/],
  ["an unknown value", { ...BASE, replicas: 2 }, /property replicas is not allowed/],
  [
    "an unknown value inside",
    { ...BASE, ingress: { hosts: [] } },
    /ingress: .*property hosts is not allowed/,
  ],
  ["a wrong type", { ...BASE, replicaCount: "two" }, /replicaCount: Invalid type/],
  ["a wrong word", { ...BASE, migration: { mode: "always" } }, /migration\.mode.*"job", "init", "none"/],
  ["a wrong size", { ...BASE, localCache: { size: "much" } }, /localCache\.size/],
  [
    "a secret in the ConfigMap",
    { ...BASE, config: { ...BASE.config, database: { driver: "postgres", dsn: "postgres://u:p@h/d" } } },
    /config\.database\.dsn is a secret, and a ConfigMap is not: set SVC_DATABASE_DSN/,
  ],
  [
    "a setting of the chart",
    { ...BASE, config: { ...BASE.config, metrics: { listen: ":1" } } },
    /config\.metrics\.listen is set by the chart/,
  ],
  [
    "several instances on SQLite",
    { ...BASE, config: { ...BASE.config, database: { driver: "sqlite" } } },
    /only one instance can use/,
  ],
  ["several instances on a claim", { ...BASE, data: { type: "claim" } }, /data\.type is claim/],
  [
    "a job on SQLite",
    { ...BASE, replicaCount: 1, config: { ...BASE.config, database: { driver: "sqlite" } } },
    /migration\.mode is job/,
  ],
  [
    "an autoscaler without a target",
    { ...BASE, autoscaling: { enabled: true, targetCPUUtilizationPercentage: 0 } },
    /autoscaling has no target/,
  ],
  ["no host", { ...BASE, ingress: { enabled: true } }, /ingress\.host is not set/],
];

describe("deploy/helm", { timeout: 240_000 }, () => {
  let folder: TempFolder;
  before(async () => void (folder = await tempFolder("helm")));
  after(async () => folder.remove());

  const helm = async (...args: readonly string[]): Promise<Finished> =>
    run(helmProgram(), args, { env: { PATH: process.env["PATH"], HOME: folder.path } });
  const withValues = async (values: Values): Promise<string> => {
    const file = join(folder.path, "values.yaml");
    await writeFile(file, stringify(values));
    return file;
  };
  const template = async (values: Values): Promise<Finished> =>
    helm("template", "ci", CHART, "--kube-version", KUBE_VERSION, "--values", await withValues(values));
  const render = async (values: Values): Promise<Manifest[]> => {
    const { code, stdout, stderr } = await template(values);
    assert.equal(code, 0, stderr);
    return parseAllDocuments(stdout)
      .map((document) => document.toJS() as Manifest | null)
      .filter((each) => each !== null);
  };
  const one = (manifests: readonly Manifest[], kind: string, name = "ci-svc"): Manifest => {
    const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
    assert.ok(found, `${kind} ${name}`);
    return found;
  };

  for (const [name, values] of Object.entries(SETS)) {
    it(`lints and renders objects that the API server accepts: ${name}`, async () => {
      const file = await withValues(values);
      const lint = await helm("lint", "--strict", CHART, "--kube-version", KUBE_VERSION, "--values", file);
      assert.equal(lint.code, 0, lint.stdout + lint.stderr);
      const manifests = await render(values);
      assert.ok(manifests.length >= 5);
      const faults = await Promise.all(manifests.map(manifestFaults));
      assert.deepEqual(faults.flat(), []);
    });

    it(`renders a configuration file that the service accepts: ${name}`, async () => {
      const { data } = one(await render(values), "ConfigMap") as unknown as { data: Record<string, string> };
      const config = configSchema.parse(parse(data["config.yaml"] ?? ""));
      assert.equal(config.data_dir, "/var/lib/svc/data");
      assert.equal(config.cache.enabled, true);
    });
  }

  it("notices a field that the API server does not have", async () => {
    const deployment = one(await render(BASE), "Deployment");
    const broken = structuredClone(deployment) as unknown as { spec: { template: { spec: Values } } };
    broken.spec.template.spec = { ...broken.spec.template.spec, gracePeriod: 1, enableServiceLinks: "no" };
    assert.deepEqual((await manifestFaults(broken as unknown as Manifest)).toSorted(), [
      "Deployment.spec.template.spec.enableServiceLinks: is string, and must be boolean",
      "Deployment.spec.template.spec: unknown field gracePeriod",
    ]);
  });

  it("makes every kind of object", async () => {
    const kinds = (await render(SETS["everything"] ?? {})).map(({ kind }) => kind);
    for (const kind of [
      "ConfigMap",
      "Deployment",
      "HorizontalPodAutoscaler",
      "Ingress",
      "Job",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "Secret",
      "Service",
      "ServiceAccount",
      "ServiceMonitor",
    ])
      assert.ok(kinds.includes(kind), kind);
  });

  it("gives running clones the time of server.drain_seconds", async () => {
    for (const [values, seconds] of [
      [BASE, 90],
      [WITH_BUCKET, 300],
    ] as const) {
      const { spec } = one(await render(values), "Deployment") as unknown as Pods;
      const { terminationGracePeriodSeconds: grace, containers } = spec.template.spec;
      const wait = containers[0]?.lifecycle.preStop.sleep.seconds ?? 0;
      assert.ok(grace > seconds + wait, String(grace));
    }
  });

  it("runs every container without root, on a read-only root file system", async () => {
    for (const values of Object.values(SETS)) {
      const pods = (await render(values)).filter(({ kind }) => ["Deployment", "Job"].includes(kind));
      for (const { spec } of pods as unknown as Pods[]) {
        const { securityContext, containers, initContainers = [] } = spec.template.spec;
        assert.equal(securityContext.runAsNonRoot, true);
        for (const container of [...containers, ...initContainers]) {
          assert.deepEqual(container.securityContext, {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          });
        }
      }
    }
  });

  it("selects the pods of the Deployment, and never those of the migration", async () => {
    const manifests = await render(SETS["everything"] ?? {});
    const { spec } = one(manifests, "Deployment") as unknown as Pods;
    const { spec: job } = one(manifests, "Job", "ci-svc-migrate") as unknown as Pods;
    for (const name of ["ci-svc", "ci-svc-metrics"]) {
      const service = one(manifests, "Service", name) as unknown as { spec: { selector: Values } };
      const isSelected = ({ template: { metadata } }: Pods["spec"]): boolean =>
        Object.entries(service.spec.selector).every(([key, value]) => metadata.labels[key] === value);
      assert.deepEqual([isSelected(spec), isSelected(job)], [true, false], name);
    }
  });

  it("keeps a repository on one instance with the lines of the guide", async () => {
    const guide = await readFile(join(ROOT, "docs/svc/several-instances.md"), "utf8");
    const [, block = ""] = /ingress-nginx:\n\n```yaml\n([^]*?)```/.exec(guide) ?? [];
    const { metadata } = parse(block) as { metadata: { annotations: Values } };
    const ingress = one(await render(SETS["everything"] ?? {}), "Ingress");
    const annotations = ingress.metadata["annotations"] as Record<string, string>;
    for (const [key, value] of Object.entries(metadata.annotations)) assert.equal(annotations[key], value);
  });

  it("scales by requests in flight and CPU", async () => {
    const { spec } = one(await render(SETS["everything"] ?? {}), "HorizontalPodAutoscaler") as unknown as {
      spec: { metrics: { type: string; pods?: { metric: { name: string } } }[] };
    };
    assert.deepEqual(
      spec.metrics.map(({ type, pods }) => pods?.metric.name ?? type),
      ["Resource", "svc_requests_in_flight"],
    );
  });

  it("starts pods again when a setting or a secret changes", async () => {
    const sums = async (values: Values): Promise<Values> =>
      (one(await render(values), "Deployment") as unknown as Pods).spec.template.metadata.annotations;
    const first = await sums(WITH_BUCKET);
    assert.deepEqual(await sums(WITH_BUCKET), first);
    const secret = await sums({
      ...WITH_BUCKET,
      secrets: { ...WITH_BUCKET.secrets, SVC_HOST_CLIENT_SECRET: "x" },
    });
    assert.notEqual(secret["checksum/secret"], first["checksum/secret"]);
    const setting = await sums({ ...WITH_BUCKET, config: { ...WITH_BUCKET.config, admins: ["ada"] } });
    assert.notEqual(setting["checksum/config"], first["checksum/config"]);
  });

  for (const [name, values, reason] of REFUSED) {
    it(`refuses ${name}, and says why`, async () => {
      const { code, stderr } = await template(values);
      assert.notEqual(code, 0);
      assert.match(stderr, reason);
    });
  }

  it("has the version of the service", async () => {
    const chart = parse(await readFile(join(CHART, "Chart.yaml"), "utf8")) as Values;
    assert.deepEqual([chart["version"], chart["appVersion"]], [manifest.version, manifest.version]);
  });
});

/** Parts of a Deployment or a Job. */
interface Pods {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Values; readonly annotations: Values };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly securityContext: { readonly runAsNonRoot: boolean };
        readonly containers: readonly Container[];
        readonly initContainers?: readonly Container[];
      };
    };
  };
}
interface Container {
  readonly securityContext: unknown;
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
}
